package dashboard

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/terminaltest"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/registration/registrationtest"
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
	source := startLive(t, config)
	w, err := newWritable(t.Context(), source)
	require.NoError(t, err)
	ref := snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "gloo-mesh", Name: "edited"}
	await(t, source, func(n *tui.Update) bool { return n.Index != nil && n.Index.Has(ref) })
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

	edit := func(draft *tui.Draft, sees, into string) *tui.Draft {
		w.prompter = wizardtest.New(t).Edits(sees, into)
		draft, err := w.Edit(t.Context(), ref, draft)
		require.NoError(t, err)
		return draft
	}
	draft := edit(nil, "requestTimeout: 1s", text)
	assert.Equal(t, draft.Before, draft.After, "nothing was changed")

	for _, c := range []struct{ into, refused string }{
		{change("requestTimeout: soon"), "requestTimeout"},
		{change("requestTimeOut: 2s"), "requestTimeOut"},
		{strings.Replace(text, "name: edited", "name: other", 1), "must stay"},
		{"kind: [", "not valid YAML"},
	} {
		draft = edit(nil, "requestTimeout: 1s", c.into)
		assert.Contains(t, w.Review(t.Context(), []tui.Draft{*draft}).Refused, c.refused)
		_, err := w.Write(t.Context(), draft)
		require.ErrorContains(t, err, c.refused)
	}
	draft = edit(draft, "kind: [", change("requestTimeout: 3s"))
	review := w.Review(t.Context(), []tui.Draft{*draft})
	assert.Empty(t, review.Refused)
	assert.Equal(t, []explain.PlannedChange{{Ref: ref, Verb: explain.Changed}}, review.Planned.Changes)
	assert.Equal(t, "1s", timeout(), "nothing is written by a review")
	said, err := w.Write(t.Context(), draft)
	require.NoError(t, err)
	assert.Contains(t, said, "was written")
	assert.Equal(t, "3s", timeout())

	// What somebody else wrote meanwhile stays, and is reported; a status does not matter.
	draft = edit(nil, "requestTimeout: 3s", change("requestTimeout: 4s"))
	stale := *draft
	reported := get()
	require.NoError(t, unstructured.SetNestedField(reported.Object, "ACCEPTED", "status", "state"))
	_, err = w.resource(ref).UpdateStatus(t.Context(), reported, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = w.Write(t.Context(), draft)
	require.NoError(t, err)
	assert.Equal(t, "4s", timeout())
	_, err = w.Write(t.Context(), &stale)
	require.ErrorIs(t, err, errChanged, "the timeout is another")
	assert.Contains(t, stale.Before, "requestTimeout: 4s")

	// The source still has the first text, which it has read: the review compares with what is stored.
	review = w.Review(t.Context(), []tui.Draft{*edit(nil, "requestTimeout: 4s", text)})
	assert.Empty(t, review.Refused)
	assert.Equal(t, []explain.PlannedChange{{Ref: ref, Verb: explain.Changed}}, review.Planned.Changes)

	draft, err = w.Remove(t.Context(), ref)
	require.NoError(t, err)
	review = w.Review(t.Context(), []tui.Draft{*draft})
	assert.Empty(t, review.Refused)
	assert.Equal(t, []explain.PlannedChange{{Ref: ref, Verb: explain.Deleted}}, review.Planned.Changes)
	get()
	another := *draft
	another.UID = "of another one"
	_, err = w.Write(t.Context(), &another)
	require.Error(t, err, "another object of the name is not deleted")
	said, err = w.Write(t.Context(), draft)
	require.NoError(t, err)
	assert.Contains(t, said, "was deleted")
	_, err = w.resource(ref).Get(t.Context(), ref.Name, metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err))

	assert.Empty(t, w.Refuses(ref))
	for _, kind := range []snapshot.Kind{snapshot.Destination, snapshot.Workload, snapshot.Mesh, snapshot.KubernetesCluster, snapshot.VirtualService} {
		assert.NotEmpty(t, w.Refuses(snapshot.Ref{Kind: kind}), "%s", kind)
	}
}

// TestWriteOfUnreadable deletes an object that older types of the API server took, and that meshctl
// cannot read.
func TestWriteOfUnreadable(t *testing.T) {
	t.Parallel()
	config, err := registrationtest.APIServers(t, 1)[0].Config()
	require.NoError(t, err)
	sandboxtest.MakeNamespace(t, config, snapshot.DefaultNamespace)
	w, err := newWritable(t.Context(), startLive(t, config))
	require.NoError(t, err)
	await(t, w, func(n *tui.Update) bool { return n.Index != nil })

	definitions := w.client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	_, err = definitions.Patch(t.Context(), "trafficpolicies.networking.mesh.gloo.solo.io", types.JSONPatchType, []byte(
		`[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema","value":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}]`), metav1.PatchOptions{})
	require.NoError(t, err)
	ref := snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: snapshot.DefaultNamespace, Name: "unreadable"}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.mesh.gloo.solo.io/v1", "kind": "TrafficPolicy",
		"metadata": map[string]any{"name": ref.Name}, "spec": map[string]any{"policy": []any{"?"}},
	}}
	waittest.NoError(t, "the API server takes the object", func() error {
		_, err := w.resource(ref).Create(t.Context(), object, metav1.CreateOptions{})
		return err
	})
	_, err = typed(ref, object)
	require.Error(t, err)

	draft, err := w.Remove(t.Context(), ref)
	require.NoError(t, err)
	assert.Empty(t, w.Review(t.Context(), []tui.Draft{*draft}).Refused)
	said, err := w.Write(t.Context(), draft)
	require.NoError(t, err)
	assert.Contains(t, said, "was deleted")
}

