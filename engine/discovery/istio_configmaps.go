package discovery

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// istioConfigMaps are the ConfigMaps that istioConfig and istioRoots read.
func istioConfigMaps(c *snapshot.Cluster) []snapshot.Ref {
	injectors := newInjectors(c)
	seen := map[key]bool{}
	var evident, others []snapshot.Ref
	for _, d := range c.Deployments {
		pilot := pilotOf(d)
		if pilot == nil {
			continue
		}
		revision := istiodRevision(d, pilot)
		to := &others
		if injectors.leadTo(d.Namespace, revision) {
			to = &evident
		}
		for _, name := range []string{istioConfigMapOf(revision), istioRootsName} {
			if at := (key{d.Namespace, name}); !seen[at] {
				seen[at] = true
				*to = append(*to, snapshot.Ref{Kind: snapshot.ConfigMap, Cluster: c.Name, Namespace: at.namespace, Name: at.name})
			}
		}
	}
	return append(evident, others...)
}

// configMap finds a ConfigMap; nil if there is none. If unread is not nil, the ConfigMap is
// as it was read last, or was never read.
func (x *Index) configMap(namespace, name string) (cm *corev1.ConfigMap, unread *snapshot.Unread) {
	k := key{namespace, name}
	if u, is := x.unread[k]; is {
		unread = &u
	}
	return x.configMaps[k], unread
}

// reportUnread reports a ConfigMap of a mesh that cannot be read, and what follows.
func (x *Index) reportUnread(u snapshot.Unread, mesh snapshot.Ref, effect string) {
	issue := snapshot.Issue{
		Code: snapshot.MeshUnreadable, Severity: snapshot.Warning, Ref: u.Ref, Target: mesh,
		Message: fmt.Sprintf("it cannot be read (%s), %s", u.Reason, effect),
	}
	if u.Denied {
		issue.Severity = snapshot.Error
		issue.Hint = fmt.Sprintf("run `meshctl cluster register %s` again: it gives access to the ConfigMaps in the namespaces that have a control plane now", x.Cluster)
	}
	x.Report(issue)
}
