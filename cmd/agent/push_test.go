package agent

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/certs/verify"
)

// TestMeshCertificateWaits: whoever needs the certificate waits for istiod no longer than it may, and istiod is asked once for all, and not again
// at once if it gave none.
func TestMeshCertificateWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		m := &meshCertificate{now: time.Now, ask: func(context.Context) (*verify.Answer, error) {
			asked++
			time.Sleep(8 * time.Second)
			return nil, errors.New("istiod is away")
		}}
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				_, err := m.current(ctx)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.ErrorContains(t, err, "istiod has not answered yet")
			})
		}
		all.Go(func() {
			_, err := m.current(t.Context())
			assert.EqualError(t, err, "a certificate of the mesh: istiod is away")
		})
		all.Wait()
		require.Equal(t, 1, asked)
		_, err := m.current(t.Context())
		require.ErrorContains(t, err, "istiod is away")
		require.Equal(t, 1, asked)
		time.Sleep(pushAgain)
		_, err = m.current(t.Context())
		require.ErrorContains(t, err, "istiod is away")
		require.Equal(t, 2, asked)
	})
}