// TestWriteOnTheScreen edits and deletes in a real terminal, with a real editor, and looks at what
// the screen says before.
func TestWriteOnTheScreen(t *testing.T) {
	t.Parallel()
	cluster := sandboxtest.APIServers(t, 1)[0]
	config, err := cluster.Config()
	require.NoError(t, err)
	_, err = registration.Register(t.Context(), registration.Options{Name: "cluster-1", RemoteConfig: config, MgmtConfig: config})
	require.NoError(t, err)
	for _, manifests := range []string{virtualServices, aMesh, trafficPolicy("requestTimeout: 1s")} {
		sandboxtest.Apply(t, config, []byte(manifests))
	}
	stop := startServer(t, config, "v1")
	source := startLive(t, config)
	await(t, source, func(n *tui.Update) bool {
		return n.Index != nil && n.Index.Has(patient) && n.Index.Describe(patient).(*explain.Policy).State == "ACCEPTED"
	})
	stop()
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	stored := func() (*unstructured.Unstructured, error) {
		return client.Resource(patient.Kind.GroupVersionResource()).Namespace(patient.Namespace).Get(t.Context(), patient.Name, metav1.GetOptions{})
	}
	// Each edit replaces what a file says by what another one says.
	dir := t.TempDir()
	script := filepath.Join(dir, "edit.sed")
	edits := func(from, to string) {
		require.NoError(t, os.WriteFile(script, []byte("s/"+from+"/"+to+"/\n"), 0o600))
	}
	cmd := program(t, "--write", "--kubeconfig", cluster.Kubeconfig())
	cmd.Env = []string{"EDITOR=sed -i -f " + script}
	x := terminaltest.Start(t, cmd, 120, 40)
	x.Sees("[WRITE]", "[1 Fleet]", "cluster-1")
	x.Types("5")
	x.Sees("Policies [1]", "e edit", "ctrl-d delete")

	edits("name: reviews", "name: review")
	x.Types("e")
	x.Sees("Write TrafficPolicy gloo-mesh/patient?", "New issues", "review", "-        name: reviews", "+        name: review")
	x.Types("n")
	x.Sees("was not changed", "Policies [1]")

	edits("requestTimeout: 1s", "requestTimeout: soon")
	x.Types("e")
	x.Sees("Write TrafficPolicy gloo-mesh/patient?", "✗ ", "requestTimeout")
	x.Misses("y write")
	edits("requestTimeout: soon", "requestTimeout: 3s")
	x.Types("e")
	x.Sees("timeout: 3s, before 1s", "y write", "n leave it")
	policy, err := stored()
	require.NoError(t, err)
	assert.Equal(t, int64(1), policy.GetGeneration(), "nothing is written before the answer")
	x.Types("y")
	x.Sees("was written", "Policies [1]")
	policy, err = stored()
	require.NoError(t, err)
	assert.Equal(t, int64(2), policy.GetGeneration())

	x.Types("\x04")
	x.Sees("Delete TrafficPolicy gloo-mesh/patient?", "no longer 3s", "removed: VirtualService", "y delete")
	x.Types("\x1b")
	x.Sees("was not changed")
	x.Types("\x04")
	x.Sees("y delete")
	x.Types("y")
	x.Sees("was deleted")
	_, err = stored()
	assert.True(t, apierrors.IsNotFound(err))

	deletesSeveral(t, config, x)
	x.Types("q")
	ended(t, x, 0)
}

// deletesSeveral marks three policies and deletes them, of which the API server keeps one.
func deletesSeveral(t *testing.T, config *rest.Config, x *terminaltest.Terminal) {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	policies := client.Resource(patient.Kind.GroupVersionResource()).Namespace(patient.Namespace)
	names := []string{"first", "kept", "third"}
	for _, name := range names {
		sandboxtest.Apply(t, config, []byte(strings.Replace(trafficPolicy("requestTimeout: 1s"), "name: patient", "name: "+name, 1)))
	}
	sandboxtest.Apply(t, config, []byte(keepsOne))
	waittest.Until(t, "the API server keeps one", func() bool {
		return apierrors.IsInvalid(policies.Delete(t.Context(), "kept", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}))
	})
	x.Sees("Policies [3]", "first", "third")
	x.Types("g G\x00") // space, and ctrl-space
	x.Sees("Policies [3] 3 marked", "ctrl-d delete 3")
	x.Types("\x04")
	x.Sees("Delete 3 objects?", "3 policies change", "- TrafficPolicy gloo-mesh/first", "- TrafficPolicy gloo-mesh/third", "y delete 3")
	for _, name := range names {
		_, err := policies.Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err, "nothing is deleted before the answer")
	}
	x.Types("y")
	x.Sees("2 of 3 objects were deleted", "this one is kept", "gloo-mesh/first was deleted", "gloo-mesh/third was deleted")
	list, err := policies.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	assert.Equal(t, "kept", list.Items[0].GetName())
	x.Types("n")
	x.Sees("Policies [1] 1 marked", "kept")
	x.Types("@")
	x.Sees("What was deleted here", "TrafficPolicy gloo-mesh/third")
}

// keepsOne has the API server refuse to delete a policy.
const keepsOne = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: keeps}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [networking.mesh.gloo.solo.io], apiVersions: [v1], operations: [DELETE], resources: [trafficpolicies]}
  validations:
  - {expression: "oldObject.metadata.name != 'kept'", message: this one is kept}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: keeps}
spec: {policyName: keeps, validationActions: [Deny]}
`

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
