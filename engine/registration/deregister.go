package registration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// DefaultServeWait is how long a running serve is given to collect what leads
// to the removed cluster elsewhere.
const DefaultServeWait = 30 * time.Second

// DeregisterOptions configure Deregister.
type DeregisterOptions struct {
	Name string
	// MgmtConfig is the client configuration of the management cluster and
	// RemoteConfig that of the cluster, with the permissions of the administrator.
	// Without RemoteConfig the stored credential is used, which may not delete its
	// own permissions.
	MgmtConfig, RemoteConfig *rest.Config
	// MgmtContext and RemoteContext are what messages call them; optional.
	MgmtContext, RemoteContext string
	// MgmtNamespace defaults to cluster.DefaultNamespace, RemoteNamespace to the one
	// in which the cluster was registered.
	MgmtNamespace, RemoteNamespace string
	// Force deregisters the cluster even if it cannot be cleaned; what remains there
	// is recorded with the commands that remove it.
	Force bool
	// KeepTraffic leaves on the cluster what was written for its mesh, without its labels, so that requests go
	// on as they do; no serve may run. It keeps the certificates of meshes, which nobody renews then.
	KeepTraffic bool
	// Timeout bounds each server's first answer; DefaultTimeout if zero.
	Timeout time.Duration
	// ServeWait bounds the wait for a running serve; DefaultServeWait if zero.
	ServeWait time.Duration
	// AgentWait bounds the wait for the cluster's agent; DefaultAgentWait if zero.
	AgentWait time.Duration
	// Store returns what knows the agents of a management plane: a cluster that is reached through its agent is left through it, if there
	// is no RemoteConfig. If it is nil, such a cluster needs one.
	Store func(client kube.Clientset, plane snapshot.Plane) RelayStore
	// LeaveWait bounds the wait until it is left; DefaultLeaveWait if zero.
	LeaveWait time.Duration
	// Progress gets a sentence for each long wait; nil for none.
	Progress func(string)
	// UserAgent is shown to other clusters.
	UserAgent string
}

// deregistration is one run of Deregister.
type deregistration struct {
	DeregisterOptions
	management *server
	plane      snapshot.Plane
	// remote is nil if the cluster cannot be reached; then remoteErr says why.
	remote    *server
	remoteErr error

	// What is known of the registration; each nil if it is not there.
	secret    *corev1.Secret
	cluster   *multiclusterv1alpha1.KubernetesCluster
	leftovers *unstructured.Unstructured
	// owes: the agent of the cluster is to clean it when it comes back.
	owes bool

	report Report
}

// Deregister deregisters a cluster. It removes first the management plane's Secret and
// KubernetesCluster, so that a running serve writes there no more, then what
// was written to the cluster and what gave access to it, then what was
// discovered in it. A cluster that cannot be reached, or cannot be cleaned with
// the available permissions, is an error that changes nothing, unless Force is set.
// One that is reached through its agent is first left through that, if there is a Store
// and no RemoteConfig: see farewell.
// Running it again finishes what was interrupted: until nothing is left, a ConfigMap
// records which cluster it was, and where its account is.
func Deregister(ctx context.Context, options DeregisterOptions) (Report, error) {
	d := &deregistration{DeregisterOptions: options}
	d.report.Cluster = d.Name
	orDefault(&d.MgmtNamespace, cluster.DefaultNamespace)
	d.Timeout = cmp.Or(d.Timeout, DefaultTimeout)
	d.ServeWait = cmp.Or(d.ServeWait, DefaultServeWait)
	d.AgentWait = cmp.Or(d.AgentWait, DefaultAgentWait)
	if err := CheckName(d.Name); err != nil {
		return Report{}, err
	}
	var err error
	if d.management, err = newServer(managementSide, d.MgmtContext, d.MgmtConfig, d.Timeout); err != nil {
		return Report{}, err
	}
	if err := d.preflight(ctx); err != nil {
		return Report{}, err
	}
	err = d.run(ctx)
	return d.report, err
}

