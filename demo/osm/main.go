// Command osm is the control plane of Open Service Mesh: its own packages, wired
// as in its osm-controller, except that no port is fixed, so that
// several may run on one machine.
//
//	osm osm-controller [FLAGS]
//	osm version
//
// It is a module of its own, apart from demo/sandbox too: Open Service Mesh 1.2
// is built on a Kubernetes client that is ten releases older.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/openservicemesh/osm/pkg/constants"
	"github.com/openservicemesh/osm/pkg/logger"
	"github.com/openservicemesh/osm/pkg/signals"
	"github.com/openservicemesh/osm/pkg/version"
	"github.com/spf13/pflag"
)

// options are the flags of the controller. The names are those of the original
// where it has such a flag.
type options struct {
	kubeconfig  string
	namespace   string
	meshName    string
	pod         string
	trustDomain string
	webhook     string
	verbosity   string

	adsPort, webhookPort, httpPort int
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "version" {
		fmt.Println(version.Version)
		return
	}
	if len(os.Args) < 2 || os.Args[1] != constants.OSMControllerName {
		fmt.Fprintf(os.Stderr, "osm: want %s as first argument\n", constants.OSMControllerName)
		os.Exit(2)
	}
	var o options
	flags := pflag.NewFlagSet(constants.OSMControllerName, pflag.ContinueOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "file with the access to the cluster")
	flags.StringVar(&o.namespace, "osm-namespace", "osm-system", "namespace of the controller")
	flags.StringVar(&o.meshName, "mesh-name", "osm", "name of the mesh")
	flags.StringVar(&o.pod, "pod", "", "name of the pod that represents the controller; its events are about that pod")
	flags.StringVar(&o.trustDomain, "trust-domain", "cluster.local", "trust domain of the proxies' certificates")
	flags.StringVar(&o.webhook, "validator-webhook-config", "osm-validator-mesh-osm", "name of the ValidatingWebhookConfiguration")
	flags.StringVar(&o.verbosity, "verbosity", constants.DefaultOSMLogLevel, "log level")
	flags.IntVar(&o.adsPort, "ads-port", constants.ADSServerPort, "port for proxies")
	flags.IntVar(&o.webhookPort, "webhook-port", constants.ValidatorWebhookPort, "port of the validating webhook")
	flags.IntVar(&o.httpPort, "http-port", constants.OSMHTTPServerPort, "port of the health checks")
	if err := flags.Parse(os.Args[2:]); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "osm:", err)
		os.Exit(2)
	}
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "osm:", err)
		os.Exit(1)
	}
}

// run returns when the process receives a signal to end.
func run(o options) error {
	if err := logger.SetLogLevel(o.verbosity); err != nil {
		return fmt.Errorf("--verbosity: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := signals.RegisterExitHandlers(cancel)
	if err := startController(ctx, cancel, stop, o); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
