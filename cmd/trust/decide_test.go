package trust

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

var (
	rootA = strings.Repeat("a", 64)
	rootB = "b" + strings.Repeat("0", 63)
	rootC = "bc" + strings.Repeat("0", 62)
)

// virtualMesh has a generated root A that is established, unless changes say otherwise.
func virtualMesh(changes ...func(*networkingv1.VirtualMesh)) *networkingv1.VirtualMesh {
	vm := &networkingv1.VirtualMesh{ObjectMeta: metav1.ObjectMeta{Namespace: "gloo-mesh", Name: "vm", Annotations: map[string]string{"other": "stays"}}}
	vm.Spec.Meshes = []commonv1.ObjectRef{{Name: "one", Namespace: "gloo-mesh"}, {Name: "two", Namespace: "gloo-mesh"}}
	vm.Spec.MtlsConfig = &networkingv1.MTLSConfig{Shared: &networkingv1.SharedTrust{}}
	stands(networkingv1.TrustEstablished, rootA, rootA)(vm)
	for _, change := range changes {
		change(vm)
	}
	return vm
}

func stands(stage networkingv1.TrustStage, signs string, roots ...string) func(*networkingv1.VirtualMesh) {
	return func(vm *networkingv1.VirtualMesh) {
		vm.Status.Trust = &networkingv1.TrustStatus{Stage: stage, Root: signs}
		for _, root := range roots {
			vm.Status.Trust.Roots = append(vm.Status.Trust.Roots, networkingv1.TrustedRoot{Fingerprint: root})
		}
	}
}

func annotated(key, value string) func(*networkingv1.VirtualMesh) {
	return func(vm *networkingv1.VirtualMesh) { vm.Annotations[key] = value }
}

func withoutTrust(vm *networkingv1.VirtualMesh) { vm.Spec.MtlsConfig = nil }

func unread(vm *networkingv1.VirtualMesh) { vm.Status.Trust = nil }

func ownRoot(vm *networkingv1.VirtualMesh) {
	vm.Spec.MtlsConfig.Shared.RootCertificateAuthority = &networkingv1.RootCertificateAuthority{Secret: &commonv1.ObjectRef{Name: "our-root", Namespace: "pki"}}
}

func vault(vm *networkingv1.VirtualMesh) {
	vm.Spec.MtlsConfig.Shared.IntermediateCertificateAuthority = &networkingv1.IntermediateCertificateAuthority{Vault: &certificatesv1.VaultCA{}}
}

func limitedTrust(vm *networkingv1.VirtualMesh) {
	vm.Spec.MtlsConfig = &networkingv1.MTLSConfig{Limited: &networkingv1.LimitedTrust{}}
}

const held = snapshot.TrustPauseAnnotation

// set is an annotation as a decision has it; "-" removes it.
func set(d *decision) map[string]string {
	out := map[string]string{}
	for key, value := range d.annotations {
		out[key[strings.LastIndexByte(key, '/')+1:]] = "-"
		if value != nil {
			out[key[strings.LastIndexByte(key, '/')+1:]] = *value
		}
	}
	return out
}

// change edits a VirtualMesh.
type change = func(*networkingv1.VirtualMesh)

// decideCase is a command on a VirtualMesh.
type decideCase struct {
	do   string
	with []change
	root string
	// leaveOut is what --leave-out says.
	leaveOut []string
	// want are annotations, says is in what is said, and refused in the error.
	want          map[string]string
	says, refused string
}

func stamp(d time.Duration) change {
	return annotated(snapshot.TrustRotateAnnotation, noon().Add(d).Format(time.RFC3339))
}

var none = map[string]string{}

