package cmdutil_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestTheRightPlaceIsNamed: who asks a cluster or a namespace without a management plane is told
// where there is one.
func TestTheRightPlaceIsNamed(t *testing.T) {
	t.Parallel()
	configs := map[string]*rest.Config{}
	for i, server := range sandboxtest.APIServers(t, 2) {
		config, err := server.Config()
		require.NoError(t, err)
		configs[[]string{"bare", "management"}[i]] = config
	}
	_, err := registration.Register(t.Context(), registration.Options{Name: "cluster-1", RemoteConfig: configs["management"], MgmtConfig: configs["management"]})
	require.NoError(t, err)
	streams, _, _, _ := cmdutil.TestStreams()
	factory := cmdutil.NewFactory(streams)
	factory.Contexts = func(string) ([]string, string, error) { return []string{"bare", "gone", "management"}, "", nil }
	factory.Config = func(_, context string) (*rest.Config, error) {
		if config := configs[context]; config != nil {
			return rest.CopyConfig(config), nil
		}
		return &rest.Config{Host: "https://127.0.0.1:1"}, nil
	}
	read := func(context, namespace string) error {
		source := cmdutil.Source{Factory: factory, Namespace: namespace}
		source.Kube.Context = context
		_, err := source.Read(t.Context(), factory.Streams)
		return err
	}
	require.NoError(t, read("management", snapshot.DefaultNamespace))

	err = read("bare", snapshot.DefaultNamespace)
	require.ErrorContains(t, err, "is no management cluster")
	require.ErrorContains(t, err, "these contexts lead to one: management")
	assert.Equal(t, cmdutil.ExitNotFound, cmdutil.ExitCode(err))

	err = read("management", "elsewhere")
	require.ErrorContains(t, err, "namespace elsewhere")
	require.ErrorContains(t, err, "there is a management plane in: gloo-mesh; name that namespace")
	assert.Equal(t, cmdutil.ExitNotFound, cmdutil.ExitCode(err))
}

func TestANameThatWasMistypedIsFound(t *testing.T) {
	t.Parallel()
	reading, err := reading.Folder("../../testdata/translate/bookinfo/in")
	require.NoError(t, err)
	index := reading.Index(nil)
	for name, want := range map[string]string{
		"reviewz": "did you mean reviews-bookinfo-cluster-1?", "reviews.bokinfo": "did you mean reviews-bookinfo-cluster-1?",
		"review": "did you mean reviews-bookinfo-cluster-1 or reviews-bookinfo-cluster-2?", "something-else": "list all with: meshctl describe destination",
	} {
		_, err := cmdutil.Pick(index, snapshot.Destination, name)
		assert.ErrorContains(t, err, want, name)
	}
}
