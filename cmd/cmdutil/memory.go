package cmdutil

import (
	"errors"
	"log/slog"
	"math"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// LimitMemory lets a process that runs for long stay below the memory limit of its container: Go collects
// garbage in time, instead of being killed. A tenth is left for what Go does not count. It does nothing
// without a limit, or if GOMEMLIMIT or AUTOMEMLIMIT says otherwise. Whatever fails is logged: the process then runs as without it.
func LimitMemory(log *slog.Logger) { limitMemory(log, memlimit.FromCgroup) }

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
