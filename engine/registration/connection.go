package registration

import (
	"context"
	"fmt"
	"slices"
	"time"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// connections are those of the agents of registered clusters, as serve stored them. A cluster that is dialled has none. Leaving are the
// clusters that are deregistered through their agents.
func connections(ctx context.Context, s *server, namespace string) (agents map[string]*multiclusterv1alpha1.Connection, leaving map[string]departure, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	all, err := s.listKubernetesClusters(ctx, namespace)
	if err != nil {
		return nil, nil, err
	}
	agents, leaving = map[string]*multiclusterv1alpha1.Connection{}, map[string]departure{}
	for _, kc := range all {
		if kc.Status.Connection != nil {
			agents[kc.Name] = kc.Status.Connection
		}
		if asked := kc.Annotations[snapshot.LeavingAnnotation]; asked != "" {
			since, _ := time.Parse(time.RFC3339, asked) // somebody else wrote it
			leaving[kc.Name] = departure{since, leavingReason(kc)}
		}
	}
	return agents, leaving, nil
}

// departure is that of a cluster that leaves: since when, and what it waits for, as far as serve has said that.
type departure struct {
	since  time.Time
	reason snapshot.Reason
}

// addDeparture says that a cluster leaves, and what it waits for.
func (s *ClusterStatus) addDeparture(d departure) {
	if d.reason.Code == "" {
		d.reason = snapshot.Reason{Code: snapshot.ClusterLeaving, Cause: snapshot.LeavingAsked, What: "meshctl serve has not taken notice yet that it leaves"}
	}
	if d.reason.Hint == "" {
		d.reason.Hint = "`meshctl cluster deregister " + s.Name + "` waits for it, and goes on where it was interrupted"
	}
	others := slices.DeleteFunc(slices.Clone(s.Reasons), func(r snapshot.Reason) bool { return r.Code == snapshot.ClusterLeaving })
	s.Health = snapshot.HealthLeaving
	s.because(append(snapshot.Reasons{d.reason}, others...)...)
	s.Since = nil
	if !d.since.IsZero() {
		since := d.since.UTC()
		s.Since = &since
	}
}

// relayed is the status of a cluster that is reached through its agent: nobody else can ask it.
func relayed(known cluster.Registration, c *multiclusterv1alpha1.Connection) ClusterStatus {
	status := ClusterStatus{Name: known.Name, Domain: known.Domain, Connection: c, Health: snapshot.HealthUnreachable}
	if c == nil {
		status.Connection = &multiclusterv1alpha1.Connection{Via: multiclusterv1alpha1.ViaRelay, State: multiclusterv1alpha1.ConnectionStateAwaited}
		status.Health = snapshot.HealthUnknown
		status.because(snapshot.Reason{
			Code: snapshot.RelayAbsent, What: "it is reached through its agent, and meshctl serve has not said yet whether that is connected",
			Hint: "run `meshctl serve` with --relay-bind; or, if its Secret is missing, register it again with `meshctl cluster register`",
		})
		return status
	}
	switch c.State {
	case multiclusterv1alpha1.ConnectionStateConnected:
		status.Health = snapshot.Healthy
	case multiclusterv1alpha1.ConnectionStateResync, multiclusterv1alpha1.ConnectionStateStuck:
		status.Health = snapshot.HealthDegraded
	}
	if r := c.Reason; r != nil {
		status.because(snapshot.Reason{Code: snapshot.Code(r.Code), What: r.What, Hint: r.Hint})
	}
	if r := c.Refused; r != nil && c.State != multiclusterv1alpha1.ConnectionStateRefused {
		status.because(append(status.Reasons, snapshot.Reason{
			Code: snapshot.Code(r.Code), What: fmt.Sprintf("a caller from %s, which says that it is its agent, was refused: %s", r.Address, r.What), Hint: r.Hint,
		})...)
		if status.Health == snapshot.Healthy {
			status.Health = snapshot.HealthDegraded
		}
	}
	return status
}
