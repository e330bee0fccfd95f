package kind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
)

// ErrNoEngine is returned where no container engine can be used.
var ErrNoEngine = errors.New("no container engine")

// providerVariable chooses between engines, as it does for the kind command.
const providerVariable = "KIND_EXPERIMENTAL_PROVIDER"

// needed is the memory, in bytes, that two clusters with Istio and the application use.
const needed = 4 << 30

// Engine is the container engine of this machine: Docker or Podman.
type Engine struct {
	command  string
	provider *cluster.Provider
}

// engines are what kind can use, in the order in which they are looked for, and how each says how
// much memory it has.
var engines = []struct {
	command, memory string
	provider        func() cluster.ProviderOption
}{
	{"docker", "{{.MemTotal}}", cluster.ProviderWithDocker},
	{"podman", "{{.Host.MemTotal}}", cluster.ProviderWithPodman},
}

// FindEngine finds the container engine, and returns ErrNoEngine with the next step if there is none.
func FindEngine() (*Engine, error) {
	wanted := os.Getenv(providerVariable)
	for _, e := range engines {
		if wanted != "" && wanted != e.command {
			continue
		}
		if _, err := exec.LookPath(e.command); err == nil {
			return &Engine{command: e.command, provider: cluster.NewProvider(e.provider())}, nil
		}
	}
	const instead = "; without one, `meshctl demo up` runs clusters as processes"
	if wanted != "" {
		return nil, fmt.Errorf("%w: %s=%s, but docker or podman is wanted, and on the PATH%s", ErrNoEngine, providerVariable, wanted, instead)
	}
	return nil, fmt.Errorf("%w: neither docker nor podman is on the PATH; install one of them (https://docs.docker.com/get-docker)%s", ErrNoEngine, instead)
}

// Check returns an error unless the engine runs and has the memory for a demo.
func (e *Engine) Check(ctx context.Context) error {
	for _, known := range engines {
		if known.command != e.command {
			continue
		}
		out, err := e.run(ctx, nil, "info", "--format", known.memory)
		if err != nil {
			return fmt.Errorf("%w: %w; start %s, or see that you may use it (`%s info` must work)", ErrNoEngine, err, e.command, e.command)
		}
		return enough(e.command, string(out))
	}
	return nil
}

// enough checks what an engine says of its memory. One that says nothing is tried.
func enough(command, bytes string) error {
	total, err := strconv.ParseInt(strings.TrimSpace(bytes), 10, 64)
	if err != nil || total >= needed {
		return nil //nolint:nilerr // how much there is, is then not known
	}
	return fmt.Errorf("%s has %.1f GiB of memory, and two clusters with Istio need %d GiB; give it more (Docker Desktop: Settings, Resources), or use --runtime local",
		command, float64(total)/(1<<30), needed>>30)
}

// run runs a command of the engine, and returns what it prints. The error has what it says.
func (e *Engine) run(ctx context.Context, input io.Reader, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, e.command, args...)
	var out, errs bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = input, &out, &errs
	if err := command.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("%s %s: %w: %s", e.command, args[0], err, strings.TrimSpace(errs.String()))
	}
	return out.Bytes(), nil
}

// Has reports whether the engine has an image.
func (e *Engine) Has(ctx context.Context, image string) bool {
	_, err := e.run(ctx, nil, "image", "inspect", image)
	return err == nil
}

// Pull gets an image from its registry, unless the engine has it.
func (e *Engine) Pull(ctx context.Context, image string, report func(string)) error {
	if e.Has(ctx, image) {
		return nil
	}
	report("pulling " + image + ", once")
	if _, err := e.run(ctx, nil, "pull", "--quiet", image); err != nil {
		return fmt.Errorf("image %s: %w; give the name of one that can be had with --image", image, err)
	}
	return nil
}

// load copies an image to a node.
func (e *Engine) load(ctx context.Context, node nodes.Node, image string) error {
	command := exec.CommandContext(ctx, e.command, "save", image)
	var errs bytes.Buffer
	command.Stderr = &errs
	archive, err := command.StdoutPipe()
	if err != nil {
		return fmt.Errorf("image %s: %w", image, err)
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("image %s: %w", image, err)
	}
	loaded := nodeutils.LoadImageArchive(node, archive)
	// The command ends when nobody reads what it writes.
	_ = archive.Close()
	saved := command.Wait()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case loaded != nil:
		return fmt.Errorf("image %s: loading it on node %s: %w", image, node, explain(loaded))
	case saved != nil:
		return fmt.Errorf("image %s: %s save: %w: %s", image, e.command, saved, strings.TrimSpace(errs.String()))
	}
	return nil
}
