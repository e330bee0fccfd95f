package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// onOneService is a world with many TrafficPolicies on its first service, each for a
// path of its own.
func onOneService(many int) *snapshot.Input {
	in := enginetest.World(enginetest.Size{Services: 10, Clusters: 2, FederateEvery: 1})
	began := time.Unix(1_700_000_000, 0)
	for n := range many {
		p := enginetest.TrafficPolicy(n, 0, 0, time.Duration(n+1)*time.Millisecond)
		p.Spec.Policy.TrafficShift = nil
		p.Spec.HttpRequestMatchers = []networkingv1.HttpMatcher{{Uri: &commonv1.StringMatch{Prefix: fmt.Sprintf("/path-%05d", n)}}}
		p.Generation = 1
		p.CreationTimestamp = metav1.NewTime(began.Add(time.Duration(n/10) * time.Second))
		in.Management.TrafficPolicies = append(in.Management.TrafficPolicies, p)
	}
	return in
}

// withTraffic is the input with other TrafficPolicies.
func withTraffic(in *snapshot.Input, policies []*networkingv1.TrafficPolicy) *snapshot.Input {
	out, management := *in, *in.Management
	out.Management = &management
	management.TrafficPolicies = policies
	return &out
}

// retimed is the input with another timeout in the nth TrafficPolicy.
func retimed(in *snapshot.Input, n int, timeout time.Duration) *snapshot.Input {
	policies := slices.Clone(in.Management.TrafficPolicies)
	p := policies[n].DeepCopy()
	p.Generation++
	p.Spec.Policy.RequestTimeout = &metav1.Duration{Duration: timeout}
	policies[n] = p
	return withTraffic(in, policies)
}

// storedStatuses is the input as it is when all statuses are written.
func storedStatuses(in *snapshot.Input) *snapshot.Input {
	return echo(in, engine.Translate(in).Output)
}

// BenchmarkEditAmongMany is one edit of one of 2,000 TrafficPolicies on one service, the
// same after all of them were read again because of their statuses, and the deletion of one.
func BenchmarkEditAmongMany(b *testing.B) {
	in := storedStatuses(onOneService(2000))
	b.Run("edit", func(b *testing.B) {
		benchmarkEdits(b, in, retimed(in, 1000, time.Minute), retimed(in, 1000, time.Hour))
	})
	b.Run("edit-after-statuses", func(b *testing.B) {
		policies := slices.Clone(in.Management.TrafficPolicies)
		for n, p := range policies {
			policies[n] = p.DeepCopy()
		}
		written := withTraffic(in, policies)
		benchmarkEdits(b, in, retimed(written, 1000, time.Minute), retimed(written, 1000, time.Hour))
	})
	b.Run("delete", func(b *testing.B) {
		without := func(n int) *snapshot.Input {
			return withTraffic(in, slices.Delete(slices.Clone(in.Management.TrafficPolicies), n, n+1))
		}
		benchmarkEdits(b, in, without(0), without(1))
	})
}
