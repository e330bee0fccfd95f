package discovery

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// ConfigMap finds a ConfigMap; nil if there is none. If unread is not nil, the ConfigMap is
// as it was read last, or was never read.
func (x *Index) ConfigMap(namespace, name string) (cm *corev1.ConfigMap, unread *snapshot.Unread) {
	k := key{namespace, name}
	if u, is := x.unread[k]; is {
		unread = &u
	}
	return x.configMaps[k], unread
}

// ReportUnread reports a ConfigMap of a mesh that cannot be read, and what follows.
func (x *Index) ReportUnread(u snapshot.Unread, mesh snapshot.Ref, effect string) {
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
