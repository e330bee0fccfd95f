package explain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

var (
	trustNoon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	trustMesh = snapshot.Ref{Kind: snapshot.VirtualMesh, Namespace: "gloo-mesh", Name: "virtual-mesh"}
	former    = "fd762fde166b3abb9bb68980e290de6c72cf22f6ecc035e8676fc63159d44939"
	next      = "8a0956311647187d73d47ac672d55da73c8feae40cd9fd177414b72e75e0693f"
)

func after(days int) *metav1.Time {
	return &metav1.Time{Time: trustNoon.Add(time.Duration(days) * 24 * time.Hour)}
}

func member(cluster int, state, root string, notAfter *metav1.Time) networkingv1.MemberTrust {
	ref := commonv1.ObjectRef{Name: fmt.Sprintf("istiod-istio-system-cluster-%d", cluster), Namespace: "gloo-mesh"}
	return networkingv1.MemberTrust{Mesh: ref, State: state, Root: root, NotAfter: notAfter}
}

// trustInput has two members of a shared trust. Read are the clusters as well, with reports.
func trustInput(t *testing.T, read bool, change func(*networkingv1.VirtualMesh)) *snapshot.Input {
	t.Helper()
	in := load(t, "trust-rotating")
	if !read {
		in = stored(engine.Translate(in))
	}
	vm, ok := in.Find(trustMesh).DeepCopyObject().(*networkingv1.VirtualMesh)
	require.True(t, ok)
	change(vm)
	in, err := in.With("", vm)
	require.NoError(t, err)
	return in
}

func codesOf(issues []snapshot.Issue) []string {
	out := []string{}
	for _, i := range issues {
		out = append(out, string(i.Code)+" "+i.Target.Name)
	}
	return out
}

// trustStage is a status of a VirtualMesh, and what is reported about it.
type trustStage struct {
	status  *networkingv1.TrustStatus
	summary string
	uses    string
	issues  []string
}

