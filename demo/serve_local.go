package demo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/proc"
	"github.com/meshctl/meshctl/demo/proxies"
)

// serveTimeout bounds the start of the management plane, which takes seconds on
// an idle machine.
const serveTimeout = 10 * time.Minute

// startServe starts the management plane in the background and waits until it is
// ready. It serves metrics, and the admission webhook, at the same addresses as before,
// unless another program uses one.
func (u *up) startServe(ctx context.Context) error {
	const tries = 3
	for try := 1; ; try++ {
		if u.state.serveTaken() {
			ports, err := proc.ReservePorts(filepath.Join(u.opts.Dir, stateFile), 2)
			if err != nil {
				return err
			}
			u.state.Metrics, u.state.Webhook = "127.0.0.1:"+strconv.Itoa(ports[0]), "127.0.0.1:"+strconv.Itoa(ports[1])
		}
		// No debug endpoints: their users would need tokens, and another serve may
		// use the default address.
		args := []string{"serve", "--kubeconfig", u.kubeconfig(), "--context", u.clusters[0].Context(), "--metrics-bind", u.state.Metrics, "--debug-bind=", "--lease-duration=20s",
			"--webhook-bind", u.state.Webhook, "--webhook-url", "https://localhost:" + portOf(u.state.Webhook)}
		if u.state.Relay != nil {
			args = append(args, "--relay-bind", u.state.Relay.Hub, "--relay-advertise", u.state.Relay.Hub)
		}
		serve, err := proc.Start(u.guard, proc.Spec{
			Name: "meshctl serve", Path: u.opts.Meshctl, Args: args,
			Dir: u.opts.Dir, Log: filepath.Join(u.opts.Dir, logsDir, "serve.log"),
		})
		if err != nil {
			return err
		}
		u.state.Serve = serve
		if err := u.state.write(u.opts.Dir); err != nil {
			return err
		}
		err = u.waitServe(ctx)
		// Another program may take a port before serve listens on it.
		if err == nil || try == tries || serve.Alive() || !u.state.serveTaken() {
			return err
		}
	}
}

// serveTaken reports whether serve, which does not run, cannot listen on one of its
// addresses, or has none yet.
func (s state) serveTaken() bool {
	return slices.ContainsFunc([]string{s.Metrics, s.Webhook}, func(address string) bool {
		number, err := strconv.Atoi(portOf(address))
		return err != nil || proc.PortInUse(number)
	})
}

func portOf(address string) string {
	_, port, _ := strings.Cut(address, ":")
	return port
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
func (r *localRuntime) startServing(ctx context.Context, u *up) error {
	if err := u.startServe(ctx); err != nil {
		return err
	}
	return r.startAgents(ctx, u)
}

func (u *up) stopServing(ctx context.Context) error {
	return u.state.killServing(ctx)
}

// killServing ends the management plane, the agents, and what is between both.
func (s state) killServing(ctx context.Context) error {
	errs := []error{s.Serve.Kill(ctx), s.killAgents(ctx)}
	if s.Relay != nil {
		errs = append(errs, s.Relay.Tunnel.Kill(ctx))
	}
	return errors.Join(errs...)
}

func (r *localRuntime) startAgents(ctx context.Context, u *up) error {
	var err error
	u.state.Agents, err = r.runAgents(ctx, u.clusters, u.state.Relay)
	return errors.Join(err, u.state.write(u.opts.Dir))
}

// reviveAgents starts the agents again if one of them ended.
func (r *localRuntime) reviveAgents(ctx context.Context, u *up) error {
	if !slices.ContainsFunc(u.state.Agents, func(p proc.Process) bool { return !p.Alive() }) {
		return nil
	}
	u.opts.Progress.Note("an agent had exited; all are restarted")
	if err := u.state.killAgents(ctx); err != nil {
		return err
	}
	return r.startAgents(ctx, u)
}

func (s state) killAgents(ctx context.Context) error {
	var errs []error
	for _, agent := range s.Agents {
		errs = append(errs, agent.Kill(ctx))
	}
	return errors.Join(errs...)
}

// startHub registers the management cluster, and starts the management plane, which agents can dial.
func (r *localRuntime) startHub(ctx context.Context, u *up) error {
	ports, err := proc.ReservePorts(filepath.Join(u.opts.Dir, stateFile), 2)
	if err != nil {
		return err
	}
	u.state.Relay = &relayState{Hub: "127.0.0.1:" + strconv.Itoa(ports[0]), Address: "127.0.0.1:" + strconv.Itoa(ports[1])}
	if err := u.registerOne(ctx, u.clusters[0]); err != nil {
		return err
	}
	if err := u.startServe(ctx); err != nil {
		return err
	}
	return r.reviveTunnel(u)
}

// reviveTunnel starts the tunnel of the relay, if there is a relay and the tunnel does not run.
func (r *localRuntime) reviveTunnel(u *up) error {
	relay := u.state.Relay
	if relay == nil || relay.Tunnel.Alive() {
		return nil
	}
	var err error
	relay.Tunnel, err = proc.Start(r.guard, proc.Spec{
		Name: "tunnel of the relay", Path: r.meshctl, Args: []string{"demo", "tunnel", "--dir", r.dir}, Dir: r.dir, Log: filepath.Join(r.dir, logsDir, "tunnel.log"),
	})
	return errors.Join(err, u.state.write(u.opts.Dir))
}

// join registers the last cluster to be reached through its agent, which starts meanwhile.
func (r *localRuntime) join(ctx context.Context, u *up) error {
	group, ctx := errgroup.WithContext(ctx)
	last := u.clusters[len(u.clusters)-1]
	group.Go(func() error { return u.registerOne(ctx, last, "--relay", "--relay-server", u.state.Relay.Address) })
	group.Go(func() error { return r.startAgents(ctx, u) })
	return group.Wait()
}

// reviveTimeout bounds the time until all proxies work again, which is seconds on an
// idle machine. A pod of the user's own may never become ready.
const reviveTimeout = 2 * time.Minute

// reviveProxies starts the proxies again if they ended, and waits until they work.
func (u *up) reviveProxies(ctx context.Context) error {
	if u.state.Proxies.PID == 0 || u.state.Proxies.Alive() {
		return nil
	}
	u.opts.Progress.Note("the proxies had exited and are restarted")
	plane := proxies.Open(u.state.Proxies)
	if err := plane.Restart(ctx, u.guard); err != nil {
		return err
	}
	u.state.Proxies = plane.Process()
	if err := u.state.write(u.opts.Dir); err != nil {
		return err
	}
	timed, cancel := context.WithTimeout(ctx, reviveTimeout)
	defer cancel()
	if err := kube.Until(timed, "waiting for the proxies", plane.Ready); err != nil {
		if ctx.Err() != nil {
			return err
		}
		u.opts.Progress.Note("%v", err)
	}
	return nil
}
