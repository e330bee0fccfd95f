package initialize

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cluster"
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/create"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	registered "github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/wizards/wizardtest"
)

// fixture is two API servers with the objects of an Istio and an application,
// and a context whose cluster does not answer.
type fixture struct {
	t       *testing.T
	configs map[string]*rest.Config
	names   []string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{t: t, configs: map[string]*rest.Config{}}
	for _, server := range sandboxtest.APIServers(t, 2) {
		config, err := server.Config()
		require.NoError(t, err)
		w.configs["kind-"+server.Name()] = config
		w.populate(server.Name(), config)
	}
	w.configs["typo"] = rest.CopyConfig(w.configs["kind-cluster-2"])
	w.configs["typo"].Host = "https://" + sandboxtest.Address(t)
	w.names = []string{"kind-cluster-1", "kind-cluster-2", "typo"}
	return w
}

// populate writes the objects of the case bookinfo. No controller runs, so it
// also writes what controllers would create.
func (w *fixture) populate(name string, config *rest.Config) {
	w.t.Helper()
	client, err := kube.New(name, config)
	require.NoError(w.t, err)
	documents := []byte(`{apiVersion: v1, kind: Namespace, metadata: {name: istio-system}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: bookinfo, labels: {istio-injection: enabled}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: istio-sidecar-injector, labels: {app: sidecar-injector, istio.io/rev: default}}
webhooks:
- name: namespace.sidecar-injector.istio.io
  clientConfig: {service: {name: istiod, namespace: istio-system, path: /inject}}
  namespaceSelector: {matchLabels: {nothing: is-injected}}
  sideEffects: None
  admissionReviewVersions: [v1]
`)
	files, err := filepath.Glob("../../testdata/translate/bookinfo/in/" + name + "/*.yaml")
	require.NoError(w.t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(w.t, err)
		documents = append(append(documents, "---\n"...), data...)
	}
	objects, err := kube.Decode(documents)
	require.NoError(w.t, err)
	uids := map[types.UID]types.UID{}
	for _, kind := range []string{"Namespace", "MutatingWebhookConfiguration", "Node", "ServiceAccount", "ConfigMap", "Service", "Deployment", "ReplicaSet", "Pod", "EndpointSlice"} {
		for _, o := range objects {
			if o.GetKind() == kind {
				w.write(client, o, uids)
			}
			if account, _, _ := unstructured.NestedString(o.Object, "spec", "serviceAccountName"); account != "" && kind == "ServiceAccount" {
				sa := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
				sa.SetName(account)
				sa.SetNamespace(o.GetNamespace())
				w.write(client, sa, uids)
			}
		}
	}
}

// write creates an object with its status. The API server assigns new UIDs, so
// owner references are changed to match.
func (w *fixture) write(client *kube.Client, o *unstructured.Unstructured, uids map[types.UID]types.UID) {
	w.t.Helper()
	owners := o.GetOwnerReferences()
	for i := range owners {
		owners[i].UID = uids[owners[i].UID]
	}
	o.SetOwnerReferences(owners)
	if o.GetKind() == "ReplicaSet" {
		require.NoError(w.t, unstructured.SetNestedSlice(o.Object, []any{map[string]any{"name": "any", "image": "any"}}, "spec", "template", "spec", "containers"))
	}
	old, status := o.GetUID(), o.Object["status"]
	o.SetUID("")
	delete(o.Object, "status")
	require.NoError(w.t, client.Apply(w.t.Context(), o))
	if old != "" {
		seen, err := client.Get(w.t.Context(), schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: strings.ToLower(o.GetKind()) + "s"}, o.GetNamespace(), o.GetName())
		require.NoError(w.t, err)
		uids[old] = seen.GetUID()
	}
	if status != nil {
		o.Object["status"] = status
		require.NoError(w.t, client.ApplyStatus(w.t.Context(), o))
	}
}

func (w *fixture) factory() (f *cmdutil.Factory, out, errs *bytes.Buffer) {
	streams, _, out, errs := cmdutil.TestStreams()
	f = cmdutil.NewFactory(streams)
	f.Config = func(_, name string) (*rest.Config, error) {
		if config := w.configs[name]; config != nil {
			return config, nil
		}
		return nil, cmdutil.UnreachableErrorf("has no context %q", name)
	}
	f.Contexts = func(string) ([]string, string, error) { return w.names, "kind-cluster-2", nil }
	return f, out, errs
}

