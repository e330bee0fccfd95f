package reading

import (
	"context"
	"fmt"
	"time"

	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// driftDelay is how long an object may differ from its wanted state, while a serve leads, before it is
// reported: serve writes an edit within milliseconds, and first the objects that its routes need.
const driftDelay = 2 * time.Second

// Serving returns a function that reads which serve leads in the management plane. The function fails if
// the management cluster does not answer.
func (m Management) Serving() (func(context.Context) (snapshot.Serving, error), error) {
	client, err := m.clientset()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (snapshot.Serving, error) {
		serving, err := cluster.ReadServing(ctx, client, m.Namespace)
		if err != nil {
			return serving, fmt.Errorf("management cluster %s: %s", m.Config.Host, kube.Message(err))
		}
		return serving, nil
	}, nil
}

// addServeStatus adds to a reading which serve leads and, with an observer, how the objects in the clusters
// differ from their wanted state.
func (m Management) addServeStatus(ctx context.Context, reading *Reading, observer *apply.Observer) error {
	read, err := m.Serving()
	if err != nil {
		return err
	}
	serving, err := read(ctx)
	if err != nil {
		return err
	}
	serving = WithoutLease(serving, reading.Input)
	leads, _ := serving.At(time.Now())
	leads = leads || !serving.Known
	if !leads {
		reading.Notes = append(reading.Notes, explain.NotServed(&serving))
	}
	reading.InForce = func(out *snapshot.Output) (*snapshot.Serving, bool, *snapshot.Observed) {
		if observer == nil {
			return &serving, leads, nil
		}
		drifts := Drifts{Observer: observer}
		observed := drifts.Observe(ctx, out, leads, time.Now())
		if wait := drifts.Wait(time.Now()); wait > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(wait):
				observed = drifts.Observe(ctx, out, leads, time.Now())
			}
		}
		return &serving, leads, observed
	}
	return nil
}

// WithoutLease returns the Serving of a management plane without a Lease as unknown if a serve has written
// statuses there: it may run without leader election.
func WithoutLease(serving snapshot.Serving, in *snapshot.Input) snapshot.Serving {
	if serving.Known && serving.Since.IsZero() && in != nil && in.Management.Server().Version != "" {
		return snapshot.Serving{Reason: "there is no Lease: none runs, or one without leader election"}
	}
	return serving
}

// Drifts reports the objects that differ from their wanted state, without those that a serve may be
// about to write. It is for one goroutine.
type Drifts struct {
	Observer *apply.Observer
	// seen is since when objects have had their present difference.
	seen map[string]time.Time
	// due is when the next difference is old enough to be reported; zero if none was left out.
	due time.Time
}

// Observe compares the objects in the clusters with an Output. Leads: a serve does.
func (d *Drifts) Observe(ctx context.Context, out *snapshot.Output, leads bool, now time.Time) *snapshot.Observed {
	observed := d.Observer.Observe(ctx, out)
	seen, kept := map[string]time.Time{}, []snapshot.Drift{}
	d.due = time.Time{}
	for _, drift := range observed.Drifts {
		key := fmt.Sprint(drift.Ref, drift.State, drift.Fields)
		since, known := d.seen[key]
		if !known {
			since = now
		}
		seen[key] = since
		due := since.Add(driftDelay)
		switch {
		case !leads || !now.Before(due):
			kept = append(kept, drift)
		case d.due.IsZero() || due.Before(d.due):
			d.due = due
		}
	}
	d.seen, observed.Drifts = seen, kept
	return observed
}

// Wait is how long until the next difference that was left out is reported; 0 if none was.
func (d *Drifts) Wait(now time.Time) time.Duration {
	if d.due.IsZero() {
		return 0
	}
	return max(d.due.Sub(now), time.Millisecond)
}
