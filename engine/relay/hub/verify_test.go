package hub

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// agentThatAnswers begins a stream of Exchange, and answers requests of some paths; others are refused, as by an agent of an earlier version.
func agentThatAnswers(t *testing.T, client relayv1.RelayClient, answers func(target *url.URL) any) {
	t.Helper()
	in, err := client.Exchange(t.Context())
	require.NoError(t, err)
	require.NoError(t, in.Send(&relayv1.Answer{Hello: hello("west")}))
	_, err = in.Recv()
	require.NoError(t, err)
	go func() {
		for {
			r, err := in.Recv()
			if err != nil {
				return
			}
			target, err := url.Parse(r.GetPath())
			if err != nil || r.GetId() == 0 {
				continue
			}
			a := &relayv1.Answer{Id: r.GetId(), Status: http.StatusForbidden}
			if body := answers(target); body != nil {
				a.Status = http.StatusOK
				a.Body, _ = json.Marshal(body)
			}
			_ = in.Send(a)
		}
	}()
}

// verified is the result of a comparison.
func verified(t *testing.T, h *Hub) *snapshot.RelayVerified {
	t.Helper()
	waittest.Until(t, "there is a stream of Exchange", func() bool { return h.Statuses()[0].Exchange.Open })
	h.verifyPause = time.Millisecond
	h.Verify(t.Context(), "west", "r1")
	v := h.Statuses()[0].Relay.Verified
	require.NotNil(t, v)
	assert.Equal(t, "r1", v.Request)
	assert.False(t, v.Time.IsZero())
	return v
}

// TestVerifyNamesWhatDiffers: a difference that lasts is told with what each side has, and at most ten objects of a kind are named; one that
// passes is none, and a kind that cannot be listed is compared between two.
func TestVerifyNamesWhatDiffers(t *testing.T) {
	t.Parallel()
	h, client := serving(t)
	services, pods, nodes, maps := relay.KindName(snapshot.Service), relay.KindName(snapshot.Pod), relay.KindName(snapshot.Node), relay.KindName(snapshot.ConfigMap)
	many := relay.Hashes{}
	for c := 'a'; c < 'a'+13; c++ {
		many["shop/"+string(c)] = "0123456789abcdef"
	}
	passing := 0
	agentThatAnswers(t, client, func(target *url.URL) any {
		if target.Path != relay.VerifyPath {
			return nil
		}
		switch target.Query().Get(relay.VerifyKind) {
		case "":
			none := relay.Sum{Digest: "00000000000000000000000000000000"}
			return relay.Verification{
				Agent:    relay.Sums{services: {Count: 13, Digest: "1"}, pods: {Count: 1, Digest: "2"}, nodes: none, maps: {Count: 1, Digest: "3"}},
				Cluster:  relay.Sums{services: {Count: 13, Digest: "1"}, pods: {Count: 1, Digest: "2"}, nodes: none},
				Unlisted: map[string]string{maps: "only some"},
			}
		case services:
			return relay.VerifiedKind{Agent: many, Cluster: many}
		case pods:
			if passing++; passing == 1 {
				return relay.VerifiedKind{Agent: relay.Hashes{"shop/p": "11"}, Cluster: relay.Hashes{}}
			}
			return relay.VerifiedKind{Agent: relay.Hashes{}, Cluster: relay.Hashes{}}
		case maps:
			return relay.VerifiedKind{Agent: relay.Hashes{"istio-system/istio": "22"}}
		}
		return nil
	})
	v := verified(t, h)
	assert.Empty(t, v.Error)
	assert.Equal(t, 4, v.Kinds)
	assert.Equal(t, 15, v.Objects)
	assert.Equal(t, 1, v.Unlisted)
	require.Len(t, v.Differences, 2)
	assert.Equal(t, snapshot.RelayDifference{Kind: maps, Agent: 1, Objects: []snapshot.RelayDiffering{{Name: "istio-system/istio", Agent: "22"}}}, v.Differences[0])
	d := v.Differences[1]
	assert.Equal(t, services, d.Kind)
	assert.Equal(t, []int{0, 13, 13, 3}, []int{d.Hub, d.Agent, d.Cluster, d.More})
	assert.Len(t, d.Objects, maxVerified)
	assert.Equal(t, snapshot.RelayDiffering{Name: "shop/a", Agent: "01234567", Cluster: "01234567"}, d.Objects[0])
}

func TestVerifyOfAnEarlierAgent(t *testing.T) {
	t.Parallel()
	h, client := serving(t)
	agentThatAnswers(t, client, func(*url.URL) any { return nil })
	assert.Equal(t, "the agent does not know how to compare: it is of an earlier version; upgrade it", verified(t, h).Error)
}
