package registration

import (
	"context"
	"errors"
	"slices"

	"github.com/meshctl/meshctl/engine/kube"
)

// This file has clusters to which no context leads be left through their agents when the management plane goes.

// noContext is why a cluster cannot be cleaned that is reached with a credential.
const noContext = "no context of the kubeconfig leads to it"

func (u *Uninstallation) deregisterOptions(name string) DeregisterOptions {
	return DeregisterOptions{
		Name: name, MgmtConfig: u.options.Config, MgmtContext: u.options.Context, MgmtNamespace: u.options.Namespace,
		Force: u.options.Force, KeepTraffic: u.options.KeepTraffic, Timeout: u.options.Timeout, UserAgent: u.options.UserAgent,
	}
}

// inspectAgent finds out whether a cluster to which no context leads can be left through its agent, or why not.
func (u *Uninstallation) inspectAgent(ctx context.Context, c *UninstalledCluster) {
	d := &deregistration{DeregisterOptions: u.deregisterOptions(c.Name), management: u.server}
	if err := d.inspect(ctx); err != nil {
		c.Problem = kube.Text(err)
		return
	}
	switch {
	case !d.relayed() || u.options.Store == nil:
		c.Problem = noContext
		return
	case u.options.KeepTraffic:
		c.Problem = noContext + "; its agent would delete what is to stay"
		return
	}
	err := farewell{d}.check(ctx)
	var away *AgentAwayError
	switch {
	case err == nil:
		c.Agent = true
	case errors.As(err, &away):
		c.Problem = noContext + ", and its agent " + away.away()
	case errors.Is(err, errUnheard):
		c.Problem = noContext + "; " + errUnheard.Error()
	default:
		c.Problem = kube.Text(err)
	}
}

// deregisterThroughAgent deregisters a cluster through its agent. With Force, what an agent leaves that has gone away meanwhile stays
// there: no debt is noted, as nobody will be there to collect it.
func (u *Uninstallation) deregisterThroughAgent(ctx context.Context, options DeregisterOptions) (Report, error) {
	options.Force, options.Store = false, u.options.Store
	report, err := Deregister(ctx, options)
	if err == nil || !u.options.Force || ctx.Err() != nil {
		return report, err
	}
	options.Force, options.Store = true, nil
	rest, err := Deregister(ctx, options)
	rest.Changes = slices.Concat(report.Changes, rest.Changes)
	rest.Notes = slices.Concat(report.Notes, rest.Notes)
	return rest, err
}
