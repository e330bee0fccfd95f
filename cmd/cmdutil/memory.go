package cmdutil

import (
	"errors"
	"log/slog"
	"math"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// garbagePercent is how much garbage there may be, in percent of what is in use. Most of that lives as long as the clusters, and an
// edit allocates little: with Go's 100, a process of 1,000 services is 12 MB larger, and a whole translation a tenth faster.
const garbagePercent = 50

// LimitMemory keeps a process that runs for long small. It stays below the memory limit of its container: Go collects
// garbage in time, instead of being killed. A tenth is left for what Go does not count. That is not so
// without a limit, or if GOMEMLIMIT or AUTOMEMLIMIT says otherwise. Whatever fails is logged: the process then runs as without it.
// Garbage is collected earlier than is usual for Go, unless GOGC says when.
func LimitMemory(log *slog.Logger) {
	collectEarly(os.Getenv)
	limitMemory(log, memlimit.FromCgroup)
}

func collectEarly(environment func(string) string) {
	if environment("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
}

func limitMemory(log *slog.Logger, container memlimit.Provider) {
	limit, err := memlimit.Set(memlimit.WithProvider(container))
	switch {
	case errors.Is(err, memlimit.ErrNoCgroup), errors.Is(err, memlimit.ErrCgroupsNotSupported), err == nil && limit == math.MaxInt64:
		log.Debug("the memory of this process has no limit")
	case err != nil:
		log.Warn("the memory limit of the container cannot be read; set GOMEMLIMIT to nine tenths of it", "error", err)
	default:
		log.Info("memory is limited", "bytes", limit)
	}
}
