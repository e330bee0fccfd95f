package dashboard

import (
	"context"
	"time"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/check"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/registration"
)

// checkEvery is the pause between two checkups. Each asks all clusters, so that it is no shorter;
// what is watched shows on the other pages at once.
const checkEvery = 15 * time.Second

// checked is a checkup, and what it found of the clusters.
type checked struct {
	checkup  *explain.Checkup
	clusters []explain.CheckedCluster
}

// check checks everything until ctx ends.
func (l *live) check(ctx context.Context) {
	detours := cmdutil.Detours(l.opts.factory, l.opts.Kube.Kubeconfig)
	for wait := pollEvery; pause(ctx, wait) == nil; {
		index := l.last.latest()
		if index == nil {
			continue // nothing was read yet
		}
		wait = checkEvery
		facts, err := check.Facts(ctx, check.Options{
			Config: l.config, Context: l.opts.Kube.Context, Namespace: l.opts.Namespace, Version: l.opts.factory.Version.Tag(),
			UserAgent: l.config.UserAgent, Timeout: registration.DefaultCheckTimeout, Detours: detours,
		})
		if err != nil {
			return // ctx has ended
		}
		facts.Serving = reading.WithoutLease(facts.Serving, index.Input())
		facts.Gateways = check.Gateways(ctx, index.MeshPlans(), registration.DefaultCheckTimeout)
		if facts.Unread != "" {
			index = nil
		}
		select {
		case <-ctx.Done():
			return
		case l.checkups <- checked{index.Checkup(facts), facts.Clusters}:
		}
	}
}
