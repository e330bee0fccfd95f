package pki

import (
	"crypto/rand"
	"crypto/x509"
	"math"
	mathrand "math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/waittest"
)

// TestNothingOutlivesItsSigner for random lives of root and mesh, at random times.
func TestNothingOutlivesItsSigner(t *testing.T) {
	t.Parallel()
	seed := waittest.Seed(t)
	random := mathrand.New(mathrand.NewPCG(seed, 1))
	upTo := func(d time.Duration) time.Duration { return time.Duration(random.Int64N(int64(d))) }
	rootKey, key := newKey(t), newKey(t)
	req := newRequest(t, key, istiod)
	cut, refused := 0, 0
	for range 300 {
		root, err := NewRoot(rand.Reader, now.Add(upTo(day)), rootKey, ours, Life{Lasts: time.Second + upTo(20*day), Backdate: upTo(2 * time.Hour)})
		require.NoError(t, err)
		at := now.Add(upTo(21*day) - time.Hour)
		g := grant
		g.Life = Life{Lasts: time.Second + upTo(20*day), Backdate: upTo(40 * day)}
		issued, err := root.Sign(rand.Reader, at, req, g)
		above := root.chain[0]
		if at.Before(above.NotBefore) || at.After(above.NotAfter) {
			refused++
			assert.Contains(t, []Reason{Expired, NotYetValid}, ReasonOf(err), "seed %d: %v", seed, err)
			continue
		}
		require.NoError(t, err, "seed %d", seed)
		cert := issued.Chain[0]
		assert.False(t, cert.NotAfter.After(above.NotAfter), "seed %d: outlives its signer", seed)
		assert.False(t, cert.NotBefore.Before(above.NotBefore), "seed %d: begins before its signer", seed)
		assert.False(t, cert.NotAfter.After(at.Add(g.Life.Lasts)), "seed %d: longer than asked", seed)
		assert.False(t, at.Before(cert.NotBefore) || at.After(cert.NotAfter), "seed %d: valid now", seed)
		if wanted := at.Add(g.Life.Lasts).Truncate(time.Second); issued.CutBy != nil {
			cut++
			assert.True(t, cert.NotAfter.Equal(above.NotAfter) && wanted.After(above.NotAfter), "seed %d", seed)
		} else {
			assert.True(t, cert.NotAfter.Equal(wanted), "seed %d", seed)
		}
	}
	assert.True(t, cut > 10 && refused > 10 && cut+refused < 290, "the cases are one-sided: %d cut, %d refused, seed %d", cut, refused, seed)
}

// TestAnHourOfClockSkew: a certificate that was just issued is valid where the clock is an hour slow, and the text says
// what to do where it is slower, or where the signer's is fast.
func TestAnHourOfClockSkew(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	mesh := newMesh(t, root, grant)
	roots := NewBundle(root.chain...)
	slow := now.Add(-time.Hour)
	assert.NoError(t, Verify(mesh.chain, roots, slow, Want{Usage: ForCA}))
	assert.NoError(t, Verify(mesh.chain, roots, now.Add(time.Hour), Want{Usage: ForCA}))
	err := Verify(mesh.chain, roots, slow.Add(-time.Minute).Truncate(time.Second), Want{Usage: ForCA})
	assertError(t, err, NotYetValid, "is valid from 2026-03-01T11:00:00Z on, 1m0s after 2026-03-01T10:59:00Z; correct the clock")
}

func TestWithinARoundedSecond(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	g := grant
	g.Life = Life{Lasts: time.Second}
	issued, err := root.Sign(rand.Reader, now, newRequest(t, newKey(t), istiod), g)
	require.NoError(t, err)
	assert.Equal(t, time.Second, issued.Chain[0].NotAfter.Sub(issued.Chain[0].NotBefore))
}

func TestRenewAt(t *testing.T) {
	t.Parallel()
	cert := &x509.Certificate{NotBefore: now, NotAfter: now.Add(100 * day)}
	for ratio, want := range map[float64]time.Duration{0: 90 * day, 0.1: 90 * day, 0.5: 50 * day, 0.99: day, 1e-9: 100*day - 8640*time.Microsecond} {
		at, err := RenewAt(cert, ratio)
		require.NoError(t, err)
		assert.WithinDuration(t, now.Add(want), at, time.Millisecond, "%v", ratio)
	}
	for _, ratio := range []float64{-0.1, 1, 2, math.NaN(), math.Inf(1), math.Inf(-1)} {
		_, err := RenewAt(cert, ratio)
		assertError(t, err, Unsupported, "secretRotationGracePeriodRatio")
	}
}

func TestRounded(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		400 * time.Millisecond: "400ms", 90*time.Second + 5: "1m30s", 3 * time.Hour: "3h0m0s", 72*time.Hour + 1: "3 days",
	} {
		assert.Equal(t, want, rounded(d))
	}
}