// init runs the command; a script answers, if there is one.
func (w *fixture) init(script *wizardtest.Script, args ...string) (stdout, stderr string, err error) {
	w.t.Helper()
	f, out, errs := w.factory()
	cmd := NewCmd(f, func(ctx context.Context, opts *Options) error {
		opts.Flags.Dir = w.t.TempDir()
		if script != nil {
			opts.Prompter = script
		}
		return initRun(ctx, opts)
	})
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(w.t.Context())
	return out.String(), errs.String(), err
}

// interrupted answers up to the question which workloads a policy applies to, with ctrl-c on
// the way, and returns the file with the answers.
func (w *fixture) interrupted() string {
	t := w.t
	t.Helper()
	t.Log("ctrl-c in the middle, before anything is written")
	_, stderr, err := w.init(wizardtest.New(t).
		Says("Set up meshctl\n").
		Says("Context typo is skipped: the cluster").
		Picks("management cluster?", "kind-cluster-1").
		PicksAll("Which clusters do you want to register?", "kind-cluster-1").
		GoesBack("context kind-cluster-1?").
		PresetsAll("Which clusters do you want to register?", "kind-cluster-1").
		GoesBack("context kind-cluster-1?").
		PicksAll("Which clusters do you want to register?", "kind-cluster-1", "kind-cluster-2").
		Accepts("context kind-cluster-1?", "cluster-1").
		Interrupts("context kind-cluster-2?"))
	require.ErrorIs(t, err, context.Canceled)
	answers := recovered(t, stderr)

	t.Log("on from there, and ctrl-c about the VirtualMesh")
	_, stderr, err = w.init(wizardtest.New(t).
		Rejects("context kind-cluster-2?", "cluster-1", "another cluster is already named cluster-1").
		Rejects("context kind-cluster-2?", "c.2", "lower-case letters, digits and hyphens").
		Accepts("context kind-cluster-2?", "cluster-2").
		GoesBack("Register cluster-1, cluster-2 now?").
		Accepts("context kind-cluster-2?", "cluster-2").
		Picks("Register cluster-1, cluster-2 now?", "yes").
		GoesBack("Join meshes into a VirtualMesh?").
		Says("This is the first question; ctrl-c cancels.").
		Picks("Join meshes into a VirtualMesh?", "yes").
		Says("New VirtualMesh\n").
		GoesBack("Which meshes do you want to join?").
		Presets("Join meshes into a VirtualMesh?", "yes").
		PicksAll("Which meshes do you want to join?", "gloo-mesh/istiod-istio-system-cluster-1", "gloo-mesh/istiod-istio-system-cluster-2").
		Interrupts("trust"), "--recover", answers)
	require.ErrorIs(t, err, context.Canceled)
	assert.Regexp(t, `Found in cluster-1: 1 mesh \(istiod-istio-system-cluster-1\), \d services, \d workloads`, stderr)
	assert.Contains(t, stderr, "--recover "+answers)

	t.Log("on from there, and ctrl-c about the policy")
	_, stderr, err = w.init(wizardtest.New(t).
		Picks("trust", "shared").
		Picks("reachable from other meshes?", "all").
		Picks("May all workloads call each other?", "").
		Accepts("Name of the object?", "virtual-mesh").
		Says("created ServiceEntry").
		Picks("What next?", "apply").
		Picks("Create a first policy?", "accesspolicy").
		GoesBack("What should it do?").
		Presets("Create a first policy?", "accesspolicy").
		GoesBack("What should it do?").
		Picks("Create a first policy?", "trafficpolicy").
		Picks("which services?", "names").
		PicksAll("Which services?", "reviews.bookinfo.cluster-1").
		Says("This selects 1 of").
		Interrupts("which workloads?"), "--recover", answers)
	require.ErrorIs(t, err, context.Canceled)
	assert.Contains(t, stderr, "VirtualMesh gloo-mesh/virtual-mesh created.")
	return answers
}