// preflight finds out what there is and whether it can be removed. It changes nothing.
func (d *deregistration) preflight(ctx context.Context) error {
	if err := d.management.probe(ctx); err != nil {
		return err
	}
	if err := d.management.require(ctx, d.managementAccess()); err != nil {
		return err
	}
	if err := d.inspect(ctx); err != nil {
		return err
	}
	if byAgent(d) {
		return farewell{d}.check(ctx)
	}
	d.remoteErr = d.reach(ctx)
	var wrong *WrongClusterError
	switch {
	case errors.As(d.remoteErr, &wrong):
		return d.remoteErr
	case !d.registered() && !d.traces(ctx):
		return &NotRegisteredError{Name: d.Name, Namespace: d.MgmtNamespace,
			Hint: "give --remote-context to clean up what an earlier registration left on the cluster itself"}
	case d.remoteErr == nil:
		d.remoteErr = d.remote.require(ctx, d.remoteAccess())
	}
	if d.remoteErr != nil && !d.Force {
		return fmt.Errorf("cluster %s: nothing was changed, because it cannot be cleaned: %w; "+
			"with --force it is forgotten all the same, and what stays on it is written down", d.Name, d.remoteErr)
	}
	return nil
}

func (d *deregistration) managementAccess() []access {
	ns := d.MgmtNamespace
	wanted := secrets.access(ns, d.Name).each("get", "delete")
	wanted = append(wanted, kubernetesClusters.access(ns, d.Name).each("get", "delete")...)
	record := secrets.access(ns, snapshot.RelayRecordPrefix+d.Name)
	wanted = append(wanted, record.each("delete")...)
	if d.Store != nil && d.Force {
		wanted = append(wanted, record.each("get", "patch")...)
	}
	for _, k := range discoveredKinds() {
		wanted = append(wanted, kindResource(k).access(ns, "").each("list", "delete")...)
	}
	wanted = append(wanted, configMaps.access(ns, cluster.PlaneName).each("get")...)
	return append(wanted, configMaps.access(ns, LeftoverName(d.Name)).each("get", "create", "patch", "delete")...)
}

func (d *deregistration) inspect(ctx context.Context) error {
	var err error
	if d.plane, err = d.management.plane(ctx, d.MgmtNamespace); err != nil {
		return err
	}
	if d.cluster, err = d.management.getKubernetesCluster(ctx, d.MgmtNamespace, d.Name); err != nil {
		return err
	}
	if d.secret, err = storedSecret(ctx, d.management.clientset, d.MgmtNamespace, d.Name); err != nil {
		return err
	}
	if d.secret != nil && d.secret.Type != cluster.SecretType {
		d.secret = nil
	}
	if d.leftovers, err = d.management.get(ctx, configMaps, d.MgmtNamespace, LeftoverName(d.Name)); err != nil {
		return err
	}
	if d.cluster != nil {
		orDefault(&d.RemoteNamespace, d.cluster.Status.Namespace)
	}
	if d.leftovers != nil {
		orDefault(&d.RemoteNamespace, d.leftovers.GetAnnotations()[NamespaceAnnotation])
	}
	orDefault(&d.RemoteNamespace, cluster.DefaultNamespace)
	return nil
}

func (d *deregistration) registered() bool {
	return d.secret != nil || d.cluster != nil || d.leftovers != nil
}

// uid is that of the registered cluster; empty if nothing records it.
func (d *deregistration) uid() string {
	switch {
	case d.secret != nil && d.secret.Annotations[cluster.UIDAnnotation] != "":
		return d.secret.Annotations[cluster.UIDAnnotation]
	case d.cluster != nil && d.cluster.Annotations[cluster.UIDAnnotation] != "":
		return d.cluster.Annotations[cluster.UIDAnnotation]
	case d.leftovers != nil && d.leftovers.GetAnnotations()[cluster.UIDAnnotation] != "":
		return d.leftovers.GetAnnotations()[cluster.UIDAnnotation]
	case d.remote != nil:
		return string(d.remote.uid)
	}
	return ""
}

