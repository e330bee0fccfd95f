// Package waittest is how tests wait for a condition, with a limit that only a
// failure reaches.
package waittest

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// pause is the time between two checks of a condition.
const pause = 5 * time.Millisecond

// Until waits until the condition holds. It is called in the test's own
// goroutine, so it may end the test.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	NoError(t, what, func() error {
		if !holds() {
			return errors.New("it does not hold")
		}
		return nil
	})
}

// NoError waits until try returns nil, and fails the test with its last error.
// Like the condition of Until, try may end the test.
func NoError(t testing.TB, what string, try func() error) {
	t.Helper()
	limit := Limit()
	for deadline := time.Now().Add(limit); ; time.Sleep(pause) {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited %s in vain until %s: %v", limit, what, err)
		}
	}
}

// SeedVariable is the environment variable with the seed of a random test.
const SeedVariable = "MESHCTL_TEST_SEED"

// DrawVariable is the environment variable with a text, such as a commit, that chooses the seeds of all random
// tests where SeedVariable does not: who checks one commit twice sees the same worlds twice, and the next
// commit draws others. Without it, each run draws its own.
const DrawVariable = "MESHCTL_TEST_DRAW"

// Seed returns the seed of a random test: SeedVariable, what DrawVariable chooses for a test of this name, or one
// by chance. It logs how to repeat the test.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv(SeedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s is the number that an earlier run printed: %v", SeedVariable, err)
		}
	} else if draw := os.Getenv(DrawVariable); draw != "" {
		sum := sha256.Sum256([]byte(draw + " " + t.Name()))
		seed = binary.BigEndian.Uint64(sum[:])
	}
	t.Logf("repeat with %s=%d", SeedVariable, seed)
	return seed
}

// SkipIfShort skips the test if go test runs with -short. Why says what takes long,
// such as "starts whole clusters".
func SkipIfShort(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: " + why)
	}
}
