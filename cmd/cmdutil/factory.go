package cmdutil

import (
	"context"
	"time"

	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/kube"
)

// Factory hands commands what they need. Cheap things are values; costly ones
// are functions, so that --help dials nobody.
type Factory struct {
	Streams *Streams
	Version Version
	// Now is the clock.
	Now func() time.Time
	// Config finds how to reach a cluster: a kubeconfig file ("" means the
	// usual places, or the pod's own account inside a cluster) and a context
	// in it ("" means the current one). It dials nobody.
	Config func(kubeconfig, context string) (*rest.Config, error)
	// Contexts lists the contexts of a kubeconfig file ("" means the usual
	// places), ascending, and names the current one; none is an error.
	Contexts func(kubeconfig string) (names []string, current string, err error)
	// Demo is the demo that Config and Contexts use when they are told to.
	Demo *Demo
	// Run runs another command line of the program on the same streams, and returns its exit code.
	Run func(ctx context.Context, args []string) int
}

// NewFactory returns the factory of the real program.
func NewFactory(streams *Streams) *Factory {
	f := &Factory{Streams: streams, Version: buildVersion(), Now: time.Now, Demo: &Demo{}}
	f.Contexts = func(kubeconfig string) (names []string, current string, err error) {
		if kubeconfig, err = f.Demo.kubeconfig(kubeconfig); err != nil {
			return nil, "", err
		}
		names, current, err = someContexts(kubeconfig)
		return names, current, f.Demo.offer(err)
	}
	f.Config = func(kubeconfig, context string) (*rest.Config, error) {
		kubeconfig, err := f.Demo.kubeconfig(kubeconfig)
		if err != nil {
			return nil, err
		}
		config, renewal, err := loadConfig(kubeconfig, context)
		if err != nil {
			return nil, f.Demo.offer(err)
		}
		config.UserAgent = "meshctl/" + f.Version.Version
		// The API server's own fairness rules govern; see rest.Config.QPS.
		config.QPS = -1
		config.Wrap(kube.RefuseRedirects)
		kube.ExplainExpired(config, renewal)
		// Users can do nothing about a type of Kubernetes that meshctl reads and that is deprecated.
		config.WarningHandler = rest.NoWarnings{}
		return config, nil
	}
	return f
}
