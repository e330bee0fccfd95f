package watch

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestADenialEnds: also where the server serves no such kind. It forbids what an account may not read before it says so: while
// the rights of an account are replaced, each kind is denied for a moment.
func TestADenialEnds(t *testing.T) {
	t.Parallel()
	gvr := snapshot.VirtualService.GroupVersionResource().GroupResource()
	denied := apierrors.NewForbidden(gvr, "", errors.New("not allowed"))
	for name, answer := range map[string]error{"listed": nil, "absent": apierrors.NewNotFound(gvr, "")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changes := 0
			f := newFeed(&kube.Lister{Kind: snapshot.VirtualService}, nil, func(*istionetworkingv1.VirtualService) bool { return true }, func() { changes++ }, func() {})
			f.mayBeDenied = true
			f.done(denied)
			assert.True(t, f.isDenied())
			before := changes
			f.done(answer)
			assert.False(t, f.isDenied())
			assert.Greater(t, changes, before, "readers are told")
			f.done(errors.New("no answer"))
			assert.False(t, f.isDenied())
		})
	}
}
