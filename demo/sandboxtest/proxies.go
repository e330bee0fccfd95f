package sandboxtest

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/helper"
	"github.com/meshctl/meshctl/demo/proc"
	"github.com/meshctl/meshctl/demo/proxies"
)

// Proxies skips a test that needs proxies, with the reason, where the machine does not
// permit them; with CI=true that is a failure.
func Proxies(t testing.TB) {
	t.Helper()
	_, err := proxies.Prepare(t.Context(), helper.Progress{Report: func(message string) { t.Log(message) }})
	if errors.Is(err, proxies.ErrUnavailable) && os.Getenv("CI") != "true" {
		t.Skipf("nothing is proven on the wire: %v", err)
	}
	require.NoError(t, err)
}

// Watch ends processes if the test binary ends before the test does.
func Watch(t testing.TB, pids ...int) {
	t.Helper()
	guard, _, err := folder()
	require.NoError(t, err)
	for _, pid := range pids {
		require.NoError(t, guard.Watch(pid))
		t.Cleanup(func() {
			if err := guard.Forget(proc.Process{PID: pid}); err != nil {
				t.Errorf("process %d: %v", pid, err)
			}
		})
	}
}
