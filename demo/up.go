package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/manifests"
	"github.com/meshctl/meshctl/demo/proc"
)

// clusterNames are the clusters of a demo; the first one is the management
// cluster.
func clusterNames() []string { return []string{"cluster-1", "cluster-2"} }

// Up starts a demo. If the demo is already running, Up restarts what ended and prints
// the summary. If Up fails or ctx ends (ctrl-c), nothing that it started keeps running;
// if its process is killed, only kind clusters do, until the next Up or Down.
func Up(ctx context.Context, opts Options) error {
	opts, err := opts.complete()
	if err != nil {
		return err
	}
	s, fresh, err := claim(opts, func(old state) error { return clearRemains(ctx, opts, old) })
	if err != nil {
		return err
	}
	guard, err := proc.NewGuard()
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	// This kills the processes that were not released.
	defer guard.Close()
	if !fresh {
		opts.Runtime = s.Runtime
	}
	runtime, err := newRuntime(opts, guard)
	if err != nil {
		return errors.Join(err, abandon(opts.Dir, fresh))
	}
	u := &up{opts: opts, runtime: runtime, guard: guard, state: s, clusters: make([]Cluster, len(s.Clusters))}
	if fresh {
		err = u.create(ctx)
	} else {
		err = u.reuse(ctx)
	}
	if err != nil {
		return err
	}
	if err := guard.Release(); err != nil {
		return fmt.Errorf("demo: releasing its processes: %w", err)
	}
	return u.conclude(ctx, !fresh)
}

// abandon releases a claimed folder that has no other files yet.
func abandon(dir string, fresh bool) error {
	if !fresh {
		return nil
	}
	return remove(dir)
}

// up is one run of Up.
type up struct {
	opts    Options
	runtime Runtime
	guard   *proc.Guard

	state    state
	clusters []Cluster
	// traffic says what became of requests, for the summary.
	traffic string
}

// create starts the demo, step by step.
func (u *up) create(ctx context.Context) error {
	steps := []step{
		// What takes minutes the first time only.
		{title: "Preparing Kubernetes and Istio", run: u.prepare},
		// Two clusters with Istio, in parallel.
		{title: "Starting cluster-1 and cluster-2 with Istio", run: u.createClusters, undo: func(clean context.Context) error {
			if ctx.Err() == nil { // nobody waits for logs who has interrupted it
				u.runtime.saveLogs(u.state)
			}
			return errors.Join(u.state.Proxies.Kill(clean), stopClusters(clean, u.runtime, u.state.Clusters))
		}},
	}
	steps = append(steps, u.runtime.manage(u)...)
	steps = append(steps, []step{
		{title: "Applying a TrafficPolicy and two AccessPolicies", run: u.applyPolicies},
		{title: "Waiting until the policies are enforced", run: u.waitEnforced},
		{title: "Sending requests", run: u.sendRequests},
	}...)
	if err := runSteps(ctx, u.opts.Progress, steps); err != nil {
		if ctx.Err() == nil {
			err = fmt.Errorf("%w; everything was stopped, and the logs are in %s", err, u.opts.Dir)
		}
		return errors.Join(fmt.Errorf("demo: %w", err), u.fail())
	}
	u.state.Phase = Running
	return u.state.write(u.opts.Dir)
}

// reuse restarts the processes that exited.
func (u *up) reuse(ctx context.Context) error {
	return runSteps(ctx, u.opts.Progress, []step{
		{title: "A demo is here already; looking after it", run: u.revive},
	})
}

func (u *up) prepare(ctx context.Context) error {
	return u.runtime.Prepare(ctx, func(message string) { u.opts.Progress.Note("%s", message) })
}

