package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// report has agents write the IssuedCertificates that are asked of them, and what they see of it.
func (h *history) report() *snapshot.Input {
	states := []certificatesv1.IssuedCertificateState{
		"", certificatesv1.IssuedCertificatePending, certificatesv1.IssuedCertificateRequested, certificatesv1.IssuedCertificateIssued,
		certificatesv1.IssuedCertificateFinished, certificatesv1.IssuedCertificateFailed,
	}
	in := h.in
	for o := range h.state.Output.Objects {
		spec, ok := o.Content.Spec.(*certificatesv1.IssuedCertificateSpec)
		if !ok || in.Cluster(o.Ref.Cluster) == nil || h.r.Intn(3) == 0 {
			continue
		}
		issued := &certificatesv1.IssuedCertificate{ObjectMeta: metav1.ObjectMeta{Name: o.Ref.Name, Namespace: o.Ref.Namespace, Generation: 1}, Spec: *spec.DeepCopy()}
		issued.Status.State = states[h.r.Intn(len(states))]
		issued.Status.ObservedGeneration = int64(h.r.Intn(2))
		if h.r.Intn(4) > 0 {
			issued.Status.Trust = &certificatesv1.TrustReport{
				UserSecret: h.r.Intn(8) == 0, Trusted: h.fingerprints(), Presented: h.fingerprints(),
				Issuer: &certificatesv1.CertificateInfo{Root: fingerprintOf(someRoots()[h.r.Intn(historyRoots)])},
			}
		}
		in = with(h.t, in, o.Ref.Cluster, issued)
	}
	return in
}

// historyRoots is how many roots there are for VirtualMeshes.
const historyRoots = 3

func (h *history) fingerprints() []string {
	var out []string
	for _, root := range someRoots()[:historyRoots] {
		if h.r.Intn(3) > 0 {
			out = append(out, fingerprintOf(root))
		}
	}
	slices.Sort(out)
	return out
}

// changeRoots changes the roots and pins of all VirtualMeshes.
func (h *history) changeRoots() *snapshot.Input {
	out := *h.in
	out.Roots = nil
	for _, vm := range h.in.Management.VirtualMeshes {
		if h.r.Intn(4) == 0 {
			continue
		}
		roots := &snapshot.VirtualMeshRoots{VirtualMesh: snapshot.RefOf(snapshot.VirtualMesh, vm)}
		if h.r.Intn(4) == 0 {
			roots.Problem = "the Secret cannot be read; see its events"
		}
		for _, fingerprint := range h.fingerprints() {
			roots.Roots = append(roots.Roots, &snapshot.Root{
				Fingerprint: fingerprint, PEM: rootsByFingerprint()[fingerprint], NotAfter: time.Unix(2e9, 0), Gateways: h.r.Intn(4) == 0,
				Secret: snapshot.Ref{Namespace: vm.Namespace, Name: "root-" + fingerprint[:8]},
			})
		}
		if len(roots.Roots) > 0 && h.r.Intn(4) > 0 {
			roots.Signs = roots.Roots[h.r.Intn(len(roots.Roots))].Fingerprint
		}
		for _, m := range vm.Spec.Meshes {
			if h.r.Intn(3) == 0 {
				roots.Pins = append(roots.Pins, snapshot.TrustPin{Mesh: m.Name, Domains: []string{[]string{"cluster.local", "other.example"}[h.r.Intn(2)]}})
			}
		}
		slices.SortFunc(roots.Pins, snapshot.TrustPin.Compare)
		out.Roots = append(out.Roots, roots)
	}
	return &out
}

// cluster is any of the registered ones; nil if there is none.
func (h *history) cluster() *snapshot.Cluster {
	if len(h.in.Clusters) == 0 {
		return nil
	}
	return h.in.Clusters[h.r.Intn(len(h.in.Clusters))]
}

// changeCluster is the Input with a change of the copy of a random cluster.
func (h *history) changeCluster(change func(*snapshot.Cluster)) *snapshot.Input {
	c := h.cluster()
	if c == nil {
		return h.in
	}
	own := *c
	change(&own)
	return withCluster(h.in, &own)
}

// withCluster is an Input with a cluster in the place of the one of its name, if there is one.
func withCluster(in *snapshot.Input, c *snapshot.Cluster) *snapshot.Input {
	out := *in
	out.Clusters = slices.DeleteFunc(slices.Clone(in.Clusters), func(other *snapshot.Cluster) bool { return other.Name == c.Name })
	out.Clusters = append(out.Clusters, c)
	slices.SortFunc(out.Clusters, func(a, b *snapshot.Cluster) int { return strings.Compare(a.Name, b.Name) })
	return &out
}

