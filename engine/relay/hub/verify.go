package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

const (
	// verifyTimeout bounds one comparison, and verifyPause is the pause between two looks at what differs: what is on its way is no
	// difference.
	verifyTimeout = 2 * time.Minute
	verifyPause   = 2 * time.Second
	// verifyLooks is how often a difference must be seen to be one.
	verifyLooks = 3
	// maxVerified bounds the objects of a kind that are named.
	maxVerified = 10
)

// Verify compares the objects of a cluster here, at its agent, and in the cluster itself, and tells the result in the statuses, as the
// answer to a request.
func (h *Hub) Verify(ctx context.Context, cluster, request string) {
	h.mu.Lock()
	c := h.clusters[cluster]
	h.mu.Unlock()
	if c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	out := &snapshot.RelayVerified{Request: request}
	if err := c.verify(ctx, h.verifyPause, out); err != nil {
		*out = snapshot.RelayVerified{Request: request, Error: err.Error()}
	}
	out.Time = whole(time.Now())
	b := h.book(cluster)
	b.mu.Lock()
	b.verified = out
	b.mu.Unlock()
	h.options.Log.Info("the relay of a cluster was verified", "cluster", cluster, "differences", len(out.Differences), "error", out.Error)
	h.tell(c)
}

func (c *cluster) verify(ctx context.Context, pause time.Duration, out *snapshot.RelayVerified) error {
	c.mu.Lock()
	remote := c.remote
	c.mu.Unlock()
	if remote == nil {
		return errRemoved
	}
	var all relay.Verification
	if err := c.ask(ctx, "", &all); err != nil {
		return err
	}
	out.Unlisted = len(all.Unlisted)
	for _, kind := range slices.Sorted(maps.Keys(all.Agent)) {
		hub, agent := remote.Sums()[kind], all.Agent[kind]
		out.Kinds++
		out.Objects += agent.Count
		cluster, listed := all.Cluster[kind]
		if hub == agent && (!listed || cluster == agent) {
			continue
		}
		d, err := c.verifyKind(ctx, pause, remote, kind)
		if err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		if d != nil {
			out.Differences = append(out.Differences, *d)
		}
	}
	return nil
}

// verifyKind looks several times at what differs of a kind; nil if nothing does for longer.
func (c *cluster) verifyKind(ctx context.Context, pause time.Duration, remote *watch.Remote, kind string) (*snapshot.RelayDifference, error) {
	var lasting map[string]relay.ObjectDifference
	var d snapshot.RelayDifference
	for look := range verifyLooks {
		if look > 0 {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(pause):
			}
		}
		var answer relay.VerifiedKind
		if err := c.ask(ctx, kind, &answer); err != nil {
			return nil, err
		}
		hub := remote.Hashes(kind)
		now := relay.Differing(hub, answer.Agent, answer.Cluster)
		if look > 0 {
			maps.DeleteFunc(now, func(name string, o relay.ObjectDifference) bool { return lasting[name] != o })
		}
		if lasting = now; len(lasting) == 0 {
			return nil, nil
		}
		d = snapshot.RelayDifference{Kind: kind, Hub: len(hub), Agent: len(answer.Agent), Cluster: len(answer.Cluster), Listed: answer.Cluster != nil}
	}
	for _, name := range slices.Sorted(maps.Keys(lasting)) {
		if len(d.Objects) == maxVerified {
			d.More = len(lasting) - maxVerified
			break
		}
		d.Objects = append(d.Objects, snapshot.RelayDiffering(lasting[name]))
	}
	return &d, nil
}

// ask asks the agent.
func (c *cluster) ask(ctx context.Context, kind string, answer any) error {
	target := url.URL{Scheme: "https", Host: "agent", Path: relay.VerifyPath}
	if kind != "" {
		target.RawQuery = url.Values{relay.VerifyKind: {kind}}.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return err
	}
	response, err := c.exchange.RoundTrip(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusForbidden {
		return errors.New("the agent does not know how to compare: it is of an earlier version; upgrade it")
	}
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return fmt.Errorf("the answer of the agent cannot be read: %w", err)
	}
	return nil
}
