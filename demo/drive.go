package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/proc"
)

// serveTimeout bounds the start of the management plane, which takes seconds on
// an idle machine.
const serveTimeout = 10 * time.Minute

func (u *up) kubeconfig() string { return filepath.Join(u.opts.Dir, kubeconfigFile) }

// register registers every cluster like a user, the management cluster first.
func (u *up) register(ctx context.Context) error {
	management := u.state.Clusters[0]
	for _, name := range u.state.Clusters {
		u.opts.Progress.Note("%s", name)
		err := u.meshctl(ctx, "cluster", "register", name, "--kubeconfig", u.kubeconfig(),
			"--remote-context", name, "--mgmt-context", management)
		if err != nil {
			return err
		}
	}
	return nil
}

// meshctl runs the binary; its error contains stderr.
func (u *up) meshctl(ctx context.Context, args ...string) error {
	command := exec.CommandContext(ctx, u.opts.Meshctl, args...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	// Grandchildren may keep the pipe open.
	command.WaitDelay = time.Second
	if err := command.Run(); err != nil {
		return fmt.Errorf("meshctl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return nil
}

// startServe starts the management plane in the background and waits until it is
// ready. It serves metrics at the same address as before, unless another program
// uses it.
func (u *up) startServe(ctx context.Context) error {
	const tries = 3
	for try := 1; ; try++ {
		if u.state.metricsTaken() {
			ports, err := proc.ReservePorts(filepath.Join(u.opts.Dir, stateFile), 1)
			if err != nil {
				return err
			}
			u.state.Metrics = "127.0.0.1:" + strconv.Itoa(ports[0])
		}
		serve, err := proc.Start(u.guard, proc.Spec{
			Name: "meshctl serve", Path: u.opts.Meshctl,
			// No debug endpoints: their users would need tokens, and another serve may
			// use the default address.
			Args: []string{"serve", "--kubeconfig", u.kubeconfig(), "--context", u.state.Clusters[0], "--metrics-bind", u.state.Metrics, "--debug-bind=", "--lease-duration=20s"},
			Dir:  u.opts.Dir, Log: filepath.Join(u.opts.Dir, logsDir, "serve.log"),
		})
		if err != nil {
			return err
		}
		u.state.Serve = serve
		if err := u.state.write(u.opts.Dir); err != nil {
			return err
		}
		err = u.waitServe(ctx)
		// Another program may take the port before serve listens on it.
		if err == nil || try == tries || serve.Alive() || !u.state.metricsTaken() {
			return err
		}
	}
}

// metricsTaken reports whether serve, which does not run, cannot listen on its
// address, or has none yet.
func (s state) metricsTaken() bool {
	_, port, _ := strings.Cut(s.Metrics, ":")
	number, err := strconv.Atoi(port)
	return err != nil || proc.PortInUse(number)
}

func (u *up) waitServe(ctx context.Context) error {
	serve := u.state.Serve
	ctx, cancel := context.WithTimeout(ctx, serveTimeout)
	defer cancel()
	return kube.Until(ctx, "waiting for meshctl serve", func(ctx context.Context) error {
		err := kube.GetOK(ctx, "http://"+u.state.Metrics+"/readyz")
		if err != nil && !serve.Alive() {
			return kube.Final(fmt.Errorf("it exited; the last lines of %s:\n%s", serve.Log, serve.Tail(8)))
		}
		return err
	})
}

// startServing starts the management plane and the agents.
func (u *up) startServing(ctx context.Context) error {
	if err := u.startServe(ctx); err != nil {
		return err
	}
	return u.startAgents(ctx)
}

func (u *up) stopServing(ctx context.Context) error {
	return errors.Join(u.state.Serve.Kill(ctx), u.state.killAgents(ctx))
}

func (u *up) startAgents(ctx context.Context) error {
	var err error
	u.state.Agents, err = u.runtime.StartAgents(ctx, u.clusters, u.opts.Meshctl)
	return errors.Join(err, u.state.write(u.opts.Dir))
}

// reviveAgents starts the agents again if one of them ended.
func (u *up) reviveAgents(ctx context.Context) error {
	if !slices.ContainsFunc(u.state.Agents, func(p proc.Process) bool { return !p.Alive() }) {
		return nil
	}
	u.opts.Progress.Note("an agent had exited; all are restarted")
	if err := u.state.killAgents(ctx); err != nil {
		return err
	}
	return u.startAgents(ctx)
}

func (s state) killAgents(ctx context.Context) error {
	var errs []error
	for _, agent := range s.Agents {
		errs = append(errs, agent.Kill(ctx))
	}
	return errors.Join(errs...)
}
