package policy

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
)

// TestObjectsAreComparedOnce: what is read again because of a status is compared with what
// it was, but not with each later change of something else.
func TestObjectsAreComparedOnce(t *testing.T) {
	t.Parallel()
	first := make([]*networkingv1.TrafficPolicy, 10)
	for n := range first {
		first[n] = &networkingv1.TrafficPolicy{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", n)}}
	}
	compared := 0
	same := func(a, b *networkingv1.TrafficPolicy) bool { compared++; return sameTraffic(a, b) }
	kept, read := first, first
	next := func(now []*networkingv1.TrafficPolicy) {
		kept, read = reuseUnchanged(kept, read, now, same), now
	}

	withStatus := make([]*networkingv1.TrafficPolicy, len(first))
	for n, p := range first {
		withStatus[n] = p.DeepCopy()
		withStatus[n].Status.ObservedGeneration = 1
	}
	next(withStatus)
	assert.Equal(t, first, kept)
	assert.Equal(t, 10, compared)

	next(withStatus[1:])
	next(withStatus[1:8])
	next(withStatus[1:8])
	assert.Equal(t, 10, compared, "the rest is what it was")
	for n, p := range kept {
		assert.Same(t, first[n+1], p)
	}

	edited := append([]*networkingv1.TrafficPolicy{}, withStatus[1:8]...)
	edited[3] = edited[3].DeepCopy()
	edited[3].Generation = 2
	next(edited)
	assert.Same(t, edited[3], kept[3])
	assert.Same(t, first[5], kept[4])
	next(withStatus[1:8])
	assert.Same(t, withStatus[4], kept[3], "it is as it was before the last one")
	next(append(withStatus[:1:1], edited...))
	assert.Same(t, withStatus[0], kept[0], "it came again")
	assert.Same(t, edited[3], kept[4])
}
