// Package waittest is how tests wait for a condition, with a limit that only a
// failure reaches.
package waittest

import (
	"errors"
	"testing"
	"time"
)

// Limit bounds every wait of a test. A wait ends when its condition holds, so a
// long limit only delays failures, while a short one fails on a busy machine.
const Limit = 10 * time.Minute

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
	for deadline := time.Now().Add(Limit); ; time.Sleep(pause) {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited %s in vain until %s: %v", Limit, what, err)
		}
	}
}

// SkipIfShort skips the test if go test runs with -short. Why says what takes long,
// such as "starts whole clusters".
func SkipIfShort(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: " + why)
	}
}
