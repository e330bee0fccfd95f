package registration

import (
	"context"
	"time"

	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/cluster"
)

// InspectOptions configure Inspect.
type InspectOptions struct {
	Config *rest.Config
	// Context is what messages call it; optional.
	Context string
	// MgmtNamespace is where registrations would be; cluster.DefaultNamespace if empty.
	MgmtNamespace string
	// Timeout bounds each check; DefaultCheckTimeout if zero.
	Timeout time.Duration
}

// Inspection describes the cluster of a configuration.
type Inspection struct {
	// Version is that of Kubernetes, such as v1.36.3.
	Version string
	// UID is that of the kube-system namespace: two configurations with the
	// same one lead to the same cluster.
	UID string
	// Members are the clusters that are registered there: UIDs by name. Nil if
	// it is no management cluster, or if its registrations may not be read.
	Members map[string]string
}

// Inspect reads what there is in the cluster of a configuration, and writes nothing.
// The error says that the cluster cannot be reached, or cannot be registered.
func Inspect(ctx context.Context, o InspectOptions) (*Inspection, error) {
	orDefault(&o.MgmtNamespace, cluster.DefaultNamespace)
	if o.Timeout <= 0 {
		o.Timeout = DefaultCheckTimeout
	}
	s, err := newServer("the", o.Context, o.Config, o.Timeout)
	if err != nil {
		return nil, err
	}
	if err := s.probe(ctx); err != nil {
		return nil, err
	}
	found := &Inspection{Version: s.version, UID: string(s.uid)}
	bounded, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	all, err := s.listKubernetesClusters(bounded, o.MgmtNamespace)
	if unlessForbidden(err) != nil {
		return nil, err
	}
	for _, kc := range all {
		if found.Members == nil {
			found.Members = map[string]string{}
		}
		found.Members[kc.Name] = kc.Annotations[cluster.UIDAnnotation]
	}
	return found, nil
}

// Check makes sure, as Register does first, that registering can work, and
// writes nothing. The Report has the notes of Register.
func Check(ctx context.Context, options Options) (Report, error) {
	r, err := newRegistration(options)
	if err != nil {
		return Report{}, err
	}
	if err := r.preflight(ctx); err != nil {
		return Report{}, err
	}
	return r.report, nil
}

func newRegistration(options Options) (*registration, error) {
	r := &registration{Options: options}
	r.via = &via{registration: r}
	if err := r.complete(); err != nil {
		return nil, err
	}
	var err error
	if r.management, err = newServer(managementSide, r.MgmtContext, r.MgmtConfig, r.Timeout); err != nil {
		return nil, err
	}
	if r.remote, err = newServer(remoteSide, r.RemoteContext, r.RemoteConfig, r.Timeout); err != nil {
		return nil, err
	}
	r.report.Cluster = r.Name
	return r, nil
}
