package registration

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// RelayError: a cluster is registered, but its agent is not connected.
type RelayError struct {
	Name string
	// Reason is what serve reports; Trouble is what is seen of the agent, with the next step.
	Reason, Trouble string
}

func (e *RelayError) Error() string { return snapshot.Sentences(e.Advice()) }

// Advice implements [snapshot.Advice].
func (e *RelayError) Advice() (what, hint string) {
	return fmt.Sprintf("cluster %s is registered, but its agent is not connected to meshctl serve: %s", e.Name, e.Reason),
		e.Trouble + "; it goes on trying, and running the same command again waits for it"
}

// awaitAgentConnected waits until serve, if one runs, has the cluster from its agent.
func (r *via) awaitAgentConnected(ctx context.Context) error {
	deployed, err := r.remote.get(ctx, deployments, r.RemoteNamespace, AgentName(r.plane.ID))
	if unlessForbidden(err) != nil {
		return err
	}
	// An agent that runs elsewhere holds the same Lease.
	runs, err := r.remote.isHeld(ctx, r.RemoteNamespace, snapshot.AgentLease)
	if unlessForbidden(err) != nil {
		return fmt.Errorf("%s: reading Lease %s/%s: %w", r.remote.label, r.RemoteNamespace, snapshot.AgentLease, err)
	}
	if deployed == nil && !runs {
		r.report.note("no image of the agent is known, so that no Deployment is made: name one with --agent-image, or run it yourself: " + r.agentCommand())
	}
	switch {
	case r.ServeWait <= 0:
		return nil
	case !r.serves:
		r.report.note("no `meshctl serve` runs, so that the agent has nobody to connect to; start it with --relay-bind")
		return nil
	case deployed == nil && !runs:
		return nil
	}
	began, message, said := time.Now(), "", ""
	err = wait.PollUntilContextTimeout(ctx, servePoll, r.ServeWait, true, func(ctx context.Context) (bool, error) {
		kc, err := r.management.getKubernetesCluster(ctx, r.MgmtNamespace, r.Name)
		if err != nil || kc == nil {
			return false, err
		}
		r.report.Serve, message = serveStatus(kc, "")
		if message != said && time.Since(began) > announceAfter && r.report.Serve != ServeReaches {
			said = message
			r.Progress(fmt.Sprintf("Waiting until the agent of cluster %s is connected: %s", r.Name, message))
		}
		return r.report.Serve == ServeReaches, nil
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && !wait.Interrupted(err):
		return fmt.Errorf("cluster %s: it is registered; reading what meshctl serve reports about it: %w", r.Name, err)
	case r.report.Serve == ServeReaches:
		return nil
	}
	if message == "" {
		message = fmt.Sprintf("serve has reported nothing within %s", r.ServeWait)
	}
	return &RelayError{Name: r.Name, Reason: message, Trouble: r.agentTrouble(ctx)}
}
