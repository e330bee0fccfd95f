package demo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/meshctl/meshctl/demo/helper"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/proc"
	"github.com/meshctl/meshctl/demo/proxies"
)

// localRuntime is the Runtime of local processes, with a folder for each cluster,
// and one for the proxies.
type localRuntime struct {
	dir      string
	guard    *proc.Guard
	terminal bool
	mode     ProxyMode

	// What Prepare found: the programs, a root for all meshes, and why there are
	// no proxies; empty if there are.
	binary   string
	programs proxies.Binaries
	root     *local.Root
	why      string
}

// Prepare builds the helper binaries.
func (r *localRuntime) Prepare(ctx context.Context, report func(string)) (err error) {
	progress := helper.Progress{Report: report, Every: 15 * time.Second}
	if r.terminal {
		progress.Every = 500 * time.Millisecond
	}
	if r.binary, err = helper.Build(ctx, progress); err != nil {
		return err
	}
	if r.root, err = local.NewRoot("root of the meshctl demo"); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	if r.mode == ProxiesOff {
		r.why = "proxies are off"
		return nil
	}
	r.programs, err = proxies.Prepare(ctx, progress)
	if errors.Is(err, proxies.ErrUnavailable) && r.mode == ProxiesAuto {
		r.why = err.Error()
		return nil
	}
	return err
}

// Create starts a cluster and installs Istio.
func (r *localRuntime) Create(ctx context.Context, name string, index int, report func(string)) (Cluster, error) {
	report("starting Kubernetes")
	c, err := local.Start(ctx, local.Options{
		Name: name, Dir: filepath.Join(r.dir, name), Helper: r.binary, Index: index, Guard: r.guard,
		RealProxies: r.why == "", Root: r.root,
	})
	if err != nil {
		return nil, err
	}
	report("Kubernetes is ready, installing Istio")
	if err := c.InstallIstio(ctx, local.IstioOptions{}); err != nil {
		return nil, stopAfter(ctx, c, err)
	}
	return c, nil
}

// StartProxies starts one process for the proxies of all clusters.
func (r *localRuntime) StartProxies(ctx context.Context, clusters []Cluster) (*proxies.Plane, string, error) {
	if r.why != "" {
		return nil, r.why, nil
	}
	list := make([]proxies.Cluster, 0, len(clusters))
	for _, c := range clusters {
		opened, err := local.Open(filepath.Join(r.dir, c.Name()), r.guard)
		if err != nil {
			return nil, "", err
		}
		list = append(list, proxies.Cluster{Name: c.Name(), Index: opened.Index(), Kubeconfig: c.Kubeconfig(), Istiod: opened.Istiod()})
	}
	plane, err := proxies.Start(ctx, r.guard, filepath.Join(r.dir, proxiesDir), r.programs, list)
	return plane, "", err
}

// Open reads the state in the cluster's folder.
func (r *localRuntime) Open(name string) (Cluster, error) {
	return local.Open(filepath.Join(r.dir, name), r.guard)
}

// Versions are those of the helper's modules and, once prepared, of Envoy.
func (r *localRuntime) Versions() (map[string]string, error) {
	v, err := helper.ReadVersions()
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	versions := map[string]string{"kubernetes": v.Kubernetes, "istio": v.Istio}
	if r.programs.EnvoyVersion != "" {
		versions["envoy"] = r.programs.EnvoyVersion
	}
	return versions, nil
}