func (h *history) leave() *snapshot.Input {
	c := h.cluster()
	if c == nil {
		return h.in
	}
	return h.in.WithoutCluster(c.Name)
}

// join registers a cluster that has left, as it was; else one that is there is as it was.
func (h *history) join() *snapshot.Input {
	if len(h.past) == 0 {
		return h.in
	}
	earlier := h.past[h.r.Intn(len(h.past))]
	var left []*snapshot.Cluster
	for _, c := range earlier.Clusters {
		if h.in.Cluster(c.Name) == nil {
			left = append(left, c)
		}
	}
	if len(left) == 0 {
		left = earlier.Clusters
	}
	if len(left) == 0 {
		return h.in
	}
	return withCluster(h.in, left[h.r.Intn(len(left))])
}

// changeSync changes whether a cluster can be read. One that never was has no objects.
func (h *history) changeSync() *snapshot.Input {
	return h.changeCluster(func(c *snapshot.Cluster) {
		reason := []string{"", "no answer from 192.0.2.1", "the credential is refused"}[h.r.Intn(3)]
		switch h.r.Intn(8) {
		case 0:
			*c = snapshot.Cluster{Name: c.Name, Domain: c.Domain, Sync: snapshot.Unsynced, Reason: reason}
		case 1:
			*c = snapshot.Cluster{Name: c.Name, Domain: c.Domain, Sync: snapshot.Unsynced}
			c.SetReading()
		case 2, 3:
			c.Sync, c.Reason, c.Credential = snapshot.Stale, reason, fmt.Sprint(h.r.Intn(2))
		case 4:
			c.Domain = []string{"", "cluster.local", "example.internal"}[h.r.Intn(3)]
		default:
			c.Sync, c.Reason, c.Reading = snapshot.Synced, "", false
		}
	})
}

// changeUnread changes which ConfigMaps and webhooks can be read.
func (h *history) changeUnread() *snapshot.Input {
	return h.changeCluster(func(c *snapshot.Cluster) {
		if h.r.Intn(4) == 0 {
			c.WebhooksUnknown = !c.WebhooksUnknown
			return
		}
		c.Unread = nil
		for _, m := range c.ConfigMaps {
			if h.r.Intn(2) == 0 {
				ref := snapshot.RefOf(snapshot.ConfigMap, m)
				ref.Cluster = c.Name
				c.Unread = append(c.Unread, snapshot.Unread{Ref: ref, Denied: h.r.Intn(2) == 0, Reason: "it is too large"})
			}
		}
		if h.r.Intn(2) == 0 && len(c.Unread) > 0 {
			c.ConfigMaps = slices.Delete(slices.Clone(c.ConfigMaps), 0, 1)
		}
	})
}

// changeGone changes which control planes that are not there are gone for good.
func (h *history) changeGone() *snapshot.Input {
	out := *h.in
	out.Gone = nil
	for _, d := range h.state.Discovered {
		for _, name := range d.Absent {
			if h.r.Intn(3) > 0 {
				out.Gone = append(out.Gone, name)
			}
		}
	}
	slices.Sort(out.Gone)
	return &out
}

// fail has writes fail of objects that are generated, and of others.
func (h *history) fail() *snapshot.Input {
	out := *h.in
	out.Failures = nil
	var parents []snapshot.Ref
	for _, p := range h.state.Plan.Policies {
		parents = append(parents, p.Ref)
	}
	for o := range h.state.Output.Objects {
		if h.r.Intn(20) > 0 {
			continue
		}
		f := snapshot.Failure{Ref: o.Ref, Reason: snapshot.Reason{Code: snapshot.WriteFailed, What: "refused"}, Parents: o.Content.Parents}
		if h.r.Intn(4) == 0 && len(parents) > 0 {
			f.Parents = []snapshot.Ref{parents[h.r.Intn(len(parents))]}
		}
		out.Failures = append(out.Failures, f)
	}
	slices.SortFunc(out.Failures, func(a, b snapshot.Failure) int { return a.Ref.Compare(b.Ref) })
	return &out
}

// changeOption changes what does not follow from objects.
func (h *history) changeOption() *snapshot.Input {
	out := *h.in
	switch h.r.Intn(3) {
	case 0:
		out.RefuseIntersecting = !out.RefuseIntersecting
	case 1:
		out.Version = fmt.Sprint("1.", h.r.Intn(2))
	default:
		m := *out.Management
		m.PlaneID = fmt.Sprint("plane-", h.r.Intn(2))
		out.Management = &m
	}
	return &out
}
