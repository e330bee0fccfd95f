package snapshot

// Codes of why a cluster is frozen, as Cluster.Cause has them, beside CredentialRefused, CredentialInvalid, PermissionsMissing and
// DifferentCluster.
const (
	// ServerUnanswered: its API server does not answer, or is not ready.
	ServerUnanswered Code = "ServerUnanswered"
	// NameUnresolved: the host name of its API server has no address.
	NameUnresolved Code = "NameUnresolved"
	// CertificateUntrusted: what answers has a certificate that is not that of the API server.
	CertificateUntrusted Code = "CertificateUntrusted"
	// CredentialMissing: the Secret with its credential is not there.
	CredentialMissing Code = "CredentialMissing"
	// AgentAway: its agent has no connection.
	AgentAway Code = "AgentAway"
	// StillRead: it answers, and not all of its objects are read yet.
	StillRead Code = "StillRead"
)

// Outage is why a cluster is frozen, as all views tell it.
type Outage struct {
	Cause Code `json:"cause,omitempty"`
	// Health is the word for it.
	Health Health `json:"health"`
	// What is the case, as a sentence without the name of the cluster.
	What string `json:"what"`
	// Next is the next step, as a sentence. It proposes no more than the cause calls for: a cluster that may come back is not deregistered.
	Next string `json:"next"`
}

// WhileAway is what an outage of a cluster means for what runs there.
const WhileAway = "until then, requests go on as last written, and edits wait"

// NewOutage tells the outage of a cluster by its cause. What is the sentence of whoever met it. An unknown cause is one that
// nothing more is known of.
func NewOutage(cluster string, cause Code, what string) *Outage {
	o := &Outage{Cause: cause, Health: HealthUnreachable, What: what}
	switch cause {
	case CredentialRefused:
		o.Health, o.Next = HealthDenied, "run `meshctl cluster register --renew`"
	case PermissionsMissing:
		o.Health, o.Next = HealthDenied, "run `meshctl cluster register` for "+cluster+" again: it gives its account the permissions"
	case CredentialMissing:
		o.Health, o.Next = HealthInvalid, "restore the Secret, or run `meshctl cluster register --renew`"
	case CredentialInvalid:
		o.Health, o.Next = HealthInvalid, "run `meshctl cluster register --renew`, which replaces the Secret"
	case DifferentCluster:
		o.Health, o.Next = HealthInvalid, "look at what answers at this address, and restore the Secret; only if "+cluster+" was replaced by a new cluster, see `meshctl cluster deregister --help`"
	case ServerUnanswered:
		o.Next = "look at its API server: start it, or repair the network; `meshctl serve` reconnects by itself"
	case NameUnresolved:
		o.Next = "repair the DNS where `meshctl serve` runs, or register " + cluster + " again with an --api-server-address that resolves there"
	case CertificateUntrusted:
		o.Next = "look at what answers at this address; if the API server has a new certificate authority, run `meshctl cluster register --renew`"
	case AgentAway:
		o.Next = "look at the pods of its agent in " + cluster + ", which connects again by itself; `meshctl cluster list` shows since when it is away"
	case StillRead:
		o.Health, o.Next = HealthUnknown, "wait: this takes seconds; if it does not end, see the log of `meshctl serve`"
	default:
		o.Next = "`meshctl cluster list` says why, and what to do"
	}
	return o
}

// Outage is why the cluster is frozen; nil if it is not.
func (c *Cluster) Outage() *Outage {
	if !c.Frozen() {
		return nil
	}
	return NewOutage(c.Name, c.Cause, c.Reason)
}

// Text is the outage in one sentence: "unreachable: no answer from ...".
func (o *Outage) Text() string {
	if o == nil {
		return ""
	}
	return colon(string(o.Health), o.What)
}

func colon(word, what string) string {
	if what == "" {
		return word
	}
	return word + ": " + what
}

// Hint is the next step, and what goes on until it is done.
func (o *Outage) Hint() string { return Sentences(o.Next, WhileAway) }

// Issue is the outage as an issue on the registration of the cluster.
func (o *Outage) Issue(registration Ref) Issue {
	is := "the cluster is unreachable"
	switch {
	case o.Cause == StillRead:
		is = "the cluster is not read yet"
	case o.Health == HealthDenied:
		is = "the cluster denies access"
	case o.Health == HealthInvalid:
		is = "the credential of the cluster cannot be used"
	}
	return Issue{
		Code: ClusterFrozen, Severity: Error, Ref: registration, Hint: o.Hint(),
		Message: colon(is, o.What) + "; nothing is changed there, and other clusters keep the objects that follow from it",
	}
}