// trustStages has a status of each stage, by name.
func trustStages() map[string]trustStage {
	ends, soon := after(3650), after(30)
	roots := []networkingv1.TrustedRoot{{Fingerprint: next, NotAfter: ends}, {Fingerprint: former, NotAfter: ends}}
	both := func(root string) []networkingv1.MemberTrust {
		return []networkingv1.MemberTrust{member(1, "FINISHED", root, after(300)), member(2, "FINISHED", root, after(300))}
	}
	return map[string]trustStage{
		"nothing written": {nil, "no stage is known (shared, root created by meshctl)", "", []string{}},
		"waiting": {
			&networkingv1.TrustStatus{Stage: networkingv1.TrustWaiting, Message: "no root", Members: []networkingv1.MemberTrust{member(1, "", "", nil), member(2, "", "", nil)}},
			"WAITING: there is no root to sign with", "", []string{},
		},
		"distributing": {
			&networkingv1.TrustStatus{Stage: networkingv1.TrustDistributing, Root: next, Roots: roots, Members: both(former)},
			"DISTRIBUTING: 0 of 2 meshes have certificates of root 8a0956311647187d; it expires at 2035-12-30T12:00:00Z", "SIGNS IN_USE", []string{},
		},
		"issuing": {
			&networkingv1.TrustStatus{Stage: networkingv1.TrustIssuing, Root: next, Roots: roots, Members: append(both(next)[:1], both(former)[1])},
			"ISSUING: 1 of 2 meshes have certificates of root 8a0956311647187d; it expires at 2035-12-30T12:00:00Z", "SIGNS IN_USE", []string{},
		},
		"retiring": {
			&networkingv1.TrustStatus{Stage: networkingv1.TrustRetiring, Root: next, Roots: roots, Members: both(next)},
			"RETIRING: 2 of 2 meshes trust root 8a0956311647187d; it expires at 2035-12-30T12:00:00Z", "SIGNS LEAVING", []string{},
		},
		"retiring and paused": {
			&networkingv1.TrustStatus{Stage: networkingv1.TrustRetiring, Paused: true, Root: next, Roots: roots, Members: both(next)},
			"RETIRING (paused): 2 of 2 meshes trust root 8a0956311647187d; it expires at 2035-12-30T12:00:00Z", "SIGNS LEAVING", []string{},
		},
		"established": {
			&networkingv1.TrustStatus{Stage: networkingv1.TrustEstablished, Root: next, Roots: roots[:1], Members: both(next)},
			"ESTABLISHED: 2 of 2 meshes trust root 8a0956311647187d; it expires at 2035-12-30T12:00:00Z", "SIGNS", []string{},
		},
		"the root expires soon": {
			&networkingv1.TrustStatus{Stage: networkingv1.TrustEstablished, Root: next, Roots: []networkingv1.TrustedRoot{{Fingerprint: next, NotAfter: soon}}, Members: both(next)},
			"ESTABLISHED: 2 of 2 meshes trust root 8a0956311647187d; it expires at 2026-01-31T12:00:00Z", "SIGNS", []string{"RootExpires "},
		},
		"one that leaves may expire": {
			&networkingv1.TrustStatus{Stage: networkingv1.TrustRetiring, Root: next, Roots: []networkingv1.TrustedRoot{{Fingerprint: former, NotAfter: soon}, roots[0]}, Members: both(next)},
			"RETIRING: 2 of 2 meshes trust root 8a0956311647187d; it expires at 2035-12-30T12:00:00Z", "SIGNS LEAVING", []string{},
		},
		"an agent that does not answer": {
			&networkingv1.TrustStatus{Stage: networkingv1.TrustDistributing, Root: next, Roots: roots[:1], Members: []networkingv1.MemberTrust{both(next)[0], member(2, "", "", nil)}},
			"DISTRIBUTING: 1 of 2 meshes have certificates of root 8a0956311647187d; it expires at 2035-12-30T12:00:00Z", "SIGNS",
			[]string{"AgentSilent istiod-istio-system-cluster-2"},
		},
		"more members than a status has": {
			&networkingv1.TrustStatus{Stage: networkingv1.TrustEstablished, Root: next, Roots: roots[:1], Members: both(next)[:1]},
			"ESTABLISHED: 2 of 2 meshes trust root 8a0956311647187d; it expires at 2035-12-30T12:00:00Z", "SIGNS", []string{},
		},
		// The certificates live a year, and are renewed when a tenth of that is left.
		"a certificate that will be renewed": {
			&networkingv1.TrustStatus{Stage: networkingv1.TrustEstablished, Root: next, Roots: roots[:1], Members: []networkingv1.MemberTrust{both(next)[0], member(2, "FINISHED", next, after(30))}},
			"ESTABLISHED: 2 of 2 meshes trust root 8a0956311647187d; it expires at 2035-12-30T12:00:00Z", "SIGNS", []string{},
		},
		"a certificate that was not renewed": {
			&networkingv1.TrustStatus{Stage: networkingv1.TrustEstablished, Root: next, Roots: roots[:1], Members: []networkingv1.MemberTrust{both(next)[0], member(2, "FINISHED", next, after(10))}},
			"ESTABLISHED: 2 of 2 meshes trust root 8a0956311647187d; it expires at 2035-12-30T12:00:00Z", "SIGNS",
			[]string{"CertificateOverdue istiod-istio-system-cluster-2"},
		},
	}
}

