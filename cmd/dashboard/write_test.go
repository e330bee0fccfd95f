package dashboard

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/tui"
	"github.com/meshctl/meshctl/wizards/wizardtest"
)

// The dashboard takes it for what can change objects.
var _ tui.Changer = (*writable)(nil)

// TestWrite edits and deletes on a real API server, which is asked before.
func TestWrite(t *testing.T) {
	t.Parallel()
	config := management(t)
	sandboxtest.Apply(t, config, []byte("apiVersion: networking.mesh.gloo.solo.io/v1\nkind: TrafficPolicy\nmetadata: {name: edited, namespace: gloo-mesh}\nspec: {policy: {requestTimeout: 1s}}\n"))
	w, err := newWritable(t.Context(), startLive(t, config))
	require.NoError(t, err)
	ref := snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "gloo-mesh", Name: "edited"}
	get := func() *unstructured.Unstructured {
		o, err := w.resource(ref).Get(t.Context(), ref.Name, metav1.GetOptions{})
		require.NoError(t, err)
		return o
	}
	timeout := func() string {
		text, _, err := unstructured.NestedString(get().Object, "spec", "policy", "requestTimeout")
		require.NoError(t, err)
		return text
	}
	text, err := editable(get())
	require.NoError(t, err)
	assert.NotContains(t, text, "resourceVersion")
	change := func(to string) string { return strings.Replace(text, "requestTimeout: 1s", to, 1) }

	w.ask = wizardtest.New(t).Edits("requestTimeout: 1s", text)
	said, err := w.Edit(t.Context(), ref)
	require.NoError(t, err)
	assert.Contains(t, said, "was not changed")

	w.ask = wizardtest.New(t).
		Edits("requestTimeout: 1s", change("requestTimeout: soon")).Says("requestTimeout").Picks("cannot be written", again).
		Edits("requestTimeout: soon", change("requestTimeOut: 2s")).Says("requestTimeOut").Picks("cannot be written", again).
		Edits("requestTimeOut", strings.Replace(text, "name: edited", "name: other", 1)).Says("must stay").Picks("cannot be written", again).
		Edits("name: other", change("requestTimeout: 2s")).Picks("Write TrafficPolicy gloo-mesh/edited?", giveUp)
	said, err = w.Edit(t.Context(), ref)
	require.NoError(t, err)
	assert.Contains(t, said, "was not changed")
	assert.Equal(t, "1s", timeout(), "nothing is written without a yes")

	w.ask = wizardtest.New(t).Edits("requestTimeout: 1s", change("requestTimeout: 3s")).Presets("Write TrafficPolicy", goOn)
	said, err = w.Edit(t.Context(), ref)
	require.NoError(t, err)
	assert.Contains(t, said, "was written")
	assert.Equal(t, "3s", timeout())

	// What somebody else wrote meanwhile stays, and is reported; a status does not matter.
	before, err := editable(get())
	require.NoError(t, err)
	next, err := parse(ref, get(), change("requestTimeout: 4s"))
	require.NoError(t, err)
	reported := get()
	require.NoError(t, unstructured.SetNestedField(reported.Object, "ACCEPTED", "status", "state"))
	_, err = w.resource(ref).UpdateStatus(t.Context(), reported, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, w.put(t.Context(), ref, next, &before, metav1.UpdateOptions{}))
	assert.Equal(t, "4s", timeout())
	require.ErrorIs(t, w.put(t.Context(), ref, next, &before, metav1.UpdateOptions{}), errChanged, "the timeout is another")
	assert.Contains(t, before, "requestTimeout: 4s")

	w.ask = wizardtest.New(t).Presets("Delete TrafficPolicy gloo-mesh/edited", giveUp)
	said, err = w.Delete(t.Context(), ref)
	require.NoError(t, err)
	assert.Contains(t, said, "was not deleted")
	get()
	w.ask = wizardtest.New(t).Picks("Delete TrafficPolicy gloo-mesh/edited", goOn)
	said, err = w.Delete(t.Context(), ref)
	require.NoError(t, err)
	assert.Contains(t, said, "was deleted")
	_, err = w.resource(ref).Get(t.Context(), ref.Name, metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err))

	assert.Empty(t, w.Refuses(ref))
	for _, kind := range []snapshot.Kind{snapshot.Destination, snapshot.Workload, snapshot.Mesh, snapshot.KubernetesCluster, snapshot.VirtualService} {
		assert.NotEmpty(t, w.Refuses(snapshot.Ref{Kind: kind}), "%s", kind)
	}
}

// TestWriteNeedsCluster: a folder is changed with an editor.
func TestWriteNeedsCluster(t *testing.T) {
	t.Parallel()
	streams, _, _, _ := cmdutil.TestStreams()
	cmd := NewCmd(cmdutil.NewFactory(streams), func(context.Context, *Options) error { return nil })
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	cmd.SetArgs([]string{bookinfo, "--write"})
	require.ErrorContains(t, cmd.Execute(), "edit its files")
}
