package cluster

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/meshctl/meshctl/cmd/agent"
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/registration"
)

// renewRun is `meshctl cluster register --renew`.
func renewRun(ctx context.Context, opts *RegisterOptions) error {
	mgmt, err := opts.config()
	if err != nil {
		return err
	}
	contexts, err := opts.contexts()
	if err != nil {
		return err
	}
	done, err := registration.Renew(ctx, registration.RenewOptions{
		MgmtConfig: mgmt, MgmtContext: opts.context, MgmtNamespace: opts.namespace, Contexts: contexts, UserAgent: opts.userAgent(), Agent: agent.Account(""),
	})
	if err != nil {
		return typed(err)
	}
	var remain []string
	for _, renewal := range done {
		if renewal.Context == "" {
			remain = append(remain, renewal.Cluster)
		}
		for _, note := range renewal.Notes {
			say(opts.Streams, "Note: cluster %s: %s.", renewal.Cluster, note)
		}
	}
	if err := printRenewals(opts, done); err != nil {
		return err
	}
	switch {
	case len(remain) > 0:
		return fmt.Errorf("clusters that were not registered again: %s (%d of %d); REASON says why", strings.Join(remain, ", "), len(remain), len(done))
	case len(done) == 0:
		say(opts.Streams, "No cluster has an expired or refused credential; nothing changed.")
	default:
		say(opts.Streams, "Clusters registered again: %d. Check their health with `meshctl cluster list`.", len(done))
	}
	return nil
}

func printRenewals(opts *RegisterOptions, done []registration.Renewal) error {
	if done == nil {
		done = []registration.Renewal{} // it is printed as a list
	}
	return opts.Output.Print(opts.Streams.Out, done, func(out io.Writer) error {
		if len(done) == 0 {
			return nil
		}
		table := cmdutil.Table{Header: []string{"NAME", "RESULT", "CONTEXT", "PROBLEM", "REASON"}}
		for _, renewal := range done {
			result := "renewed"
			if renewal.Context == "" {
				result = "remains"
			}
			table.Add(renewal.Cluster, result, renewal.Context, renewal.Problem, renewal.Reason)
		}
		return table.Print(out)
	})
}

// contexts are all that the kubeconfig has. One that cannot be loaded leads nowhere.
func (o *RegisterOptions) contexts() ([]registration.Context, error) {
	names, _, err := o.factory.Contexts(o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cannot list the contexts: %w", err)
	}
	out := make([]registration.Context, len(names))
	for i, name := range names {
		out[i].Name = name
		// newServer says what is wrong with a context that has no configuration.
		out[i].Config, _ = o.factory.Config(o.kubeconfig, name)
	}
	return out, nil
}
