package explain_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestAHostThatIsNotFederatedAtPresent: it is found, and the answer says why nobody reaches it.
func TestAHostThatIsNotFederatedAtPresent(t *testing.T) {
	t.Parallel()
	const host = "reviews.bookinfo.svc.cluster-2.global"
	in := load(t, "bookinfo")
	without := false
	for _, c := range in.Clusters {
		for _, s := range c.Services {
			if c.Name == "cluster-2" && strings.Contains(s.Name, "eastwest") {
				s.Status.LoadBalancer.Ingress, s.Spec.ExternalIPs, without = nil, nil, true
			}
		}
	}
	require.True(t, without)
	before, now := explain.New(engine.Translate(load(t, "bookinfo"))), explain.New(engine.Translate(in))
	from := theOnly(t, before, snapshot.Workload, "productpage-v1")
	require.Len(t, before.FindCalled(from, host), 1)
	assert.NotEqual(t, explain.Unreachable, before.Why(from, before.FindCalled(from, host)[0], explain.Request{}).Verdict)

	found := now.FindCalled(from, host)
	require.Equal(t, before.FindCalled(from, host), found)
	why := now.Why(from, found[0], explain.Request{})
	assert.Equal(t, explain.Unreachable, why.Verdict)
	assert.Contains(t, why.Reason, "it is not federated at present: ")
	assert.Contains(t, why.Reason, "istio-eastwestgateway")
	assert.Empty(t, now.FindCalled(from, "reviews.bookinfo.svc.cluster-3.global"))
}

// TestCallersByTheNameOfTheirService: if it is the only one.
func TestCallersByTheNameOfTheirService(t *testing.T) {
	t.Parallel()
	x := explain.New(engine.Translate(load(t, "bookinfo")))
	for name, want := range map[string][]string{
		"productpage":                {"productpage-v1-bookinfo-cluster-1-deployment"},
		"productpage-v1":             {"productpage-v1-bookinfo-cluster-1-deployment"},
		"reviews.bookinfo.cluster-1": {"reviews-v1-bookinfo-cluster-1-deployment", "reviews-v2-bookinfo-cluster-1-deployment"},
		"nothing":                    nil,
	} {
		var got []string
		for _, ref := range explain.FindCaller(x, name) {
			got = append(got, ref.Name)
		}
		assert.Equal(t, want, got, name)
	}
}

// TestWhatWasNotReadOnTheWay: a cluster that cannot be read makes an answer uncertain if requests go there, and no other.
func TestWhatWasNotReadOnTheWay(t *testing.T) {
	t.Parallel()
	in := load(t, "bookinfo")
	for _, c := range in.Clusters {
		if c.Name == "cluster-2" {
			c.Sync, c.Reason = snapshot.Stale, "no answer from https://192.0.2.2:6443"
		}
	}
	x := explain.New(engine.Translate(in))
	from := theOnly(t, x, snapshot.Workload, "productpage-v1")
	why := x.Why(from, theOnly(t, x, snapshot.Destination, "reviews.bookinfo.cluster-1"), explain.Request{})
	require.Equal(t, explain.Allowed, why.Verdict)
	assert.Equal(t, "cluster-2 was not read: no answer from https://192.0.2.2:6443", why.NotRead)
	assert.False(t, why.IsAllowed(), "what was not read may decide")
	assert.Equal(t, why.NotRead, why.Page().NotRead)
	assert.Equal(t, why.NotRead, x.NotRead())

	why = x.Why(from, theOnly(t, x, snapshot.Destination, "details.bookinfo.cluster-1"), explain.Request{})
	require.Equal(t, explain.Allowed, why.Verdict)
	assert.Empty(t, why.NotRead)
	assert.True(t, why.IsAllowed())
}
