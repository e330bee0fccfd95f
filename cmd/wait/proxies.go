package wait

import (
	"context"
	"time"

	"github.com/meshctl/meshctl/engine/check"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// sendTime is how long, beyond its debounce, a control plane may take to see what was written and to send it: until then, that proxies
// have acknowledged all that was sent says nothing.
const sendTime = time.Second

// proxiesOf asks the control planes about an object. It counts what they say from the first call on, which comes when the object is in
// force.
func (o *Options) proxiesOf(management reading.Management, ref snapshot.Ref) func(context.Context) (state, string) {
	var index *explain.Index
	var sent time.Time
	return func(ctx context.Context) (state, string) {
		if index == nil { // what follows from it is known once it is in force
			read, err := management.Clusters(ctx)
			if err != nil {
				return pending, "the clusters cannot be read: " + kube.Text(err)
			}
			index = read.Index(nil)
			sent = time.Now().Add(sendTime + explain.SlowestDebounce(index, ref).After)
		}
		synced := explain.SyncedOf(index, ref, check.NewProxies(ctx, management.Detours, index.Input().Management.KubernetesClusters, lookLimit))
		return lookAtProxies(synced, time.Until(sent))
	}
}

// lookAtProxies says how far proxies are; left is the time until all control planes have sent what was written.
func lookAtProxies(synced *explain.Synced, left time.Duration) (state, string) {
	switch {
	case !synced.Done():
		return pending, "in proxies: " + synced.Text()
	case left > 0 && synced.Proxies > 0:
		return pending, "the control planes are about to send it"
	}
	return met, ""
}