var decideCases = map[string]decideCase{
	"rotate":                    {do: "rotate", want: map[string]string{"rotate": "2026-01-01T12:00:00Z"}, says: "a new root was asked for"},
	"rotate again, soon":        {do: "rotate", with: []change{stamp(-time.Minute)}, want: none, says: "was already asked for at 2026-01-01T11:59:00Z"},
	"rotate again, later":       {do: "rotate", with: []change{stamp(-time.Hour)}, want: map[string]string{"rotate": "2026-01-01T12:00:00Z"}},
	"rotate after a rollback":   {do: "rotate", with: []change{annotated(snapshot.TrustRootAnnotation, rootA)}, want: map[string]string{"rotate": "2026-01-01T12:00:00Z", "root": "-"}},
	"rotate without a root":     {do: "rotate", with: []change{stands(networkingv1.TrustWaiting, "")}, want: map[string]string{"rotate": "2026-01-01T12:00:00Z"}},
	"rotate while distributing": {do: "rotate", with: []change{stands(networkingv1.TrustDistributing, rootB, rootA, rootB)}, refused: "is under way (DISTRIBUTING); wait until it is ESTABLISHED: meshctl trust show vm"},
	"rotate while issuing":      {do: "rotate", with: []change{stands(networkingv1.TrustIssuing, rootB, rootA, rootB)}, refused: "is under way"},
	"rotate while retiring":     {do: "rotate", with: []change{stands(networkingv1.TrustRetiring, rootB, rootB)}, refused: "is under way"},
	"rotate while paused":       {do: "rotate", with: []change{annotated(held, "true")}, refused: "meshctl trust resume vm"},
	"rotate an own root":        {do: "rotate", with: []change{ownRoot}, refused: "put another root and its key into Secret pki/our-root"},
	"rotate in Vault":           {do: "rotate", with: []change{vault}, refused: "exchange the root in Vault"},
	"rotate what is not shared": {do: "rotate", with: []change{withoutTrust}, refused: "set spec.mtlsConfig.shared"},
	"rotate unread":             {do: "rotate", with: []change{unread}, refused: "meshctl serve"},

	"pause":                    {do: "pause", want: map[string]string{"pause": "true"}, says: "meshctl trust resume vm"},
	"pause again":              {do: "pause", with: []change{annotated(held, "true")}, want: none, says: "nothing changed"},
	"pause an own root":        {do: "pause", with: []change{ownRoot}, want: map[string]string{"pause": "true"}},
	"pause what is not shared": {do: "pause", with: []change{withoutTrust}, refused: "set spec.mtlsConfig.shared"},
	"resume":                   {do: "resume", with: []change{annotated(held, "true")}, want: map[string]string{"pause": "-"}, says: "goes on"},
	"resume again":             {do: "resume", want: none, says: "was not paused"},
	"resume what is no longer": {do: "resume", with: []change{withoutTrust, annotated(held, "true")}, want: map[string]string{"pause": "-"}},
}

// members are the meshes of the VirtualMesh, and one that is not.
var members = []*discoveryv1.Mesh{member("one", "cluster-1"), member("two", "cluster-2"), member("three", "cluster-3")}

func member(name, cluster string) *discoveryv1.Mesh {
	m := &discoveryv1.Mesh{ObjectMeta: metav1.ObjectMeta{Namespace: "gloo-mesh", Name: name}}
	m.Spec.Istio = &discoveryv1.IstioMesh{Installation: discoveryv1.MeshInstallation{Cluster: cluster, Namespace: "istio-system"}}
	return m
}

const left = snapshot.TrustLeaveOutAnnotation

var leaveOutCases = map[string]decideCase{
	"left out from the beginning": {
		do: "rotate", leaveOut: []string{"cluster-1/team-a", "team-b"},
		want: map[string]string{"rotate": "2026-01-01T12:00:00Z", "leave-out": "cluster-1/team-a team-b"}, says: "It does not wait for cluster-1/team-a, team-b.",
	},
	"left out while it is under way": {
		do: "rotate", leaveOut: []string{"team-b", "team-a"}, with: []change{stands(networkingv1.TrustDistributing, rootB, rootA, rootB), annotated(left, "team-a")},
		want: map[string]string{"leave-out": "team-a team-b"}, says: "does not wait for team-b, team-a any more",
	},
	"left out right after it was asked for": {do: "rotate", leaveOut: []string{"team-a"}, with: []change{stamp(-time.Minute)}, want: map[string]string{"leave-out": "team-a"}},
	"left out again": {
		do: "rotate", leaveOut: []string{"team-a"}, with: []change{stands(networkingv1.TrustIssuing, rootB, rootA, rootB), annotated(left, "team-a")}, want: none, says: "nothing changed",
	},
	"left out of the exchange of an own root": {
		do: "rotate", leaveOut: []string{"team-a"}, with: []change{ownRoot, stands(networkingv1.TrustIssuing, rootB, rootA, rootB)}, want: map[string]string{"leave-out": "team-a"},
	},
	"left out of an own root that is not exchanged": {do: "rotate", leaveOut: []string{"team-a"}, with: []change{ownRoot}, refused: "put another root and its key"},
	"left out while paused":                         {do: "rotate", leaveOut: []string{"team-a"}, with: []change{annotated(held, "true")}, refused: "meshctl trust resume vm"},
	"the next waits again":                          {do: "rotate", with: []change{annotated(left, "team-a")}, want: map[string]string{"rotate": "2026-01-01T12:00:00Z", "leave-out": "-"}, says: "It waits for team-a, which the rotation before left out."},
	"a control plane":                               {do: "rotate", leaveOut: []string{"istio-system"}, refused: "it has the control plane of mesh one"},
	"a control plane of a cluster":                  {do: "rotate", leaveOut: []string{"cluster-2/istio-system"}, refused: "it has the control plane of mesh two"},
	"no control plane of a member":                  {do: "rotate", leaveOut: []string{"cluster-3/istio-system"}, refused: `no member is in cluster "cluster-3"; the clusters of its members: cluster-1, cluster-2`},
	"no namespace":                                  {do: "rotate", leaveOut: []string{"team a"}, refused: "is neither NAMESPACE nor CLUSTER/NAMESPACE"},
	"garbage":                                       {do: "rotate", leaveOut: []string{"a/b/c"}, refused: "is neither NAMESPACE nor CLUSTER/NAMESPACE"},
	"nothing":                                       {do: "rotate", leaveOut: []string{""}, refused: "is neither NAMESPACE nor CLUSTER/NAMESPACE"},
	"none of gateways":                              {do: "rotate", leaveOut: []string{"team-a"}, with: []change{limitedTrust}, refused: "no namespace is waited for"},
	"no stage":                                      {do: "rotate", leaveOut: []string{"team-a"}, with: []change{unread}, refused: "meshctl serve"},
}

