package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// driftsAfter is how long an object may differ from what follows before that is said, while a
// serve leads: it writes edits within milliseconds, and what routes need before them.
const driftsAfter = 2 * time.Second

// Plane is the management plane. If its identity cannot be read, all objects of management planes in a
// namespace of this name count as its own; the error is about an identity that is broken.
func (m Management) Plane(ctx context.Context) (snapshot.Plane, error) {
	client, err := m.clientset()
	if err != nil {
		return snapshot.Plane{}, err
	}
	id, err := cluster.PlaneID(ctx, client, m.Namespace)
	var broken *cluster.BrokenPlaneError
	if errors.As(err, &broken) {
		return snapshot.Plane{}, err
	}
	return snapshot.Plane{Namespace: m.Namespace, ID: id}, nil
}

// Serving returns a function that asks who leads in the management plane. Its error is about
// a server that does not answer.
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

func (m Management) clientset() (kube.Clientset, error) {
	client, err := kube.NewClientset(m.Config)
	if err != nil {
		return nil, fmt.Errorf("management cluster %s: %w", m.Config.Host, err)
	}
	return client, nil
}

// attend adds to a reading who serves and, with an observer, what clusters have.
func (m Management) attend(ctx context.Context, reading *Reading, observer *apply.Observer) error {
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

// Without a Lease, a serve may run all the same: one without leader election. WithoutLease
// says so if some serve has written what was read.
func WithoutLease(serving snapshot.Serving, in *snapshot.Input) snapshot.Serving {
	if serving.Known && serving.Since.IsZero() && in != nil && in.Management.Server().Version != "" {
		return snapshot.Serving{Reason: "there is no Lease: none runs, or one without leader election"}
	}
	return serving
}

// Drifts are the objects that differ from what follows, without those that a serve may be
// about to write. It is for one goroutine.
type Drifts struct {
	Observer *apply.Observer
	// seen is since when objects differ as they do.
	seen map[string]time.Time
	// due is when the next of them has differed for long enough; zero if none is left out.
	due time.Time
}

// Observe compares what clusters have with an Output. Leads says whether a serve leads.
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
		due := since.Add(driftsAfter)
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

// Wait is how long until something that was left out would be said; 0 if nothing was.
func (d *Drifts) Wait(now time.Time) time.Duration {
	if d.due.IsZero() {
		return 0
	}
	return max(d.due.Sub(now), time.Millisecond)
}
