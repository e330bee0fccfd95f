package registration

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/cluster"
)

// Options configure Register.
type Options struct {
	// Name the cluster will have everywhere: a DNS label.
	Name string
	// RemoteConfig is the client configuration of the cluster and MgmtConfig that of
	// the management cluster, with the permissions of the administrator. Both may be
	// the same.
	RemoteConfig, MgmtConfig *rest.Config
	// RemoteContext and MgmtContext are what messages call them; optional.
	RemoteContext, MgmtContext string
	// MgmtNamespace holds the Secret and the KubernetesCluster; cluster.DefaultNamespace if empty.
	MgmtNamespace string
	// RemoteNamespace holds the accounts of serve and of the agent on the cluster. If empty, it is that in which they are or,
	// for a new cluster, cluster.DefaultNamespace; where that is a management plane's, in which an agent must have no rights,
	// with "-agent" after it.
	RemoteNamespace string
	// ClusterDomain is the DNS suffix of the cluster's Services; cluster.local
	// if empty.
	ClusterDomain string
	// APIServerAddress, HOST or HOST:PORT, is where the management plane finds
	// the cluster's API server, if not where RemoteConfig does.
	APIServerAddress string
	// TokenTTL is the lifetime to ask for, now and at each renewal; if zero, that with
	// which the cluster was registered before, or else DefaultTokenTTL.
	TokenTTL time.Duration
	// KeepCredential keeps a stored credential that is good, as it is. Else each registration
	// issues another one, and revokes those before.
	KeepCredential bool
	// Relay has the cluster reached through its agent; nil has it reached with a credential. It needs Agent.
	Relay *Relay
	// Agent is what the cluster's agent gets; nil for nothing.
	Agent *Agent
	// Timeout bounds each server's first answer; DefaultTimeout if zero.
	Timeout time.Duration
	// ServeWait bounds the wait until a running serve has said whether it reaches the cluster;
	// zero does not wait.
	ServeWait time.Duration
	// Progress gets a sentence for each long wait; nil for none.
	Progress func(string)
	// Clock tells when a token is due; the real one if nil.
	Clock clock.PassiveClock
}

// complete sets defaults and rejects invalid values.
func (o *Options) complete() error {
	if err := CheckName(o.Name); err != nil {
		return err
	}
	orDefault(&o.MgmtNamespace, cluster.DefaultNamespace)
	orDefault(&o.ClusterDomain, multiclusterv1alpha1.DefaultClusterDomain)
	for flag, value := range map[string]string{"management": o.MgmtNamespace, "remote": o.RemoteNamespace} {
		if value != "" && len(validation.IsDNS1123Label(value)) > 0 {
			return fmt.Errorf("%s namespace %q: want lower-case letters, digits and hyphens, at most 63", flag, value)
		}
	}
	if len(validation.IsDNS1123Subdomain(o.ClusterDomain)) > 0 {
		return fmt.Errorf("cluster domain %q: want a DNS name such as cluster.local", o.ClusterDomain)
	}
	if o.TokenTTL != 0 && (o.TokenTTL < MinTokenTTL || o.TokenTTL > cluster.MaxTokenLifetime) {
		return fmt.Errorf("token lifetime %s: API servers accept from %s to %s, and grant what their --service-account-max-token-expiration allows",
			o.TokenTTL, MinTokenTTL, cluster.MaxTokenLifetime)
	}
	if o.Relay != nil {
		relay := *o.Relay // what is found out is not the caller's
		o.Relay = &relay
		if o.Agent == nil {
			return fmt.Errorf("cluster %s: to be reached through its agent, it needs one", o.Name)
		}
		agent := *o.Agent
		o.Agent = &agent
		if err := relay.complete(); err != nil {
			return err
		}
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return nil
}

// CheckName rejects names that could not be a label value, a part of object
// names, and a part of host names.
func CheckName(name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("cluster name %q: want lower-case letters, digits and hyphens, no dot, at most 63 characters", name)
	}
	return nil
}

func orDefault(value *string, fallback string) {
	if *value == "" {
		*value = fallback
	}
}