// reach connects to the cluster: as the caller, or else with the stored credential.
func (d *deregistration) reach(ctx context.Context) error {
	if d.RemoteConfig != nil {
		return d.reachAsCaller(ctx)
	}
	if d.secret == nil {
		if d.relayed() {
			return errors.New("it is reached through its agent, and no context of it is named with --remote-context")
		}
		return errors.New("there is no stored credential for it; name a context with --remote-context")
	}
	s, err := d.management.stored(ctx, d.secret, d.UserAgent, d.Timeout)
	if err != nil {
		return err
	}
	d.remote = s
	return nil
}

func (d *deregistration) reachAsCaller(ctx context.Context) error {
	s, err := newServer(remoteSide, d.RemoteContext, d.RemoteConfig, d.Timeout)
	if err != nil {
		return err
	}
	if err := s.probe(ctx); err != nil {
		return err
	}
	if uid := d.uid(); uid != "" && uid != string(s.uid) {
		return &WrongClusterError{Name: d.Name, Server: s.label, Registered: uid, Actual: string(s.uid)}
	}
	d.remote = s
	return nil
}

// traces reports whether the cluster still has the account of a registration
// by this management plane: it is what is deleted last.
func (d *deregistration) traces(ctx context.Context) bool {
	if d.remote == nil {
		return false
	}
	accounts, err := d.remote.accounts(ctx, d.RemoteNamespace, d.Name, d.plane, string(d.management.uid))
	return err == nil && len(accounts) > 0
}

// run removes everything, the credentials first. What the next run has to know is recorded
// before anything else, and for as long as something is left.
func (d *deregistration) run(ctx context.Context) error {
	var err error
	if byAgent(d) {
		if d.remoteErr, err = (farewell{d}).run(ctx); err != nil {
			var away *AgentAwayError
			if errors.As(err, &away) {
				return err
			}
			return fmt.Errorf("cluster %s: %w", d.Name, err)
		}
		farewell{d}.noteRest()
	}
	for _, step := range []func(context.Context) error{d.begin, debt{d}.owe, d.forget} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("cluster %s: deregistering: %w; run the command again", d.Name, err)
		}
	}
	err = d.remoteErr
	if d.remote != nil {
		d.notePolicies()
		err = d.clean(ctx)
	}
	if err != nil && !d.Force && d.remote != nil {
		return fmt.Errorf("cluster %s: it is deregistered, but not clean: %w; run the command again with --remote-context", d.Name, err)
	}
	if err := d.settle(ctx, err); err != nil {
		return fmt.Errorf("cluster %s: deregistering: %w; run the command again", d.Name, err)
	}
	return nil
}

// forget removes the two objects of the registration. The Secret is deleted first:
// a running serve then freezes the cluster until both are deleted.
func (d *deregistration) forget(ctx context.Context) error {
	if d.secret != nil {
		change, err := d.management.delete(ctx, secrets, d.MgmtNamespace, d.Name)
		d.report.add(change...)
		if err != nil {
			return err
		}
	}
	change, err := d.management.delete(ctx, kubernetesClusters, d.MgmtNamespace, d.Name)
	d.report.add(change...)
	if err != nil {
		return err
	}
	if d.owes {
		return nil
	}
	// No certificate of its agent counts any more.
	change, err = d.management.delete(ctx, secrets, d.MgmtNamespace, snapshot.RelayRecordPrefix+d.Name)
	d.report.add(change...)
	return err
}

// settle removes what was discovered, waits for what serve collects elsewhere,
// and keeps or drops the record of what was left behind because of why.
func (d *deregistration) settle(ctx context.Context, why error) error {
	changes, err := collecting(d.management).collect(ctx, discoveredKinds(), discoveredSelector(d.MgmtNamespace, d.Name), 0)
	d.report.add(changes...)
	if err != nil {
		return err
	}
	d.elsewhere(ctx)
	if why != nil {
		owner, paid, err := debt{d}.owner(ctx)
		if err != nil || !paid {
			return cmp.Or(err, d.writeLeftovers(ctx, why, owner))
		}
	}
	changes, err = d.management.delete(ctx, configMaps, d.MgmtNamespace, LeftoverName(d.Name))
	if d.leftovers != nil {
		d.report.add(changes...)
	}
	return err
}
