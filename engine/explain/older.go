package explain

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// ages compares the ages of objects of which Istio uses the older one: of ServiceEntries for a host, and of Sidecars for a pod (Istio,
// sortConfigByCreationTime).
type ages struct{ *Index }

// say adds to issues about a hand-written object which of the two applies.
func (x ages) say() {
	if len(x.created) == 0 {
		return
	}
	for _, issues := range x.issues {
		for i := range issues {
			if issues[i].Code != snapshot.HandWritten {
				continue
			}
			byHand, ours := x.rivals(&issues[i])
			since, known := x.created[ours]
			if byHand == nil || !known {
				continue
			}
			if olderThan(byHand, ours, since) {
				issues[i].Message += ": it is older than the generated one, and applies"
			} else {
				issues[i].Message += ": the generated one is older, and applies"
			}
		}
	}
}

// olderThan compares as Istio does: by second, and then by name.
func olderThan(byHand metav1.Object, ours snapshot.Ref, since time.Time) bool {
	return cmp.Or(byHand.GetCreationTimestamp().Time.Truncate(time.Second).Compare(since.Truncate(time.Second)),
		cmp.Compare(byHand.GetName(), ours.Name), cmp.Compare(byHand.GetNamespace(), ours.Namespace)) < 0
}

// rivals are the hand-written object that an issue is about, and the generated one for the same host or pod; nil if age does
// not decide between them.
func (x ages) rivals(issue *snapshot.Issue) (metav1.Object, snapshot.Ref) {
	c := x.clusters[issue.Cause.Cluster]
	if c == nil {
		return nil, snapshot.Ref{}
	}
	list := c.List(issue.Cause.Kind)
	if list == nil {
		return nil, snapshot.Ref{}
	}
	o := list.Find(issue.Cause.Namespace, issue.Cause.Name)
	for _, mesh := range x.state.Plan.Meshes {
		if o == nil || mesh.Cluster != c.Name || mesh.Dialect.ByAge == nil {
			continue
		}
		switch hosts, pods := mesh.Dialect.ByAge(o); {
		case len(hosts) > 0:
			return o, x.outside.hosts.find(issue.Cause, hosts)
		case len(pods) > 0:
			return o, x.sidecarFor(issue.Cause, pods)
		}
	}
	return nil, snapshot.Ref{}
}

// sidecarFor is the generated Sidecar of workloads with labels, beside one in its namespace.
func (x ages) sidecarFor(beside snapshot.Ref, labels map[string]string) snapshot.Ref {
	for _, s := range x.state.Plan.Sidecars {
		if s.Ref.Cluster == beside.Cluster && s.Ref.Namespace == beside.Namespace && slices.ContainsFunc(s.Workloads, func(ref snapshot.Ref) bool {
			w := x.workloads[ref]
			return w != nil && inventory.SelectsPods(labels, w.Spec.Kubernetes)
		}) {
			return s.Ref
		}
	}
	return snapshot.Ref{}
}
