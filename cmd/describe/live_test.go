package describe

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/registration/registrationtest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestLive asks a management cluster that holds what the case bookinfo has on
// its management plane: the answers are those that the case's files give. What
// depends on the age of policies is left out: here all are equally young.
func TestLive(t *testing.T) {
	t.Parallel()
	const dir = "../../testdata/translate/bookinfo"
	config := registrationtest.APIServer(t)
	sandboxtest.MakeNamespace(t, config, snapshot.DefaultNamespace)
	input, _, err := offline.Load(offline.Dir(filepath.Join(dir, "in")))
	require.NoError(t, err)
	manifests, err := offline.Files(engine.Translate(input).Output)
	require.NoError(t, err)
	for _, file := range []string{"virtualmesh.yaml", "policies.yaml"} {
		data, err := os.ReadFile(filepath.Join(dir, "in/management", file))
		require.NoError(t, err)
		manifests["management/"+file] = data
	}
	for file, data := range manifests {
		if path.Dir(file) != offline.ManagementFolder {
			continue
		}
		sandboxtest.Apply(t, config, data)
	}

	for file, question := range map[string]Options{
		"mesh.txt":                                   {Kind: snapshot.Mesh},
		"mesh-istiod-istio-system-cluster-1.txt":     {Kind: snapshot.Mesh, Name: "istiod-istio-system-cluster-1"},
		"workload.txt":                               {Kind: snapshot.Workload},
		"destination-ratings-bookinfo-cluster-2.txt": {Kind: snapshot.Destination, Name: "ratings.bookinfo.cluster-2"},
	} {
		streams, _, out, errs := cmdutil.TestStreams()
		factory := cmdutil.NewFactory(streams)
		factory.Config = func(string, string) (*rest.Config, error) { return config, nil }
		question.Streams, question.Now = streams, noon
		question.Source = cmdutil.Source{Namespace: snapshot.DefaultNamespace, NoClusters: true, Factory: factory}
		require.NoError(t, describeRun(t.Context(), &question), file)
		want, err := os.ReadFile(filepath.Join(dir, "describe", file))
		require.NoError(t, err)
		// No server has said how the clusters are, and what users wrote in them was not read.
		expected := strings.NewReplacer("healthy", "unknown", "Issues: none\n", "Issues: none, as far as was read\n").Replace(string(want))
		told := "Note: no `meshctl serve` has led in this management cluster yet: nothing is written, and what is shown is what would be.\n"
		const first = "Answer not certain: cluster-1, cluster-2 were not read: only the management cluster was read\n"
		if question.Name == "" { // a table, which scripts may read
			told += first
		} else {
			expected = first + expected
		}
		assert.Equal(t, expected, out.String(), file)
		assert.Equal(t, told, errs.String(), file)
	}
}
