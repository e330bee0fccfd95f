//go:build linux

package telemetry

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// CPUSeconds is what this process has used.
func CPUSeconds(t testing.TB) float64 {
	t.Helper()
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

// Resident is the resident memory of this process, in bytes.
func Resident(t testing.TB) float64 {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	pages, err := strconv.ParseFloat(strings.Fields(string(raw))[1], 64)
	require.NoError(t, err)
	return pages * float64(os.Getpagesize())
}

// Live is what is in use after a collection, in bytes: on the heap, and as stacks of goroutines.
func Live() (heap, stacks float64) {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc), float64(stats.StackInuse)
}
