package trust

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/schematest"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/wizards"
)

const sharedTrust = `
apiVersion: networking.mesh.gloo.solo.io/v1
kind: VirtualMesh
metadata: {name: vm, namespace: gloo-mesh, annotations: {other: stays}}
spec:
  meshes: [{name: one, namespace: gloo-mesh}]
  mtlsConfig: {shared: {}}
`

// plane is a management cluster on which the test plays the server.
type plane struct {
	t         *testing.T
	factory   *cmdutil.Factory
	out, errs *bytes.Buffer
	meshes    dynamic.ResourceInterface
}

func newPlane(t *testing.T) *plane {
	t.Helper()
	waittest.SkipIfShort(t, "starts an API server")
	config, err := sandboxtest.APIServers(t, 1)[0].Config()
	require.NoError(t, err)
	_, err = registration.Register(t.Context(), registration.Options{Name: "cluster-1", RemoteConfig: config, MgmtConfig: config})
	require.NoError(t, err)
	sandboxtest.Apply(t, config, []byte(sharedTrust))
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	p := &plane{t: t, meshes: client.Resource(snapshot.VirtualMesh.GroupVersionResource()).Namespace("gloo-mesh")}
	streams, _, out, errs := cmdutil.TestStreams()
	p.out, p.errs = out, errs
	p.factory = cmdutil.NewFactory(streams)
	p.factory.Now = noon
	p.factory.Config = func(string, string) (*rest.Config, error) { return rest.CopyConfig(config), nil }
	return p
}

// run runs meshctl trust.
func (p *plane) run(ctx context.Context, args ...string) error {
	p.out.Reset()
	p.errs.Reset()
	cmd := NewCmd(p.factory)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	return cmd.ExecuteContext(ctx)
}

// stands writes where the trust stands.
func (p *plane) stands(stage networkingv1.TrustStage, signs string, roots ...string) {
	p.t.Helper()
	list := []any{}
	for _, root := range roots {
		list = append(list, map[string]any{"fingerprint": root})
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"trust": map[string]any{"stage": stage, "root": signs, "roots": list}}})
	require.NoError(p.t, err)
	_, err = p.meshes.Patch(context.WithoutCancel(p.t.Context()), "vm", types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	require.NoError(p.t, err)
}

func (p *plane) annotations() map[string]string {
	p.t.Helper()
	vm, err := p.meshes.Get(p.t.Context(), "vm", metav1.GetOptions{})
	require.NoError(p.t, err)
	return vm.GetAnnotations()
}

// answers is a prompter that gives one answer.
type answers struct {
	wizards.Prompter
	answer, asked string
}

func (a *answers) Select(q wizards.Question, _ []wizards.Option, _ string) (string, error) {
	a.asked = q.Text
	return a.answer, nil
}

// trigger calls do whenever a text is written.
type trigger struct {
	to   *bytes.Buffer
	when map[string]func()
}

func (w *trigger) Write(b []byte) (int, error) {
	for text, do := range w.when {
		if strings.Contains(string(b), text) {
			do()
		}
	}
	return w.to.Write(b)
}