var rollbackCases = map[string]decideCase{
	"rollback": {
		do: "rollback", with: []change{stands(networkingv1.TrustIssuing, rootB, rootA, rootB), stamp(-time.Minute)},
		want: map[string]string{"root": rootA, "rotate": "-"}, says: "root aaaaaaaaaaaaaaaa is to sign again",
	},
	"rollback while paused": {
		do: "rollback", with: []change{stands(networkingv1.TrustIssuing, rootB, rootA, rootB), annotated(held, "true")},
		want: map[string]string{"root": rootA}, says: "nothing changes before: meshctl trust resume vm",
	},
	"rollback again, not begun": {
		do: "rollback", with: []change{stands(networkingv1.TrustIssuing, rootB, rootA, rootB), annotated(snapshot.TrustRootAnnotation, rootA)},
		want: none, says: "was chosen to sign before",
	},
	"rollback again, under way": {
		do: "rollback", with: []change{stands(networkingv1.TrustIssuing, rootA, rootA, rootB), annotated(snapshot.TrustRootAnnotation, rootA)},
		want: none, says: "was chosen to sign before",
	},
	"rollback again, complete": {
		do: "rollback", with: []change{annotated(snapshot.TrustRootAnnotation, rootA)}, want: none, says: "was chosen to sign before",
	},
	"a rollback is taken back": {
		do: "rollback", root: "B0", with: []change{stands(networkingv1.TrustIssuing, rootA, rootA, rootB), annotated(snapshot.TrustRootAnnotation, rootA)},
		want: map[string]string{"root": rootB},
	},
	"rollback after the end": {do: "rollback", refused: "there is no former root to return to"},
	"rollback at the end": {
		do: "rollback", with: []change{stands(networkingv1.TrustRetiring, rootB, rootB)}, refused: "all 64 digits of its fingerprint",
	},
	"rollback at the end to a known root": {
		do: "rollback", root: rootA, with: []change{stands(networkingv1.TrustRetiring, rootB, rootB)}, want: map[string]string{"root": rootA},
		says: "is to sign again, if its key is still there.",
	},
	"rollback after the end to a known root": {
		do: "rollback", root: rootB, refused: "no root begins with",
	},
	"rollback of several": {
		do: "rollback", with: []change{stands(networkingv1.TrustIssuing, rootA, rootA, rootB, rootC)},
		refused: "choose one with --root: b000000000000000, bc00000000000000",
	},
	"rollback to one of several": {
		do: "rollback", root: "bc", with: []change{stands(networkingv1.TrustIssuing, rootA, rootA, rootB, rootC)}, want: map[string]string{"root": rootC},
	},
	"rollback to an ambiguous one": {
		do: "rollback", root: "b", with: []change{stands(networkingv1.TrustIssuing, rootA, rootA, rootB, rootC)}, refused: "give more digits to --root",
	},
	"rollback to an unknown one": {
		do: "rollback", root: "dd", with: []change{stands(networkingv1.TrustIssuing, rootA, rootA, rootB)}, refused: `no root begins with "dd"; choose one with --root: aaaaaaaaaaaaaaaa, b000000000000000`,
	},
	"rollback to the one that signs": {
		do: "rollback", root: "aa", with: []change{stands(networkingv1.TrustIssuing, rootA, rootA, rootB)}, want: none, says: "signs already",
	},
	"rollback of an own root":        {do: "rollback", with: []change{ownRoot}, refused: "Secret pki/our-root"},
	"rollback of what is not shared": {do: "rollback", with: []change{withoutTrust}, refused: "set spec.mtlsConfig.shared"},
	"rollback past a wrong pin": {
		do: "rollback", with: []change{stands(networkingv1.TrustIssuing, rootB, rootA, rootB), annotated(snapshot.TrustRootAnnotation, "no such")},
		want: map[string]string{"root": rootA},
	},
}

