package engine_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
)

// TestAMemberIsAskedAgain: what was asked of a member is gone, before or during an exchange of the root. It is asked again, for
// the root that it had, or nobody would ever get further.
func TestAMemberIsAskedAgain(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(w *trustWorld){
		"all is well":                func(*trustWorld) {},
		"the root is exchanged":      (*trustWorld).rotate,
		"another one begins to lead": (*trustWorld).restart,
		"all are asked again": func(w *trustWorld) {
			for _, a := range w.agents {
				a.forget()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTrustWorld(t, 3, rand.New(rand.NewPCG(1, 0)))
			w.translate()
			w.settle()
			had := w.roots.Signs
			before(w)
			w.translate()
			w.agents[1].forget()
			w.translate()
			require.NotNil(t, w.agents[1].asked)
			assert.Equal(t, had, w.agents[1].asked.Trust.Root)
			w.settle()
			assert.Equal(t, networkingv1.TrustEstablished, w.trust().Stage, w.trust().Message)
			assert.Equal(t, []string{w.roots.Signs}, w.agents[1].presented())
		})
	}
}