// TestChange: the commands on an API server, on which the test writes what a server would.
func TestChange(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	const rotateKey, rootKey = snapshot.TrustRotateAnnotation, snapshot.TrustRootAnnotation
	asked := map[string]string{"other": "stays", rotateKey: "2026-01-01T12:00:00Z"}

	err := p.run(t.Context(), "rotate", "vm", "--yes")
	require.ErrorContains(t, err, "VirtualMesh gloo-mesh/vm: no server has written where its trust stands")
	assert.Equal(t, cmdutil.ExitNotFound, cmdutil.ExitCode(p.run(t.Context(), "rotate", "none", "--yes")))
	p.stands(networkingv1.TrustEstablished, rootA, rootA)

	// Asked, and refused by the user.
	no := &answers{answer: "no"}
	opts := &Options{Streams: p.factory.Streams, Now: noon, Prompter: no, VirtualMesh: "vm", action: actions()[0]}
	opts.Source.Factory, opts.Source.Namespace = p.factory, "gloo-mesh"
	require.NoError(t, changeRun(t.Context(), opts))
	assert.Equal(t, "Exchange the root of VirtualMesh gloo-mesh/vm?", no.asked)
	assert.Contains(t, p.errs.String(), "  1. A new root is made, and all workloads trust both (DISTRIBUTING).\n")
	assert.Contains(t, p.errs.String(), "Nothing was changed.")
	assert.Equal(t, map[string]string{"other": "stays"}, p.annotations())

	// Interrupted while it waits, and once more.
	ctx, cancel := context.WithCancel(t.Context())
	p.factory.Streams.Err = &trigger{p.errs, map[string]func(){"waiting for meshctl serve": cancel}}
	err = p.run(ctx, "rotate", "vm", "--yes", "--wait")
	p.factory.Streams.Err = p.errs
	require.ErrorIs(t, err, context.Canceled)
	assert.Contains(t, p.errs.String(), "Interrupted. What was asked for goes on; to see how far it is: meshctl trust show vm")
	assert.Equal(t, asked, p.annotations())
	require.NoError(t, p.run(t.Context(), "rotate", "vm", "--yes"))
	assert.Contains(t, p.errs.String(), "was already asked for at 2026-01-01T12:00:00Z")
	assert.Equal(t, asked, p.annotations())
	err = p.run(t.Context(), "rotate", "vm", "--yes", "--wait", "--timeout", "10ms")
	assert.Equal(t, cmdutil.ExitFailure, cmdutil.ExitCode(err))
	assert.True(t, err != nil && !errors.Is(err, context.Canceled), err)

	// All stages, each told once.
	p.factory.Streams.Err = &trigger{p.errs, map[string]func(){
		"waiting for meshctl serve": func() { p.stands(networkingv1.TrustDistributing, rootB, rootA, rootB) },
		"DISTRIBUTING":              func() { p.stands(networkingv1.TrustIssuing, rootB, rootA, rootB) },
		"ISSUING":                   func() { p.stands(networkingv1.TrustRetiring, rootB, rootB) },
		"RETIRING":                  func() { p.stands(networkingv1.TrustEstablished, rootB, rootB) },
	}}
	require.NoError(t, p.run(t.Context(), "rotate", "vm", "--yes", "--wait", "--timeout", "0"))
	p.factory.Streams.Err = p.errs
	for _, stage := range []string{"DISTRIBUTING", "ISSUING", "RETIRING", "ESTABLISHED"} {
		assert.Equal(t, 1, strings.Count(p.errs.String(), "   "+stage+"\n"), "%s once:\n%s", stage, p.errs.String())
	}

	// Under way: paused, rolled back, resumed.
	p.stands(networkingv1.TrustIssuing, rootB, rootA, rootB)
	require.ErrorContains(t, p.run(t.Context(), "rotate", "vm", "--yes"), "is under way (ISSUING)")
	require.NoError(t, p.run(t.Context(), "pause", "gloo-mesh/vm"))
	assert.Equal(t, "true", p.annotations()[snapshot.TrustPauseAnnotation])
	require.NoError(t, p.run(t.Context(), "rollback", "vm"))
	assert.Equal(t, map[string]string{"other": "stays", rootKey: rootA, snapshot.TrustPauseAnnotation: "true"}, p.annotations())
	require.NoError(t, p.run(t.Context(), "resume", "vm"))
	assert.Equal(t, map[string]string{"other": "stays", rootKey: rootA}, p.annotations())
	require.NoError(t, p.run(t.Context(), "show", "vm"))
	assert.Contains(t, p.out.String(), "VirtualMesh gloo-mesh/vm: ISSUING: 0 of 0 meshes have certificates of root b000000000000000")
	require.NoError(t, p.run(t.Context(), "show", "--clusters", "-o", "json"))
	schematest.Valid(t, "trust show", p.out.String())
	assert.Contains(t, p.out.String(), `"stage": "ISSUING"`)
}

// TestChangeOfAnother: somebody else writes between reading and writing, so that it is decided again.
func TestChangeOfAnother(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.stands(networkingv1.TrustEstablished, rootA, rootA)
	decided := 0
	a := action{use: "rotate", decide: func(o *Options, vm *networkingv1.VirtualMesh) (*decision, error) {
		if decided++; decided == 1 {
			p.stands(networkingv1.TrustDistributing, rootB, rootA, rootB)
		}
		return rotate(vm, nil, nil, o.Now())
	}}
	opts := &Options{Streams: p.factory.Streams, Now: noon, VirtualMesh: "vm", action: a}
	opts.Source.Factory, opts.Source.Namespace = p.factory, "gloo-mesh"
	require.ErrorContains(t, changeRun(t.Context(), opts), "is under way (DISTRIBUTING)")
	assert.Equal(t, 2, decided)
	assert.Equal(t, map[string]string{"other": "stays"}, p.annotations())
}
