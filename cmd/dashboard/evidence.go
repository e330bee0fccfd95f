package dashboard

import (
	"context"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/traffic"
)

// count asks what proxies count until ctx ends, as often as meshctl serve reads them. That it cannot be had, and why, is said once.
func (l *live) count(ctx context.Context) {
	management := reading.Management{Config: l.config, Namespace: l.opts.Namespace, Server: cmdutil.ServerOf(l.opts.factory, l.opts.Server)}
	var last *explain.Evidence
	for wait := pollEvery; pause(ctx, wait) == nil; wait = traffic.Point {
		now := management.Evidence(ctx)
		if last != nil && now.Report == nil && last.Report == nil && now.Unknown == last.Unknown {
			continue
		}
		last = now
		select {
		case <-ctx.Done():
			return
		case l.counts <- now:
		}
	}
}
