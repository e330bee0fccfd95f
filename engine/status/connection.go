package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// connectionOf is the connection of the agent of a cluster; nil if there is no agent to connect. What a hub does not know that has just
// started is as it was stored.
func connectionOf(stored *multiclusterv1alpha1.Connection, r *snapshot.Relay) *multiclusterv1alpha1.Connection {
	if r == nil {
		return nil
	}
	out := &multiclusterv1alpha1.Connection{
		Via: multiclusterv1alpha1.ViaRelay, State: multiclusterv1alpha1.ConnectionState(r.Phase), Since: timeOf(r.Since), Reason: reasonOf(r.Reason),
		AgentVersion: r.Version, CertificateExpires: timeOf(r.CertificateEnds), UpBehindSince: timeOf(r.UpSince), DownBehindSince: timeOf(r.DownSince),
		Objects: int64(r.Objects),
	}
	if refused := r.Refused; refused != nil {
		out.Refused = &multiclusterv1alpha1.RefusedCaller{ClusterReason: *reasonOf(refused.Reason), Address: refused.Address, Since: timeOf(refused.Since)}
	}
	out.Verified = verifiedOf(r.Verified)
	if out.Verified == nil && stored != nil {
		out.Verified = stored.Verified
	}
	if stored == nil || r.Version != "" || stored.AgentVersion == "" {
		return out
	}
	out.AgentVersion, out.CertificateExpires, out.Objects = stored.AgentVersion, stored.CertificateExpires, stored.Objects
	if r.Phase == snapshot.RelayAwaited {
		out.State = multiclusterv1alpha1.ConnectionStateLost
		if stored.State == multiclusterv1alpha1.ConnectionStateLost {
			out.Since, out.Reason = stored.Since, stored.Reason
		}
	}
	return out
}

func verifiedOf(v *snapshot.RelayVerified) *multiclusterv1alpha1.Verified {
	if v == nil {
		return nil
	}
	out := &multiclusterv1alpha1.Verified{
		Request: v.Request, Time: timeOf(v.Time), Kinds: int64(v.Kinds), Objects: int64(v.Objects), UnlistedKinds: int64(v.Unlisted), Error: v.Error,
	}
	for _, d := range v.Differences {
		difference := multiclusterv1alpha1.VerifiedDifference{Kind: d.Kind, Hub: int64(d.Hub), Agent: int64(d.Agent), More: int64(d.More)}
		if d.Listed {
			n := int64(d.Cluster)
			difference.Cluster = &n
		}
		for _, o := range d.Objects {
			difference.Objects = append(difference.Objects, multiclusterv1alpha1.VerifiedObject(o))
		}
		out.Differences = append(out.Differences, difference)
	}
	return out
}

func timeOf(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}

func reasonOf(r snapshot.Reason) *multiclusterv1alpha1.ClusterReason {
	if r.Code == "" {
		return nil
	}
	return &multiclusterv1alpha1.ClusterReason{Code: string(r.Code), What: r.What, Hint: r.Hint, ReleaseCode: r.ReleaseCode}
}
