package kind

import (
	"bytes"
	"compress/gzip"
	"flag"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/meshctl/meshctl/demo/helper"
	"github.com/meshctl/meshctl/demo/manifests"
	"github.com/meshctl/meshctl/demo/waittest"
)

var update = flag.Bool("update", false, "write istio.yaml.gz")

// TestIstio: the objects are those that Istio's installer makes of the settings of the demo.
func TestIstio(t *testing.T) {
	t.Parallel()
	waittest.SkipIfShort(t, "builds Istio")
	binary, err := helper.Build(t.Context(), helper.Progress{Report: func(message string) { t.Log(message) }})
	require.NoError(t, err)
	settings := manifests.IstioOperator()
	require.NotContains(t, string(settings), placeholder)
	command := exec.CommandContext(t.Context(), binary, append([]string{"istio-manifests", "-"}, istioSettings()...)...)
	command.Stdin = bytes.NewReader(settings)
	var errs bytes.Buffer
	command.Stderr = &errs
	want, err := command.Output()
	require.NoError(t, err, errs.String())
	if *update {
		var packed bytes.Buffer
		w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		require.NoError(t, err)
		_, err = w.Write(want)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		require.NoError(t, os.WriteFile("istio.yaml.gz", packed.Bytes(), 0o644))
		return
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(rendered))
	require.NoError(t, err)
	got, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "run `go test ./demo/kind -run TestIstio -update`")
}

func TestIstioObjects(t *testing.T) {
	t.Parallel()
	objects, err := istioObjects("cluster-7")
	require.NoError(t, err)
	gateways, named := 0, false
	for _, o := range objects {
		data, err := o.MarshalJSON()
		require.NoError(t, err)
		assert.NotContains(t, string(data), placeholder)
		named = named || strings.Contains(string(data), "cluster-7.example")
		if kind, _, _ := unstructured.NestedString(o.Object, "spec", "type"); o.GetKind() == "Service" && kind == "NodePort" {
			gateways++
		}
	}
	assert.True(t, named, "the trust domain is that of the cluster")
	assert.Equal(t, 2, gateways, "no load balancer is needed")
	images, version, err := IstioImages()
	require.NoError(t, err)
	assert.Equal(t, []string{"docker.io/istio/proxyv2:" + version, "docker.io/istio/pilot:" + version}, images)
}
