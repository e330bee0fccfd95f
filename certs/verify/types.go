package verify

import (
	"slices"
	"time"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

// Request is what is asked for, and what was known before.
type Request struct {
	// Root is the fingerprint of the root that is to sign; empty if none is asked for.
	Root string
	// Bundle are the roots that workloads are to trust.
	Bundle pki.Bundle
	// Secret is what is in cacerts now; its Authority is nil if there is no such Secret.
	Secret pki.CACerts
	// SecretRoots is root-cert.pem of cacerts as it is written: istiod compares bytes.
	SecretRoots []byte
	// SecretWritten is when cacerts was written last, by the agent's clock; zero if unknown.
	SecretWritten time.Time
	// Earlier is the last report; nil if there is none.
	Earlier *certificatesv1.TrustReport
	// Skew is by how much the agent's clock is ahead of the API server's.
	Skew time.Duration
	// Namespace of the control plane, which is always waited for.
	Namespace string
	// Timeout is how long other namespaces are waited for, 0 for ever, and LeaveOut are those that are not.
	Timeout  time.Duration
	LeaveOut []string
}

// Observed is what one look has seen.
type Observed struct {
	// Now is the time at the end of the look, by the agent's clock.
	Now time.Time
	// ControlPlane are the pods of the control plane, or its address.
	ControlPlane []Replica
	// Namespaces are the roots in the ConfigMap istio-ca-root-cert, by namespace.
	Namespaces map[string]pki.Bundle
	// Workloads are the pods with a proxy of the mesh that count.
	Workloads []Workload
}

// Replica is a pod of the control plane.
type Replica struct {
	// Name is that of the pod, or the address.
	Name string
	// Started is when its container did, by its node's clock; zero if unknown.
	Started time.Time
	// MultiRoot is ISTIO_MULTIROOT_MESH.
	MultiRoot bool
	// Answer is nil if it could not be asked.
	Answer *Answer
	// Down says that nothing listens there, so that it signs for nobody.
	Down bool
	// Err says why there is no Answer.
	Err error

	ip        string
	revision  string
	clusterID string
}

// Workload is a pod with a proxy of the mesh.
type Workload struct {
	// Namespace, Name and UID of the pod.
	Namespace, Name, UID string
	// Created is when the pod was, by the API server's clock, and Started when its proxy was, by its node's.
	Created, Started time.Time
	// TTL is how long its certificates live; 0 if that is not known.
	TTL time.Duration
	// FollowsRoots is PROXY_CONFIG_XDS_AGENT: it takes roots that the control plane pushes.
	FollowsRoots bool
	// Gateway is true of gateways, which are not connected to.
	Gateway bool
	// Injected: the injector of Istio says to have made its proxy, or it is a gateway. Others count if they were seen to
	// speak mutual TLS.
	Injected bool
	// Ending is true of a pod that is being deleted.
	Ending bool
	// Seen is what a handshake showed; nil if there was none.
	Seen *Seen

	ip, account string
	ports       []uint16
}

// String is namespace/name.
func (w *Workload) String() string { return w.Namespace + "/" + w.Name }

// Seen is what a handshake with a workload showed.
type Seen struct {
	// Presents is the fingerprint of the root of its certificate; if that is not known, of the last certificate it showed.
	Presents string
	// Client is the root of the certificate that was shown to it, and Accepts whether it accepted it.
	Client  string
	Accepts Verdict
	// Names are the subjects (DER) of the roots that it trusts; empty if it did not say.
	Names []string
}

// Verdict is what a server thinks of a client's certificate.
type Verdict int

// The verdicts.
const (
	// Undecided: it did not say.
	Undecided Verdict = iota
	// Accepted the certificate.
	Accepted
	// Refused the certificate.
	Refused
)

// Result is what follows from a look. It has the parts of a TrustReport that come from here.
type Result struct {
	// Trusted and Presented are described at TrustReport.
	Trusted, Presented []string
	// ControlPlane, Namespaces, Trusting and Presenting are described at TrustReport.
	ControlPlane, Namespaces, Trusting, Presenting certificatesv1.TrustProgress
	// Signing is nil while the control plane does not sign with one root.
	Signing *certificatesv1.RootSince
	// HandedOut ascends by root.
	HandedOut []certificatesv1.RootSince
	// MultiRoot: the control plane takes up other roots without a restart.
	MultiRoot bool
	// Blind: some of the control plane could not be asked, so that nothing is better than in the last report.
	Blind bool
	// NeedsControlPlane says why the control plane has to restart to take up cacerts; empty if it need not.
	NeedsControlPlane string
	// NeedsWorkloads are those that have to restart, or else renew their certificates, before all trust the roots of the
	// request and present a certificate of the root that is signed with. It is empty while the control plane does not sign
	// with the Secret: a restart would be for nothing.
	NeedsWorkloads []Pod
	// Behind is described at TrustReport.
	Behind []certificatesv1.NamespaceBehind
	// Known are the roots that were seen in answers and ConfigMaps.
	Known pki.Bundle
	// Problems are what could not be asked or read, and what to do about it; at most ten.
	Problems []string
}

// Pod is a workload by name.
type Pod struct {
	// Namespace, Name and UID of the pod.
	Namespace, Name, UID string
	// Gateway is true of gateways, which restart first.
	Gateway bool
}

// Report fills in the parts of a report.
func (r *Result) Report(into *certificatesv1.TrustReport) {
	into.Trusted, into.Presented = r.Trusted, r.Presented
	into.ControlPlane, into.Namespaces, into.Trusting, into.Presenting = &r.ControlPlane, &r.Namespaces, &r.Trusting, &r.Presenting
	into.Signing, into.HandedOut = r.Signing, r.HandedOut
	into.Behind = r.Behind
}

// LeftOut reports whether nobody waits for a namespace.
func LeftOut(behind []certificatesv1.NamespaceBehind, namespace string) bool {
	return slices.ContainsFunc(behind, func(b certificatesv1.NamespaceBehind) bool { return b.LeftOut && b.Namespace == namespace })
}

// maxListed bounds the lists of a report.
const maxListed = 10

// tally counts progress.
type tally struct{ certificatesv1.TrustProgress }

func (t *tally) add(name string, done, unseen bool) {
	t.Total++
	switch {
	case !done && len(t.Waiting) < maxListed:
		t.Waiting = append(t.Waiting, name)
	case done:
		t.Done++
		if unseen {
			t.Unseen++
		}
	}
}

// set makes a sorted set.
func set(items ...[]string) []string {
	out := slices.Concat(items...)
	slices.Sort(out)
	return slices.Compact(out)
}
