package proxies

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/meshctl/meshctl/demo/helper"
)

// ErrUnavailable is returned where proxies cannot run.
var ErrUnavailable = errors.New("proxies cannot run on this machine")

// Binaries are the programs that run proxies.
type Binaries struct {
	// Dataplane is the helper binary; Envoy is a program, too.
	Dataplane string `json:"dataplane"`
	Envoy     string `json:"envoy"`
	// EnvoyVersion is what Envoy says of itself.
	EnvoyVersion string `json:"envoyVersion"`
}

// Prepare finds, builds or downloads the programs, and tries whether the machine
// permits what they need. If it does not, the error is ErrUnavailable with the
// reason and what the user can do.
func Prepare(ctx context.Context, progress helper.Progress) (b Binaries, err error) {
	if runtime.GOOS != "linux" {
		return b, fmt.Errorf("%w: they need network namespaces, which only Linux has", ErrUnavailable)
	}
	if b.Envoy, err = Envoy(ctx); err != nil {
		return b, unavailable(ctx, err)
	}
	if b.EnvoyVersion, err = envoyVersion(ctx, b.Envoy); err != nil {
		return b, unavailable(ctx, err)
	}
	if b.Dataplane, err = helper.BuildDataplane(ctx, progress); err != nil {
		return b, err
	}
	command := exec.CommandContext(ctx, b.Dataplane, "init", "check")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	if err := command.Run(); err != nil {
		why := strings.TrimSpace(stderr.String())
		if why == "" {
			why = err.Error()
		}
		return b, unavailable(ctx, fmt.Errorf("%s; allow unprivileged user namespaces (Ubuntu: `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`), or run outside of a container", why))
	}
	return b, nil
}

func unavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// bootstrap is Istio's template for the configuration of Envoy.
func (b Binaries) bootstrap() string {
	return filepath.Join(filepath.Dir(b.Dataplane), "bootstrap", "envoy_bootstrap.json")
}