func TestDecide(t *testing.T) {
	t.Parallel()
	cases := maps.Clone(decideCases)
	maps.Copy(cases, rollbackCases)
	maps.Copy(cases, leaveOutCases)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, a := range actions() {
				if a.use != c.do {
					continue
				}
				got, err := a.decide(&Options{Now: noon, Root: c.root, LeaveOut: c.leaveOut, meshes: members}, virtualMesh(c.with...))
				if c.refused != "" {
					require.ErrorContains(t, err, c.refused)
					assert.ErrorContains(t, err, "VirtualMesh gloo-mesh/vm: ")
					return
				}
				require.NoError(t, err)
				assert.Equal(t, c.want, set(got))
				assert.Contains(t, got.done, c.says)
				return
			}
			require.Fail(t, "no such command", c.do)
		})
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	text := plan(virtualMesh(), &decision{})
	assert.Contains(t, text, "VirtualMesh gloo-mesh/vm: root aaaaaaaaaaaaaaaa is exchanged for a new one in these meshes:\n  gloo-mesh/one\n  gloo-mesh/two\n")
	assert.Contains(t, text, "No pod is restarted.")
	text = plan(virtualMesh(func(vm *networkingv1.VirtualMesh) { vm.Spec.MtlsConfig.AutoRestartPods = true }), &decision{leftOut: []string{"team-a"}})
	assert.Contains(t, text, "are restarted (autoRestartPods)")
	assert.Contains(t, text, "It does not wait for team-a.\nWorkloads there")
	text = plan(virtualMesh(), &decision{leftOut: []string{"team-a"}, underWay: true})
	assert.True(t, strings.HasPrefix(text, "VirtualMesh gloo-mesh/vm: the rotation goes on without team-a.\nWorkloads there"), text)
}

// TestLook: a wait ends when the root that it is for is established, and not before.
func TestLook(t *testing.T) {
	t.Parallel()
	look := func(w *waiter, changes ...func(*networkingv1.VirtualMesh)) (bool, string) {
		done, text, err := w.look(virtualMesh(changes...))
		require.NoError(t, err)
		return done, text
	}
	w := &waiter{decision: &decision{from: rootA}}
	done, text := look(w, unread)
	assert.False(t, done)
	assert.Contains(t, text, "no server has written")
	done, text = look(w)
	assert.False(t, done, "the rotation has not begun")
	assert.Contains(t, text, "waiting for meshctl serve: ESTABLISHED")
	done, text = look(w, stands(networkingv1.TrustDistributing, rootB, rootA, rootB), annotated(held, "true"))
	assert.False(t, done)
	assert.Equal(t, "DISTRIBUTING (paused; to go on: meshctl trust resume vm)", text)
	done, _ = look(w, stands(networkingv1.TrustRetiring, rootB, rootB))
	assert.False(t, done)
	done, _ = look(w, stands(networkingv1.TrustEstablished, rootB, rootB))
	assert.True(t, done)
	_, _, err := w.look(virtualMesh(stands(networkingv1.TrustIssuing, rootA, rootA, rootB)))
	require.ErrorContains(t, err, "root aaaaaaaaaaaaaaaa signs now, not the root that was waited for")

	back := &waiter{decision: &decision{from: rootB, to: rootA}}
	done, _ = look(back, stands(networkingv1.TrustIssuing, rootB, rootA, rootB))
	assert.False(t, done)
	done, _ = look(back, stands(networkingv1.TrustIssuing, rootA, rootA, rootB))
	assert.False(t, done)
	done, _ = look(back)
	assert.True(t, done)
}
