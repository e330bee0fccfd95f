package serve

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/certs/roots"
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/registration/registrationtest"
)

const sharedTrust = `
apiVersion: networking.mesh.gloo.solo.io/v1
kind: VirtualMesh
metadata: {name: vm, namespace: gloo-mesh}
spec:
  mtlsConfig:
    shared: {rootCertificateAuthority: {generated: {rsaKeySizeBytes: 2048}}}
`

// TestServeKeepsRoots runs the command as it is, and finds the root of a VirtualMesh.
func TestServeKeepsRoots(t *testing.T) {
	t.Parallel()
	config, err := registrationtest.APIServers(t, 1)[0].Config()
	require.NoError(t, err)
	sandboxtest.MakeNamespace(t, config, "gloo-mesh")
	sandboxtest.Apply(t, config, []byte(sharedTrust))
	streams, _, _, _ := cmdutil.TestStreams()
	log := &sandboxtest.Buffer{}
	streams.Err = log
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- serveRun(ctx, &Options{
			Streams: streams, Namespace: "gloo-mesh", LeaderElect: true, LeaseDuration: time.Minute, Log: cmdutil.LogFlags{Level: "debug", Format: "text"},
			Config: func() (*rest.Config, error) { return config, nil },
		})
	}()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
		if t.Failed() {
			t.Log(log.String())
		}
	})
	secrets := sandboxtest.Clientset(t, config).CoreV1().Secrets("gloo-mesh")
	waittest.NoError(t, "the root is there", func() error {
		found, err := secrets.Get(t.Context(), "vm.gloo-mesh", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return err
		}
		require.NoError(t, err)
		assert.Equal(t, roots.SecretType, found.Type)
		return nil
	})
	assert.NotContains(t, log.String(), "PRIVATE KEY")
}
