package reading_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/registration/registrationtest"
)

// TestLiveOfAReader: who may not read the credentials of clusters gets what is stored, and why it is no more.
func TestLiveOfAReader(t *testing.T) {
	t.Parallel()
	config := registrationtest.APIServer(t)
	const namespace = "live-of-a-reader"
	sandboxtest.MakeNamespace(t, config, namespace)
	sandboxtest.Apply(t, config, []byte(`
apiVersion: multicluster.solo.io/v1alpha1
kind: KubernetesCluster
metadata: {name: east, namespace: `+namespace+`}
`))
	token := sandboxtest.Token(t, config, rbacv1.PolicyRule{
		APIGroups: []string{
			"discovery.mesh.gloo.solo.io", "networking.mesh.gloo.solo.io", "networking.enterprise.mesh.gloo.solo.io", "observability.enterprise.mesh.gloo.solo.io",
			"rbac.enterprise.mesh.gloo.solo.io", "settings.mesh.gloo.solo.io", "certificates.mesh.gloo.solo.io", "multicluster.solo.io", "coordination.k8s.io",
		},
		Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"},
	})
	reader := rest.AnonymousClientConfig(config)
	reader.BearerToken = token
	read, err := reading.Management{Config: reader, Namespace: namespace}.Live(t.Context())
	require.NoError(t, err)
	index := read.Index(nil)
	assert.Contains(t, index.NotRead(), "east was not read: you may not list Secrets in namespace "+namespace)

	read, err = reading.Management{Config: config, Namespace: namespace}.Live(t.Context())
	require.NoError(t, err)
	assert.Contains(t, read.Index(nil).NotRead(), "east was not read: ", "it has no credential")
	assert.NotContains(t, read.Index(nil).NotRead(), "you may not")
}
