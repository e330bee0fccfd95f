package demo

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/meshctl/meshctl/demo/helper"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/proc"
)

// localRuntime is the Runtime of local processes, with a folder for each cluster.
type localRuntime struct {
	dir      string
	guard    *proc.Guard
	terminal bool
	binary   string
}

// Prepare builds the helper binary.
func (r *localRuntime) Prepare(ctx context.Context, report func(string)) error {
	progress := helper.Progress{Report: report, Every: 15 * time.Second}
	if r.terminal {
		progress.Every = 500 * time.Millisecond
	}
	binary, err := helper.Build(ctx, progress)
	r.binary = binary
	return err
}

// Create starts a cluster and installs Istio.
func (r *localRuntime) Create(ctx context.Context, name string, index int, report func(string)) (Cluster, error) {
	report("starting Kubernetes")
	c, err := local.Start(ctx, local.Options{
		Name: name, Dir: filepath.Join(r.dir, name), Helper: r.binary, Index: index, Guard: r.guard,
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

// Open reads the state in the cluster's folder.
func (r *localRuntime) Open(name string) (Cluster, error) {
	return local.Open(filepath.Join(r.dir, name), r.guard)
}

// Versions are those of the helper's modules.
func (r *localRuntime) Versions() (map[string]string, error) {
	v, err := helper.ReadVersions()
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	return map[string]string{"kubernetes": v.Kubernetes, "istio": v.Istio}, nil
}