func TestInit(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	answers := w.interrupted()

	t.Log("on from there, to the end")
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	_, stderr, err := w.init(wizardtest.New(t).
		Picks("which workloads?", "all").
		Picks("Which requests?", "all").
		PicksAll("What should happen", "policy.requestTimeout").
		Accepts("How long", "5s").
		Accepts("Name of the object?", "reviews-traffic").
		Says("created VirtualService bookinfo/reviews").
		Picks("What next?", "save").
		Types("To which file?", policy), "--recover", answers)
	require.NoError(t, err, stderr)
	for _, command := range []string{
		"meshctl cluster register cluster-1 --remote-context kind-cluster-1 --mgmt-context kind-cluster-1",
		"meshctl cluster register cluster-2 --remote-context kind-cluster-2 --mgmt-context kind-cluster-1",
		"meshctl create trafficpolicy --context kind-cluster-1 reviews-traffic",
		"meshctl serve --context kind-cluster-1",
	} {
		assert.Contains(t, stderr, "  "+command)
	}

	t.Log("again: all is there, and shown as such")
	_, stderr, err = w.init(wizardtest.New(t).
		Picks("management cluster?", "kind-cluster-1").
		Says("Already registered: cluster-1 (context kind-cluster-1)").
		Says("Already registered: cluster-2 (context kind-cluster-2)").
		Picks("Create a first policy?", ""))
	require.NoError(t, err)
	assert.Contains(t, stderr, "Already joined: VirtualMesh gloo-mesh/virtual-mesh has 2 meshes")

	w.nextSteps()
	w.looksItself()

	t.Log("by flags: nothing new, but for the policy")
	flags := []string{"--context", "kind-cluster-1", "--register", "kind-cluster-1", "--register", "kind-cluster-2=cluster-2", "--all-meshes"}
	stdout, stderr, err := w.init(nil, append(flags, "--policy", policy, "--dry-run")...)
	require.NoError(t, err)
	assert.Contains(t, stdout, "requestTimeout: 5s")
	assert.Contains(t, stderr, "created VirtualService bookinfo/reviews")
	_, stderr, err = w.init(nil, append(flags, "--policy", policy, "--apply")...)
	require.NoError(t, err)
	assert.Contains(t, stderr, "already registered; nothing changed")
	assert.Contains(t, stderr, "TrafficPolicy gloo-mesh/reviews-traffic created.")
	w.commandsAgain(stderr)
}

// nextSteps has no serve among the next steps while one leads, and has it again when that one is gone.
func (w *fixture) nextSteps() {
	w.t.Helper()
	w.t.Log("a management plane runs, and then its Lease runs out")
	client, err := clientset.NewForConfig(w.configs["kind-cluster-1"])
	require.NoError(w.t, err)
	holder, renewed, seconds := "serve-1", metav1.NewMicroTime(time.Now()), int32(3600)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: registered.LeaseName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed, LeaseDurationSeconds: &seconds},
	}
	leases := client.CoordinationV1().Leases("gloo-mesh")
	lease, err = leases.Create(w.t.Context(), lease, metav1.CreateOptions{})
	require.NoError(w.t, err)
	said := func() string {
		w.t.Helper()
		_, stderr, err := w.init(wizardtest.New(w.t).Picks("management cluster?", "kind-cluster-1").Picks("Create a first policy?", ""))
		require.NoError(w.t, err)
		_, next, _ := strings.Cut(stderr, "Next steps:\n\n")
		return next
	}
	assert.Regexp(w.t, `^  meshctl check --context kind-cluster-1 .*\n  meshctl describe destination`, said())
	renewed = metav1.NewMicroTime(time.Now().Add(-2 * time.Hour))
	lease.Spec.RenewTime = &renewed
	_, err = leases.Update(w.t.Context(), lease, metav1.UpdateOptions{})
	require.NoError(w.t, err)
	assert.Regexp(w.t, `^  meshctl serve --context kind-cluster-1 .*\n  meshctl describe destination`, said())
}

// looksItself previews before serve has ever run: create looks into the clusters itself.
func (w *fixture) looksItself() {
	w.t.Helper()
	w.t.Log("before serve has ever run, create looks into the clusters itself")
	f, out, errs := w.factory()
	dry := create.NewCmd(f, nil)
	dry.SetArgs([]string{"trafficpolicy", "slow", "--context", "kind-cluster-1", "--destination", "ratings.bookinfo.cluster-1", "--timeout", "1s", "--dry-run"})
	require.NoError(w.t, dry.ExecuteContext(w.t.Context()))
	assert.Contains(w.t, out.String(), "requestTimeout: 1s")
	assert.Contains(w.t, errs.String(), "created VirtualService bookinfo/ratings")
}