// TestTrustStages: what is told from the status alone, by who cannot read the clusters.
func TestTrustStages(t *testing.T) {
	t.Parallel()
	for name, c := range trustStages() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := trustInput(t, false, func(vm *networkingv1.VirtualMesh) { vm.Status.Trust = c.status })
			index := explain.NewStored(engine.Translate(in))
			trust := index.Trust(trustMesh, trustNoon)
			require.NotNil(t, trust)
			assert.True(t, trust.Shared)
			assert.Equal(t, c.summary, trust.Summary())
			var uses []string
			for _, r := range trust.Roots {
				uses = append(uses, string(r.Use))
			}
			assert.Equal(t, c.uses, strings.Join(uses, " "))
			assert.Equal(t, c.issues, codesOf(trust.Issues))
			assert.Len(t, trust.Members, 2)
			for _, i := range trust.Issues {
				assert.NotEmpty(t, i.Hint, "a next step")
			}

			// The descriptions say the same, once there is something to say.
			vm := describe[*explain.VirtualMesh](t, index, snapshot.VirtualMesh, "virtual-mesh")
			mesh := describe[*explain.Mesh](t, index, snapshot.Mesh, "istiod-istio-system-cluster-2")
			if c.status == nil {
				assert.Nil(t, vm.CommonTrust)
				assert.Nil(t, mesh.CommonTrust)
				return
			}
			trust.Issues = nil
			assert.Equal(t, trust, vm.CommonTrust)
			assert.Equal(t, &trust.Members[1], mesh.CommonTrust)
			assert.Contains(t, fmt.Sprint(mesh.Page().Sections), c.summary)
			assert.Contains(t, fmt.Sprint(vm.Page().Sections), c.summary)
		})
	}
}

// TestTrustOfTheRoot: what exchanges a root that expires depends on whose it is.
func TestTrustOfTheRoot(t *testing.T) {
	t.Parallel()
	hint := func(change func(*networkingv1.VirtualMesh)) string {
		in := trustInput(t, false, func(vm *networkingv1.VirtualMesh) {
			vm.Status.Trust = &networkingv1.TrustStatus{Stage: networkingv1.TrustEstablished, Root: next, Roots: []networkingv1.TrustedRoot{{Fingerprint: next, NotAfter: after(-1)}}}
			vm.Status.Trust.Members = []networkingv1.MemberTrust{member(1, "FINISHED", next, nil), member(2, "FINISHED", next, nil)}
			change(vm)
		})
		trust := explain.NewStored(engine.Translate(in)).Trust(trustMesh, trustNoon)
		require.Equal(t, []string{"RootExpires "}, codesOf(trust.Issues))
		assert.Equal(t, snapshot.Error, trust.Issues[0].Severity)
		assert.Contains(t, trust.Issues[0].Message, "root 8a0956311647187d expired at 2025-12-31T12:00:00Z")
		return trust.Issues[0].Hint
	}
	assert.Contains(t, hint(func(*networkingv1.VirtualMesh) {}), "meshctl trust rotate virtual-mesh")
	assert.Contains(t, hint(func(vm *networkingv1.VirtualMesh) {
		vm.Annotations = map[string]string{snapshot.TrustPauseAnnotation: "true"}
	}), "meshctl trust resume virtual-mesh")
	assert.Contains(t, hint(func(vm *networkingv1.VirtualMesh) {
		vm.Spec.MtlsConfig.Shared.RootCertificateAuthority = &networkingv1.RootCertificateAuthority{Secret: &commonv1.ObjectRef{Namespace: "pki", Name: "our-root"}}
	}), "Secret pki/our-root")
}