func (u *up) createClusters(ctx context.Context) error {
	group, created := errgroup.WithContext(ctx)
	for i, name := range u.state.Clusters {
		group.Go(func() (err error) {
			u.clusters[i], err = u.runtime.Create(created, name, i+1, func(message string) { u.opts.Progress.Note("%s: %s", name, message) })
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	var err error
	if u.state.Versions, err = u.runtime.Versions(u.clusters); err != nil {
		return err
	}
	kubeconfigs := make([]string, 0, len(u.clusters))
	for _, c := range u.clusters {
		kubeconfigs = append(kubeconfigs, c.Kubeconfig())
	}
	return kube.MergeKubeconfigs(filepath.Join(u.opts.Dir, kubeconfigFile), kubeconfigs...)
}

// startApplication starts bookinfo in all clusters, with its proxies and the gateways.
func (u *up) startApplication(ctx context.Context) error {
	if err := u.startProxies(ctx); err != nil {
		return err
	}
	group, installed := errgroup.WithContext(ctx)
	for _, c := range u.clusters {
		group.Go(func() error {
			if err := u.installBookinfo(installed, c); err != nil {
				return err
			}
			u.opts.Progress.Note("%s: bookinfo is ready, every pod with its sidecar", c.Name())
			return nil
		})
	}
	return group.Wait()
}

// startProxies starts the proxies, or stores why there are none.
func (u *up) startProxies(ctx context.Context) error {
	plane, why, err := u.runtime.StartProxies(ctx, u.clusters)
	if err != nil {
		return err
	}
	u.state.NoProxies = why
	if plane != nil {
		u.state.Proxies = plane.Process()
	}
	return u.state.write(u.opts.Dir)
}

func (u *up) installBookinfo(ctx context.Context, c Cluster) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	bookinfo, err := manifests.Bookinfo(c.Name())
	if err != nil {
		return err
	}
	objects, err := kube.Decode(bookinfo)
	if err != nil {
		return fmt.Errorf("bookinfo of %s: %w", c.Name(), err)
	}
	if err := u.runtime.Adapt(objects, c.Name()); err != nil {
		return fmt.Errorf("bookinfo of %s: %w", c.Name(), err)
	}
	if err := client.Apply(ctx, objects...); err != nil {
		return err
	}
	return client.WaitInjected(ctx, "bookinfo")
}

// stopClusters stops the existing clusters in parallel.
func stopClusters(ctx context.Context, runtime Runtime, names []string) error {
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			c, err := runtime.Open(name)
			if errors.Is(err, ErrNoCluster) {
				return
			}
			if err == nil {
				err = c.Stop(ctx)
			}
			errs[i] = err
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (u *up) revive(ctx context.Context) error {
	// A new meshctl may have a new helper; running clusters keep theirs.
	for i, name := range u.state.Clusters {
		c, err := u.runtime.Open(name)
		if err != nil {
			return fmt.Errorf("demo: %w; remove the rest with `meshctl demo down`", err)
		}
		u.clusters[i] = c
		revived, err := c.Revive(ctx)
		if err != nil {
			return fmt.Errorf("demo: restarting %s: %w; stop the demo with `meshctl demo down`, then start it again", name, err)
		}
		for _, role := range revived {
			u.opts.Progress.Note("%s: %s had exited and was restarted", name, role)
		}
	}
	return u.runtime.revive(ctx, u)
}

// fail stores that the demo failed, and removes everything but the logs.
func (u *up) fail() error {
	keep := append([]string{stateFile, lockFile, logsDir, proxiesDir}, u.state.Clusters...)
	errs := []error{remove(u.opts.Dir, keep...), keepOnly(filepath.Join(u.opts.Dir, proxiesDir), logsDir)}
	for _, name := range u.state.Clusters {
		errs = append(errs, keepOnly(filepath.Join(u.opts.Dir, name), logsDir))
	}
	u.state.Phase = Failed
	return errors.Join(append(errs, u.state.write(u.opts.Dir))...)
}

// keepOnly removes everything in a folder except one entry.
func keepOnly(dir, name string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, entry := range entries {
		if entry.Name() != name {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	return errors.Join(errs...)
}

// clearRemains stops and removes what a failed or killed Up left.
func clearRemains(ctx context.Context, opts Options, old state) error {
	opts.Runtime = old.Runtime
	runtime, err := newRuntime(opts, nil)
	if err != nil {
		return err
	}
	if err := errors.Join(old.killServing(ctx), old.Proxies.Kill(ctx), stopClusters(ctx, runtime, old.Clusters)); err != nil {
		return fmt.Errorf("demo: stopping the processes of a previous one: %w", err)
	}
	// The caller has locked the lock file.
	return remove(opts.Dir, lockFile)
}
