package serve

import (
	"context"
	"errors"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/relay/hub"
)

// lock is the Lease as the elector uses it. It tells what the elector learns: who holds
// the Lease, when it was renewed, and whether the management cluster answers. Only the
// elector calls it, one call after the other.
type lock struct {
	resourcelock.Interface
	state   *leadership
	renewed func(sent time.Time)
	// host is the address of the management cluster.
	host string
	log  *slog.Logger

	// holder is the holder that was read or written last.
	holder string
	// failures counts requests without an answer in a row.
	failures int
}

// awayAfter is the number of requests in a row that fail until the management cluster
// counts as away: a leader has time for as many before it loses the Lease.
const awayAfter = 3

// errTaken keeps the elector from releasing what another replica holds.
var errTaken = errors.New("another replica holds the Lease")

// Get implements resourcelock.Interface.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	l.answered(err)
	if err == nil {
		l.observeHolder(record.HolderIdentity)
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update implements resourcelock.Interface.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == "" && l.holder != l.Identity() {
		return errTaken
	}
	return l.write(ctx, record, l.Interface.Update)
}

func (l *lock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, write func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	sent := time.Now()
	err := write(ctx, record)
	l.answered(err)
	if err != nil {
		return err
	}
	l.observeHolder(record.HolderIdentity)
	if record.HolderIdentity == l.Identity() {
		l.state.term.Store(&hub.Term{Epoch: uint64(max(record.LeaderTransitions, 0)), Since: record.AcquireTime.Time})
		l.renewed(sent)
	}
	return nil
}

// observeHolder notes who holds the Lease.
func (l *lock) observeHolder(holder string) {
	if holder != l.holder {
		l.holder = holder
		if holder != "" && holder != l.Identity() {
			l.log.Info("standing by", "leader", holder)
		}
	}
	if holder == "" || holder == l.Identity() {
		l.state.other.Store(nil)
	} else {
		l.state.other.Store(&holder)
	}
}

// answered notes the result of a request. An outage is logged once.
func (l *lock) answered(err error) {
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		l.failures = 0
		if l.state.away.Swap(nil) != nil {
			l.log.Info("the management cluster answers again")
		}
		return
	}
	if l.failures++; l.failures < awayAfter {
		return
	}
	reason := "waiting for the management cluster: " + kube.Reason(l.host, err)
	if l.state.away.Swap(&reason) == nil {
		l.log.Warn("the Lease can be neither read nor written; trying again", "reason", kube.Reason(l.host, err))
	}
}