// TestTrustReports: with the clusters, agents tell more, and whatever they tell is bounded.
func TestTrustReports(t *testing.T) {
	t.Parallel()
	in := trustInput(t, true, func(vm *networkingv1.VirtualMesh) {
		vm.Status.Trust.Members = nil // more than a hundred others are waited for
	})
	ref := snapshot.Ref{Kind: snapshot.IssuedCertificate, Cluster: "cluster-2", Namespace: "gloo-mesh", Name: "istiod-istio-system-cluster-2"}
	hostile, ok := in.Find(ref).DeepCopyObject().(*certificatesv1.IssuedCertificate)
	require.True(t, ok)
	evil := "\x1b[2J\u202e" + strings.Repeat("é", 100_000)
	hostile.Status.State = certificatesv1.IssuedCertificateState(evil)
	r := hostile.Status.Trust
	r.WaitingFor, r.Trusted, r.Presented = evil, []string{evil, evil + "x", former, "00"}, []string{former[:63] + "g"}
	r.Issuer.Root, r.Issuer.SerialNumber, r.Trusting.Waiting = evil, evil, []string{evil}
	in, err := in.With("cluster-2", hostile)
	require.NoError(t, err)
	trust := explain.New(engine.Translate(in)).Trust(trustMesh, trustNoon)

	one, two := trust.Members[0], trust.Members[1]
	require.NotNil(t, one.Report)
	assert.Equal(t, []string{former, next}, one.Report.Trusted)
	assert.Equal(t, []string{next}, one.Report.Presented)
	assert.Equal(t, certificatesv1.TrustProgress{Done: 12, Total: 12, Unseen: 2}, *one.Report.Trusting)
	assert.Equal(t, "1f0a", one.Certificate.Serial)
	assert.Equal(t, "virtual-mesh.gloo-mesh.next", trust.Root.Secret.Name)

	require.Len(t, trust.Roots, 2, "only what can be a fingerprint")
	assert.Equal(t, explain.RootLeaving, trust.Roots[1].Use, "no agent says that it is presented")
	for _, text := range []string{two.State, two.Message, two.Certificate.Root, two.Certificate.Serial, two.Report.Trusting.Waiting[0], two.Report.Trusted[0]} {
		assert.LessOrEqual(t, utf8.RuneCountInString(text), 501)
	}
	for _, page := range []explain.Page{trust.Page(), trust.WidePage()} {
		for _, s := range page.Sections {
			for _, row := range s.Rows {
				require.True(t, s.Header == nil || len(s.Header) == len(row), s.Title)
				for _, cell := range row {
					assert.True(t, utf8.ValidString(cell))
					assert.Less(t, len(cell), 10_000)
				}
			}
		}
	}
}

// TestTrustOfFrozenClusters: who cannot be read is not heard.
func TestTrustOfFrozenClusters(t *testing.T) {
	t.Parallel()
	in := trustInput(t, true, func(*networkingv1.VirtualMesh) {})
	clusters := make([]*snapshot.Cluster, len(in.Clusters))
	for i, c := range in.Clusters {
		frozen := *c
		frozen.Sync, frozen.Reason = snapshot.Stale, "no answer"
		clusters[i] = &frozen
	}
	out := *in
	out.Clusters = clusters
	trust := explain.New(engine.Translate(&out)).Trust(trustMesh, trustNoon)
	codes := codesOf(trust.Issues)
	assert.Contains(t, codes, "AgentSilent istiod-istio-system-cluster-1")
	assert.Contains(t, codes, "AgentSilent istiod-istio-system-cluster-2")
	assert.Nil(t, explain.New(engine.Translate(in)).Trust(snapshot.Ref{Kind: snapshot.VirtualMesh, Name: "none"}, trustNoon))
}

// TestTrustApart: members without a shared trust.
func TestTrustApart(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"roots-match":   "no shared trust: 2 of 2 meshes trust root c180deee4fbf339d",
		"roots-differ":  "no shared trust: the meshes trust no common root",
		"bookinfo":      "no shared trust: the roots of 2 of 2 meshes are not known",
		"names-stick":   "",
		"roots-overlap": "",
	} {
		index := explain.New(engine.Translate(load(t, name)))
		for _, ref := range index.Refs(snapshot.VirtualMesh) {
			trust := index.Trust(ref, trustNoon)
			if want != "" {
				assert.Equal(t, want, trust.Summary(), name)
			} else {
				assert.Contains(t, trust.Summary(), "no shared trust: ", name)
			}
			assert.NotEmpty(t, trust.Page().Sections)
		}
	}
}
