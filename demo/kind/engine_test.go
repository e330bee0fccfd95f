package kind

import (
	"archive/tar"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/manifests"
)

// engineScript is a container engine that says something.
func engineScript(t *testing.T, command, script string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, command), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	t.Setenv("PATH", dir)
	t.Setenv(providerVariable, "")
}

func TestNoEngine(t *testing.T) {
	engineScript(t, "ls", "")
	_, err := FindEngine()
	require.ErrorIs(t, err, ErrNoEngine)
	require.ErrorContains(t, err, "neither docker nor podman is on the PATH")
	t.Setenv(providerVariable, "nerdctl")
	_, err = FindEngine()
	require.ErrorContains(t, err, "KIND_EXPERIMENTAL_PROVIDER=nerdctl, but docker or podman is wanted")
}

//nolint:paralleltest // it sets the environment
func TestEngineThatDoesNotRun(t *testing.T) {
	engineScript(t, "docker", "echo Cannot connect to the Docker daemon. >&2; exit 1")
	engine, err := FindEngine()
	require.NoError(t, err)
	err = engine.Check(t.Context())
	require.ErrorIs(t, err, ErrNoEngine)
	assert.Equal(t, "no container engine: docker info: exit status 1: Cannot connect to the Docker daemon.; "+
		"start docker, or see that you may use it (`docker info` must work)", err.Error())
}

//nolint:paralleltest // it sets the environment
func TestEngineMemory(t *testing.T) {
	for memory, want := range map[string]string{
		"2147483648": "podman has 2.0 GiB of memory, and two clusters with Istio need 4 GiB",
		"8589934592": "",
		"unknown":    "",
	} {
		t.Run(memory, func(t *testing.T) {
			engineScript(t, "podman", "echo "+memory)
			engine, err := FindEngine()
			require.NoError(t, err)
			err = engine.Check(t.Context())
			if want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, want)
		})
	}
}

func TestRunsInContainers(t *testing.T) {
	t.Parallel()
	text := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(text, []byte("#!/bin/sh\n"), 0o755))
	require.ErrorIs(t, runsInContainers(text), errNotForContainers)
	if shell, err := exec.LookPath("bash"); err == nil {
		require.ErrorContains(t, runsInContainers(shell), "it needs libraries")
	}
}

func TestPack(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	require.NoError(t, pack(&packed, strings.NewReader("binary"), 6))
	archive := tar.NewReader(&packed)
	header, err := archive.Next()
	require.NoError(t, err)
	assert.Equal(t, "meshctl", header.Name)
	assert.Equal(t, int64(0o755), header.Mode)
	_, err = archive.Next()
	require.Error(t, err, "there is nothing else")
}

// TestReplace: every Deployment of bookinfo runs the application, and requests can be sent from it.
func TestReplace(t *testing.T) {
	t.Parallel()
	for _, cluster := range []string{"cluster-1", "cluster-2"} {
		bookinfo, err := manifests.Bookinfo(cluster)
		require.NoError(t, err)
		objects, err := kube.Decode(bookinfo)
		require.NoError(t, err)
		require.NoError(t, Replace(objects, cluster, "image:tag"))
		for _, o := range objects {
			if o.GetKind() != "Deployment" {
				continue
			}
			containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
			require.NoError(t, err)
			c := containers[0].(map[string]any)
			assert.Equal(t, "image:tag", c["image"])
			var args []string
			for _, a := range c["args"].([]any) {
				args = append(args, a.(string))
			}
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Name: o.GetName() + "-abc-x", Labels: map[string]string{"pod-template-hash": "abc"},
					OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: o.GetName() + "-abc"}},
				},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "istio-proxy"}, {Name: c["name"].(string), Args: args}}},
			}
			assert.Equal(t, c["name"], container(pod))
			assert.Equal(t, o.GetName(), workload(pod))
		}
	}
	assert.Empty(t, container(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "other", Args: []string{"serve"}}}}}))
}
