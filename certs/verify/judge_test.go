package verify

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

// TestJudge: a mesh whose control plane signs with the old root and hands out both, an hour ago.
func TestJudge(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	old, next := newRoot(t, now), newRoot(t, now)
	oldMesh, nextMesh := newMesh(t, now, old, next), newMesh(t, now, next, old)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	both := set([]string{sum(old), sum(next)})
	earlier := func() *certificatesv1.TrustReport {
		signing := rootSince(old, ago(100*time.Hour))
		return &certificatesv1.TrustReport{
			Trusted: []string{sum(old)}, Presented: []string{sum(old)}, Signing: &signing,
			HandedOut: []certificatesv1.RootSince{rootSince(old, ago(100*time.Hour)), rootSince(next, ago(time.Hour))},
		}
	}
	type world struct {
		Request
		Observed
	}
	base := func(started time.Time) world {
		return world{
			Request{Root: sum(old), Bundle: bundle(old, next), Secret: oldMesh, Earlier: earlier()},
			Observed{
				Now: now, ControlPlane: []Replica{{Name: "istiod", Started: ago(200 * time.Hour), Answer: answer(oldMesh)}},
				Namespaces: map[string]pki.Bundle{"apps": bundle(old, next)},
				Workloads:  []Workload{{Namespace: "apps", Name: "a", TTL: defaultTTL, Created: started, Started: started}},
			},
		}
	}
	cases := map[string]struct {
		started            time.Time
		change             func(*world)
		trusted, presented []string
		trusting, waiting  int32
		needsControlPlane  string
		needsWorkloads     int
		unseen             int32
	}{
		"started before the next root was handed out": {started: ago(2 * time.Hour), trusted: []string{sum(old)}, presented: []string{sum(old)}, needsWorkloads: 1},
		"started after it":                            {started: ago(30 * time.Minute), trusted: both, presented: []string{sum(old)}, trusting: 1, unseen: 1},
		"started just then":                           {started: ago(time.Hour - time.Second), trusted: []string{sum(old)}, presented: []string{sum(old)}, needsWorkloads: 1},
		"its container, by its node's clock": {started: ago(50 * time.Minute), change: func(w *world) { w.Workloads[0].Created = ago(99 * time.Hour) },
			trusted: both, presented: []string{sum(old)}, trusting: 1, unseen: 1},
		"its node's clock may be fast": {started: ago(time.Hour - 40*time.Second), change: func(w *world) { w.Workloads[0].Created = ago(99 * time.Hour) },
			trusted: []string{sum(old)}, presented: []string{sum(old)}, needsWorkloads: 1},
		"the agent's clock is fast": {started: ago(90 * time.Minute), change: func(w *world) { w.Skew, w.Workloads[0].Started = time.Hour, time.Time{} },
			trusted: both, presented: []string{sum(old)}, trusting: 1, unseen: 1},
		"renewed since": {started: ago(2 * time.Hour), change: func(w *world) { w.Workloads[0].TTL = 50 * time.Minute },
			trusted: both, presented: []string{sum(old)}, trusting: 1, unseen: 1},
		"life of certificates unknown": {started: ago(2 * time.Hour), change: func(w *world) { w.Workloads[0].TTL = 0 },
			trusted: []string{sum(old)}, presented: []string{sum(old)}, needsWorkloads: 1},
		"told by the control plane": {started: ago(2 * time.Hour), change: func(w *world) { w.Workloads[0].FollowsRoots, w.ControlPlane[0].MultiRoot = true, true },
			trusted: both, presented: []string{sum(old)}, trusting: 1, unseen: 1},
		"not told by one that does not": {started: ago(2 * time.Hour), change: func(w *world) { w.Workloads[0].FollowsRoots = true },
			trusted: []string{sum(old)}, presented: []string{sum(old)}, needsWorkloads: 1},
		"seen to trust both": {started: ago(2 * time.Hour), change: func(w *world) {
			w.Workloads[0].Seen = &Seen{Presents: sum(old), Client: sum(old), Accepts: Accepted, Names: []string{string(old.Chain()[0].RawSubject), string(next.Chain()[0].RawSubject)}}
		}, trusted: both, presented: []string{sum(old)}, trusting: 1},
		"seen not to, though it should": {started: ago(30 * time.Minute), change: func(w *world) {
			w.Workloads[0].Seen = &Seen{Presents: sum(old), Client: sum(old), Accepts: Refused, Names: []string{string(next.Chain()[0].RawSubject)}}
		}, trusted: []string{sum(next)}, presented: []string{sum(old)}, needsWorkloads: 1},
		"seen to present another root": {started: ago(30 * time.Minute), change: func(w *world) { w.Workloads[0].Seen = &Seen{Presents: sum(next)} },
			trusted: both, presented: both, trusting: 1, unseen: 1, needsWorkloads: 1},
		"it ends": {started: ago(2 * time.Hour), change: func(w *world) { w.Workloads[0].Ending = true }, trusted: []string{sum(old)}, presented: []string{sum(old)}},
		"its namespace does not have the root": {started: ago(30 * time.Minute), change: func(w *world) { w.Namespaces["apps"] = bundle(old) },
			trusted: []string{sum(old)}, presented: []string{sum(old)}, trusting: 1, unseen: 1},
		"the next signer was just taken up": {started: ago(30 * time.Minute), change: func(w *world) {
			w.Request.Secret, w.Root, w.ControlPlane[0].Answer = nextMesh, sum(next), answer(nextMesh)
		}, trusted: both, presented: both, trusting: 1, unseen: 1},
		"the next signer is not taken up": {started: ago(30 * time.Minute), change: func(w *world) { w.Request.Secret, w.Root = nextMesh, sum(next) },
			trusted: both, presented: []string{sum(old)}, trusting: 1, unseen: 1},
		"nor within some minutes": {started: ago(30 * time.Minute), change: func(w *world) {
			w.Request.Secret, w.Root, w.SecretWritten = nextMesh, sum(next), ago(time.Hour)
		}, trusted: both, presented: []string{sum(old)}, trusting: 1, unseen: 1, needsControlPlane: "has not taken up the Secret within 3m0s"},
		"it cannot take up other roots": {started: ago(30 * time.Minute), change: func(w *world) { w.Request.Secret = newMesh(t, now, old) },
			trusted: both, presented: []string{sum(old)}, trusting: 1, unseen: 1, needsControlPlane: "ISTIO_MULTIROOT_MESH is not set"},
		"the control plane does not answer": {started: ago(30 * time.Minute), change: func(w *world) {
			w.ControlPlane[0].Answer, w.ControlPlane[0].Err = nil, errors.New("timeout")
		}, trusted: []string{sum(old)}, presented: []string{sum(old)}, trusting: 1, unseen: 1},
		"two that differ": {started: ago(30 * time.Minute), change: func(w *world) {
			w.ControlPlane = append(w.ControlPlane, Replica{Name: "second", Answer: answer(nextMesh)})
		}, trusted: both, presented: both, trusting: 1, unseen: 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := base(c.started)
			if c.change != nil {
				c.change(&w)
			}
			r := Judge(w.Request, w.Observed)
			assert.Equal(t, c.trusted, r.Trusted, "trusted")
			assert.Equal(t, c.presented, r.Presented, "presented")
			assert.Equal(t, c.trusting, r.Trusting.Done, "trusting")
			assert.Equal(t, c.unseen, r.Trusting.Unseen, "unseen")
			assert.Len(t, r.NeedsWorkloads, c.needsWorkloads)
			assert.Contains(t, r.NeedsControlPlane, c.needsControlPlane)
			assert.Equal(t, c.needsControlPlane == "", r.NeedsControlPlane == "")
		})
	}
}
