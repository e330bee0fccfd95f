package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

type countingRefresher struct {
	Restarter
	asked []bool
	err   error
}

func (r *countingRefresher) Refresh(_ context.Context, _ MeshTarget, waits bool) error {
	r.asked = append(r.asked, waits)
	return r.err
}

// TestRefresh: kubelets are asked only while the control plane waits for them, and what that left goes afterwards. An agent that may
// not ask says so and goes on.
func TestRefresh(t *testing.T) {
	t.Parallel()
	refused := fmt.Errorf("pod a/b: %w", apierrors.NewForbidden(corev1.Resource("pods"), "b", errors.New("no rule")))
	behind := certificatesv1.TrustProgress{Done: 1, Total: 2}
	for name, tt := range map[string]struct {
		state  *MeshState
		err    error
		asked  []bool
		hinted bool
		failed bool
	}{
		"nothing is seen":            {state: nil},
		"it has taken up the Secret": {state: &MeshState{ControlPlane: certificatesv1.TrustProgress{Done: 2, Total: 2}}, asked: []bool{false}},
		"a restart is needed":        {state: &MeshState{ControlPlane: behind, NeedsControlPlane: true}, asked: []bool{false}},
		"it waits":                   {state: &MeshState{ControlPlane: behind}, asked: []bool{true}},
		"it may not be asked for":    {state: &MeshState{ControlPlane: behind}, err: refused, asked: []bool{true}, hinted: true},
		"the API server is away":     {state: &MeshState{ControlPlane: behind}, err: errors.New("away"), asked: []bool{true}, failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &countingRefresher{err: tt.err}
			f := &facts{observed: observed{mesh: tt.state}}
			err := (&agent{options: Options{Restarter: r}}).refresh(t.Context(), f)
			assert.Equal(t, tt.asked, r.asked)
			assert.Equal(t, tt.hinted, strings.Contains(f.nextStep(), "register the cluster again"), f.nextStep())
			assert.Equal(t, tt.failed, err != nil, "%v", err)
		})
	}
}
