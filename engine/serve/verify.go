package serve

import (
	"context"
	"sync"
	"time"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// verifyRest is the least time between two comparisons of one cluster: each lists the whole of it.
const verifyRest = 2 * time.Second

// verifier carries out requests to compare what is known of clusters with what their agents and they themselves have.
type verifier struct {
	state  func() *snapshot.State
	verify func(ctx context.Context, cluster, request string)
	wake   chan struct{}
}

// notify says that there may be a request.
func (v *verifier) notify() {
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// run carries out requests until ctx ends: one at a time for each cluster, and of several the last one. What was asked for before this
// process led is answered again: it does not know the answer.
func (v *verifier) run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	done, running := map[string]string{}, map[string]bool{}
	ended := make(chan string)
	for {
		select {
		case <-ctx.Done():
			return
		case <-v.wake:
		case name := <-ended:
			delete(running, name)
		}
		state := v.state()
		if state == nil {
			continue
		}
		for _, c := range state.Input.Management.KubernetesClusters {
			request := c.Annotations[cluster.VerifyAnnotation]
			if request == "" || running[c.Name] || done[c.Name] == request || len(request) > cluster.MaxVerifyRequest {
				continue
			}
			done[c.Name], running[c.Name] = request, true
			group.Go(func() {
				v.verify(ctx, c.Name, request)
				if sleep(ctx, verifyRest) {
					select {
					case ended <- c.Name:
					case <-ctx.Done():
					}
				}
			})
		}
	}
}
