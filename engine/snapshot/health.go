package snapshot

// Health of a cluster, in every answer about clusters: what the management plane
// last reported, or what a probe just found.
type Health string

const (
	// Healthy: it answers, and is read and written.
	Healthy Health = "healthy"
	// HealthUnknown: the management plane has not reported on it yet.
	HealthUnknown Health = "unknown"
	// HealthDegraded: it answers a probe, but something does not work, or soon will not.
	HealthDegraded Health = "degraded"
	// HealthDenied: it answers a probe and rejects the credential.
	HealthDenied Health = "denied"
	// HealthUnreachable: the management plane cannot read it, so that nothing is changed there, or
	// it does not answer a probe.
	HealthUnreachable Health = "unreachable"
	// HealthInvalid: the stored credential is invalid or missing.
	HealthInvalid Health = "invalid"
	// HealthLeaving: it is deregistered through its agent, which has not finished.
	HealthLeaving Health = "leaving"
	// HealthLeftover: it is deregistered, but was not cleaned up.
	HealthLeftover Health = "leftover"
	// HealthUnregistered: there is a credential, and no KubernetesCluster names it.
	HealthUnregistered Health = "unregistered"
	// HealthPending: it is not registered, and its agent waits for approval.
	HealthPending Health = "pending"
)

// Registered reports whether it is that of a registered cluster.
func (h Health) Registered() bool {
	return h != HealthLeftover && h != HealthUnregistered && h != HealthPending
}
