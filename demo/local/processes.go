package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/proc"
)

// run starts a role of the helper and stores its process in the state.
func (c *Cluster) run(ctx context.Context, role string, env []string, args ...string) error {
	return c.startProcess(ctx, proc.Spec{
		Name: role, Path: c.state.Helper, Args: append([]string{role}, args...), Env: env,
		Dir: c.path(workDir(role)), Log: c.path("logs", role+".log"),
	})
}

// workDir is the working directory of a role: istiod reads certificates and
// configuration from relative paths.
func workDir(role string) string {
	if role == Istiod {
		return "istiod"
	}
	return "."
}

// startProcess starts a role; if it still runs, it is killed first.
func (c *Cluster) startProcess(ctx context.Context, spec proc.Spec) error {
	if earlier, err := c.process(spec.Name); err == nil {
		if err := c.end(ctx, earlier); err != nil {
			return err
		}
	}
	p, err := proc.Start(c.guard, spec)
	if err != nil {
		return fmt.Errorf("cluster %s: %w", c.Name(), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.put(p)
	return c.state.write(c.dir)
}

func (c *Cluster) end(ctx context.Context, p proc.Process) error {
	if err := p.Kill(ctx); err != nil {
		return fmt.Errorf("cluster %s: %w", c.Name(), err)
	}
	return c.guard.Forget(p)
}

func (c *Cluster) process(role string) (proc.Process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.state.find(role)
	if !ok {
		return proc.Process{}, fmt.Errorf("cluster %s: it never had a process %s", c.Name(), role)
	}
	return p, nil
}

func (c *Cluster) allAlive() bool {
	return !slices.ContainsFunc(c.Processes(), func(p proc.Process) bool { return !p.Alive() })
}

func (c *Cluster) has(role string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.state.find(role)
	return ok
}

// Kill kills one role, like a crash. The others keep running.
func (c *Cluster) Kill(ctx context.Context, role string) error {
	p, err := c.process(role)
	if err != nil {
		return err
	}
	return c.end(ctx, p)
}

// Restart starts a role again with the same ports and arguments, and waits until
// it is ready. If it still runs, it is killed first.
func (c *Cluster) Restart(ctx context.Context, role string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	p, err := c.process(role)
	if err != nil {
		return err
	}
	if err := c.startProcess(ctx, p.Spec); err != nil {
		return err
	}
	switch role {
	case Etcd, APIServer:
		return readinessOf(c).waitAPIServer(ctx)
	case Istiod:
		return readinessOf(c).waitIstiod(ctx)
	case OSMController:
		return osmOn(c).waitOSM(ctx)
	default:
		return nil
	}
}

// Revive starts the roles that do not run, and returns their names. It repeats
// until all run, because one may exit while the others are started.
func (c *Cluster) Revive(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var revived []string
	for try := 1; ; try++ {
		started, err := c.startEnded(ctx)
		revived = append(revived, started...)
		if err == nil && len(started) == 0 {
			return revived, nil
		}
		taken := (*portsTakenError)(nil)
		switch {
		case err != nil && (ctx.Err() != nil || c.allAlive() || errors.As(err, &taken)):
			return revived, err // a retry cannot help
		case try == reviveTries:
			return revived, errors.Join(fmt.Errorf("cluster %s: its processes keep exiting; see their logs in %s", c.Name(), c.path("logs")), err)
		}
	}
}

// reviveTries bounds how often Revive starts a role that exits at once.
const reviveTries = 4

// startEnded starts each role that does not run. The others exit if there is no
// API server, so it waits for etcd and the API server first.
func (c *Cluster) startEnded(ctx context.Context) ([]string, error) {
	var started []string
	for _, p := range c.Processes() {
		if p.Alive() {
			continue
		}
		if p.Name != Etcd && p.Name != APIServer {
			if err := readinessOf(c).waitAPIServer(ctx); err != nil {
				return started, err
			}
		}
		if err := c.startProcess(ctx, p.Spec); err != nil {
			return started, err
		}
		started = append(started, p.Name)
	}
	// Also if nothing was started: a killed process runs a moment longer.
	if err := readinessOf(c).waitAPIServer(ctx); err != nil {
		return started, err
	}
	if c.has(Istiod) {
		if err := readinessOf(c).waitIstiod(ctx); err != nil {
			return started, err
		}
	}
	if c.has(OSMController) {
		return started, osmOn(c).waitOSM(ctx)
	}
	return started, nil
}

// readiness waits for the processes of a cluster.
type readiness struct{ *Cluster }

func readinessOf(c *Cluster) readiness { return readiness{c} }

func (c readiness) waitAPIServer(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	ready := func(ctx context.Context) error {
		if err := client.Ready(ctx); err != nil {
			return err
		}
		// The API server creates it a moment after it is ready. Tests that watch
		// from the start must not see that as a change.
		_, err := client.Get(ctx, schema.GroupVersionResource{Version: "v1", Resource: "services"}, "default", "kubernetes")
		return err
	}
	return c.waitRole(ctx, "API server", ready, Etcd, APIServer)
}

func (c readiness) waitIstiod(ctx context.Context) error {
	url := "http://" + c.address("istiod-http") + "/ready"
	return c.waitRole(ctx, "istiod", func(ctx context.Context) error { return kube.GetOK(ctx, url) }, Istiod)
}

// waitRole waits until ready returns nil. If one of the required roles exits, it
// returns the last lines of its log as the error.
func (c readiness) waitRole(ctx context.Context, what string, ready func(context.Context) error, roles ...string) error {
	return kube.Until(ctx, fmt.Sprintf("cluster %s: waiting for %s", c.Name(), what), func(ctx context.Context) error {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		for _, role := range roles {
			if p, findErr := c.process(role); findErr != nil || !p.Alive() {
				return kube.Final(c.endedError(p))
			}
		}
		return err
	})
}

func newReader(data []byte) io.Reader { return bytes.NewReader(data) }
