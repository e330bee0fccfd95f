package kube

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

func TestUntil(t *testing.T) {
	t.Parallel()
	asked := 0
	require.NoError(t, Until(t.Context(), "third time", func(context.Context) error {
		if asked++; asked < 3 {
			return errors.New("not yet")
		}
		return nil
	}))
	assert.Equal(t, 3, asked)
}

func TestUntilSaysWhatWasSaidLast(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*pollEvery)
	defer cancel()
	last := errors.New("pod reviews-v1 is pending")
	err := Until(ctx, "waiting for pods", func(ctx context.Context) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return last
	})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, last)
	assert.ErrorContains(t, err, "waiting for pods")
}

func TestUntilGivesUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := errors.New("etcd ended")
	asked := 0
	err := Until(ctx, "waiting", func(context.Context) error {
		asked++
		return Final(ended)
	})
	require.ErrorIs(t, err, ended)
	assert.Equal(t, 1, asked)
}

func TestDecode(t *testing.T) {
	t.Parallel()
	objects, err := Decode([]byte("# a comment\n---\nkind: A\nmetadata: {name: a}\n---\n---\nkind: B\nmetadata: {name: b, namespace: ns}\n"))
	require.NoError(t, err)
	require.Len(t, objects, 2)
	assert.Equal(t, "A a", describe(objects[0]))
	assert.Equal(t, "B ns/b", describe(objects[1]))

	_, err = Decode([]byte("kind: A\n---\n]["))
	require.ErrorContains(t, err, "document 2")
}

func TestReadyContainers(t *testing.T) {
	t.Parallel()
	container := func(name, policy string) any {
		c := map[string]any{"name": name}
		if policy != "" {
			c["restartPolicy"] = policy
		}
		return c
	}
	status := func(name string, ready bool) any { return map[string]any{"name": name, "ready": ready} }
	for name, test := range map[string]struct {
		containers, inits, statuses, initStatuses []any
		want                                      string
		sidecar                                   bool
	}{
		"no sidecar": {
			containers: []any{container("app", "")}, statuses: []any{status("app", true)}, want: "1/1",
		},
		"sidecar among the containers": {
			containers: []any{container("app", ""), container("istio-proxy", "")},
			statuses:   []any{status("app", true), status("istio-proxy", false)}, want: "1/2", sidecar: true,
		},
		"sidecar among the init containers": {
			containers: []any{container("app", "")}, inits: []any{container("istio-init", ""), container("istio-proxy", "Always")},
			statuses: []any{status("app", true)}, initStatuses: []any{status("istio-init", true), status("istio-proxy", true)},
			want: "2/2", sidecar: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &unstructured.Unstructured{Object: map[string]any{
				"spec":   map[string]any{"containers": test.containers, "initContainers": test.inits},
				"status": map[string]any{"containerStatuses": test.statuses, "initContainerStatuses": test.initStatuses},
			}}
			assert.Equal(t, test.want, ReadyContainers(pod))
			assert.Equal(t, test.sidecar, hasSidecar(pod))
		})
	}
}

// TestStuck: an image that cannot be pulled ends the wait, with the reason.
func TestStuck(t *testing.T) {
	t.Parallel()
	pod := func(reason string) unstructured.Unstructured {
		return unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "a-1"},
			"status": map[string]any{"containerStatuses": []any{map[string]any{
				"image": "a:1", "state": map[string]any{"waiting": map[string]any{"reason": reason, "message": "no such host"}},
			}}},
		}}
	}
	require.NoError(t, stuck([]unstructured.Unstructured{pod("ContainerCreating")}))
	asked := 0
	err := Until(t.Context(), "waiting", func(context.Context) error {
		asked++
		return errors.Join(errors.New("0 of 1 pods ready"), stuck([]unstructured.Unstructured{pod("ContainerCreating"), pod("ImagePullBackOff")}))
	})
	require.ErrorContains(t, err, "pod a-1: image a:1 cannot be pulled: no such host")
	assert.Equal(t, 1, asked)
}

func TestMergeKubeconfigs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var paths []string
	for _, name := range []string{"b", "a"} {
		config := api.NewConfig()
		config.Clusters[name] = &api.Cluster{Server: "https://" + name}
		config.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
		config.AuthInfos[name] = &api.AuthInfo{Token: name}
		config.CurrentContext = name
		path := filepath.Join(dir, name)
		require.NoError(t, WriteKubeconfig(path, config))
		paths = append(paths, path)
	}
	merged := filepath.Join(dir, "merged")
	require.NoError(t, MergeKubeconfigs(merged, paths...))

	config, err := clientcmd.LoadFromFile(merged)
	require.NoError(t, err)
	assert.Equal(t, "b", config.CurrentContext)
	assert.Len(t, config.Contexts, 2)
	assert.Equal(t, "https://a", config.Clusters["a"].Server)
	info, err := os.Stat(merged)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

// TestStages: a Pod is rejected while its ServiceAccount or its Namespace is missing.
func TestStages(t *testing.T) {
	t.Parallel()
	var objects []*unstructured.Unstructured
	for _, kind := range []string{"Pod", "ServiceAccount", "Service", "CustomResourceDefinition", "Namespace"} {
		objects = append(objects, &unstructured.Unstructured{Object: map[string]any{"kind": kind}})
	}
	var kinds [][]string
	for _, stage := range stages(objects) {
		var names []string
		for _, obj := range stage {
			names = append(names, obj.GetKind())
		}
		kinds = append(kinds, names)
	}
	assert.Equal(t, [][]string{{"Namespace"}, {"CustomResourceDefinition"}, {"ServiceAccount"}, {"Pod", "Service"}}, kinds)
}
