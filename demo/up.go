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

// clusterNames are the clusters of a demo; the first is also where meshctl's
// own objects live.
func clusterNames() []string { return []string{"cluster-1", "cluster-2"} }

// Up brings a demo up, or says what is running if it is up already, starting
// again what has ended since. When it fails, or ctx ends (ctrl-c), or even when
// its process is killed, none of the processes it started stays.
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
	// Whatever was not released ends here.
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
		return fmt.Errorf("demo: letting its processes go: %w", err)
	}
	return u.conclude(ctx, !fresh)
}

// abandon gives back a folder that was claimed and in which nothing was done.
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
}

// create is the demo, step by step.
func (u *up) create(ctx context.Context) error {
	err := runSteps(ctx, u.opts.Progress, []step{
		// The binary that plays Kubernetes and Istio; minutes the first time, nothing later.
		{title: "Preparing Kubernetes and Istio", run: u.prepare},
		// Two clusters with Istio and the application, side by side.
		{title: "Starting cluster-1 and cluster-2 with Istio and bookinfo", run: u.createClusters, undo: u.stopClusters},
		// The management cluster registers itself too: it also runs workloads.
		{title: "Registering both clusters", run: u.register},
		{title: "Starting meshctl serve", run: u.startServe, undo: u.stopServe},
		{title: "Applying a VirtualMesh, a TrafficPolicy and two AccessPolicies", run: u.applyPolicies},
		{title: "Waiting until the policies are enforced", run: u.waitEnforced},
	})
	if err != nil {
		if ctx.Err() == nil {
			err = fmt.Errorf("%w; nothing runs any more, all logs stay in %s", err, u.opts.Dir)
		}
		return errors.Join(fmt.Errorf("demo: %w", err), u.fail())
	}
	u.state.Phase = Running
	return u.state.write(u.opts.Dir)
}

// reuse starts again what has ended since.
func (u *up) reuse(ctx context.Context) error {
	return runSteps(ctx, u.opts.Progress, []step{
		{title: "A demo is here already; looking after its processes", run: u.revive},
	})
}

func (u *up) prepare(ctx context.Context) error {
	versions, err := u.runtime.Versions()
	if err != nil {
		return err
	}
	u.state.Versions = versions
	return u.runtime.Prepare(ctx, func(sentence string) { u.opts.Progress.Note("%s", sentence) })
}

func (u *up) createClusters(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for i, name := range u.state.Clusters {
		group.Go(func() error {
			say := func(sentence string) { u.opts.Progress.Note("%s: %s", name, sentence) }
			c, err := u.runtime.Create(ctx, name, i+1, say)
			if err != nil {
				return err
			}
			u.clusters[i] = c
			say("Istio is ready, starting bookinfo")
			if err := installBookinfo(ctx, c); err != nil {
				return err
			}
			say("bookinfo is ready, every pod with its sidecar")
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	kubeconfigs := make([]string, 0, len(u.clusters))
	for _, c := range u.clusters {
		kubeconfigs = append(kubeconfigs, c.Kubeconfig())
	}
	return kube.MergeKubeconfigs(filepath.Join(u.opts.Dir, kubeconfigFile), kubeconfigs...)
}

func installBookinfo(ctx context.Context, c Cluster) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	objects, err := manifests.Bookinfo(c.Name())
	if err != nil {
		return err
	}
	if err := client.ApplyYAML(ctx, objects); err != nil {
		return err
	}
	return client.WaitInjected(ctx, "bookinfo")
}

func (u *up) stopClusters(ctx context.Context) error {
	return stopClusters(ctx, u.runtime, u.state.Clusters)
}

// stopClusters stops the clusters that are there, in parallel.
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
	// A new meshctl may bring a new helper; running clusters keep theirs.
	for i, name := range u.state.Clusters {
		c, err := u.runtime.Open(name)
		if err != nil {
			return fmt.Errorf("demo: %w; remove what is left with `meshctl demo down`", err)
		}
		u.clusters[i] = c
		revived, err := c.Revive(ctx)
		if err != nil {
			return fmt.Errorf("demo: starting %s again: %w; begin anew with `meshctl demo down`", name, err)
		}
		for _, role := range revived {
			u.opts.Progress.Note("%s: %s had ended and was started again", name, role)
		}
	}
	if err := u.waitServe(ctx); err == nil || u.state.Serve.Alive() {
		return err
	}
	u.opts.Progress.Note("meshctl serve had ended and is started again")
	return u.startServe(ctx)
}

// fail writes down that the demo failed, and keeps nothing but the logs.
func (u *up) fail() error {
	keep := append([]string{stateFile, lockFile, logsDir}, u.state.Clusters...)
	errs := []error{remove(u.opts.Dir, keep...)}
	for _, name := range u.state.Clusters {
		errs = append(errs, keepOnly(filepath.Join(u.opts.Dir, name), logsDir))
	}
	u.state.Phase = Failed
	return errors.Join(append(errs, u.state.write(u.opts.Dir))...)
}

// keepOnly removes everything in a folder but one entry.
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

// clearRemains ends and removes what an Up left that failed or was killed.
func clearRemains(ctx context.Context, opts Options, old state) error {
	opts.Runtime = old.Runtime
	runtime, err := newRuntime(opts, nil)
	if err != nil {
		return err
	}
	if err := errors.Join(old.Serve.Kill(ctx), stopClusters(ctx, runtime, old.Clusters)); err != nil {
		return fmt.Errorf("demo: ending what an earlier one left: %w", err)
	}
	// The caller holds the lock file.
	return remove(opts.Dir, lockFile)
}