// commandsAgain runs the commands that were shown, which find all done.
func (w *fixture) commandsAgain(stderr string) {
	w.t.Helper()
	_, shown, ok := strings.Cut(stderr, "Equivalent commands:\n\n")
	require.True(w.t, ok, stderr)
	shown, _, _ = strings.Cut(shown, "\n\n")
	lines := strings.Split(shown, "\n")
	require.Len(w.t, lines, 3, shown)
	for _, line := range lines {
		f, _, errs := w.factory()
		words := strings.Fields(line)
		cmd := cluster.NewCmd(f)
		if words[1] == "create" {
			cmd = create.NewCmd(f, nil)
		}
		cmd.SetArgs(words[2:])
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		require.NoError(w.t, cmd.ExecuteContext(w.t.Context()), line)
		assert.Regexp(w.t, `nothing changed|is registered again; the credentials of before are revoked`, errs.String())
	}
}

// recovered is the file in which the answers were saved.
func recovered(t *testing.T, stderr string) string {
	t.Helper()
	path := regexp.MustCompile(`--recover (\S+)`).FindStringSubmatch(stderr)
	require.Len(t, path, 2, stderr)
	return path[1]
}

func TestWithoutATerminalWhatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	w := &fixture{t: t}
	for name, c := range map[string]struct {
		args []string
		want []string
		not  string
	}{
		"all":        {nil, []string{"--context CONTEXT", "--register CONTEXT[=NAME] or --no-register", "--all-meshes, --mesh NAMESPACE/NAME or --no-virtual-mesh", "--apply or --dry-run"}, "--policy"},
		"what to do": {[]string{"--context", "a", "--no-register", "--no-virtual-mesh"}, []string{"--apply or --dry-run"}, "--register"},
		"meshes":     {[]string{"--context", "a", "--register", "b", "--trust", "shared", "--apply"}, []string{"--all-meshes, --mesh"}, "--apply"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := w.init(nil, c.args...)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
			assert.NotContains(t, err.Error(), c.not)
			assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(err))
		})
	}
}

func TestNothingToOffer(t *testing.T) {
	t.Parallel()
	w := &fixture{t: t, names: []string{"a", "b"}}
	_, stderr, err := w.init(wizardtest.New(t))
	require.ErrorContains(t, err, "no context of the kubeconfig leads to a cluster that can be used")
	assert.NotContains(t, stderr, "--recover", "no answer was given yet")
	assert.Equal(t, cmdutil.ExitUnreachable, cmdutil.ExitCode(err))

	f, _, _ := w.factory()
	f.Contexts = cmdutil.NewFactory(f.Streams).Contexts
	cmd := NewCmd(f, func(ctx context.Context, opts *Options) error {
		opts.Prompter = wizardtest.New(t)
		return initRun(ctx, opts)
	})
	cmd.SetArgs([]string{"--kubeconfig", filepath.Join(t.TempDir(), "none")})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	require.ErrorContains(t, err, "the file does not exist; set another one with --kubeconfig")
	assert.Equal(t, cmdutil.ExitUnreachable, cmdutil.ExitCode(err))
}

func TestNewCmd(t *testing.T) {
	t.Parallel()
	w := &fixture{t: t}
	f, _, _ := w.factory()
	var got *Options
	cmd := NewCmd(f, func(_ context.Context, o *Options) error { got = o; return nil })
	cmd.SetArgs([]string{"--context", "a", "--register", "b", "--register", "c=d", "--all-meshes", "--trust", "limited", "--policy", "p.yaml", "--apply", "--virtual-mesh", "v", "--plain", "--recover", "r"})
	require.NoError(t, cmd.ExecuteContext(t.Context()))
	assert.Equal(t, "a", got.MgmtContext)
	assert.Equal(t, []string{"b", "c=d"}, got.Register)
	assert.Equal(t, []string{"limited"}, got.VirtualMesh["trust"])
	assert.True(t, got.AllMeshes && got.Apply && got.Flags.Plain)
	assert.Equal(t, []string{"p.yaml", "v", "r", "gloo-mesh"}, []string{got.Policy, got.MeshName, got.Flags.Recover, got.MgmtNamespace})
	for _, args := range [][]string{
		{"--apply", "--dry-run"}, {"--all-meshes", "--mesh", "a/b"}, {"--register", "a", "--no-register"}, {"--policy", "p", "--no-policy"}, {"name"},
	} {
		f, _, _ := w.factory()
		cmd := NewCmd(f, func(context.Context, *Options) error { return nil })
		cmd.SetArgs(args)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		require.Error(t, cmd.ExecuteContext(t.Context()), args)
	}
}
