package registration

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Keys of the record of leftovers.
const (
	leftoverReason   = "reason"
	leftoverCommands = "commands"
)

// commands are the kubectl commands that do what clean does.
func (d *deregistration) commands() []string {
	kubectl := "kubectl"
	if d.RemoteContext != "" {
		kubectl += " --context " + d.RemoteContext
	}
	var out []string
	bindings, rest := d.accessObjects()
	agentRights, agentRest := d.agentObjects()
	remove := func(objects []*object) {
		for _, o := range objects {
			out = append(out, kubectl+" delete "+kubectlName(o))
		}
	}
	removeRoles := func(name string) {
		out = append(out, fmt.Sprintf("%s delete rolebindings,roles --all-namespaces --field-selector metadata.name=%s", kubectl, name))
	}
	remove(bindings)
	removeRoles(SettingsRoleName(d.Name, d.plane.ID))
	for _, k := range translatedKinds() {
		r := kindResource(k)
		for _, selector := range translatedSelectors(d.plane, d.Name) {
			out = append(out, fmt.Sprintf("%s delete %s.%s --all-namespaces --selector '%s'", kubectl, r.Resource, r.Group, selector))
		}
	}
	removeRoles(AgentName(d.plane.ID))
	removeRoles(RelayRoleName(d.plane.ID))
	remove(agentRights)
	remove(agentRest)
	remove(relayLeftovers(d.plane.ID, d.RemoteNamespace))
	// An interrupted run does not know any more whether there was a relay.
	outputs := make([]string, snapshot.RelayOutputMost)
	for n := range outputs {
		outputs[n] = snapshot.RelayOutputName(n)
	}
	out = append(out, fmt.Sprintf("%s delete configmaps --namespace %s --ignore-not-found %s", kubectl, d.RemoteNamespace, strings.Join(outputs, " ")))
	remove([]*object{{resource: leases, namespace: d.RemoteNamespace, name: snapshot.AgentLease}})
	slices.Reverse(rest)
	remove(rest)
	accounts := labels.Set{cluster.ManagedByLabel: cluster.ManagedBy, snapshot.PlaneLabel: d.plane.ID, snapshot.ClusterLabel: d.Name}
	return append(out, fmt.Sprintf("%s delete serviceaccounts --namespace %s --selector '%s'", kubectl, d.RemoteNamespace, accounts))
}

// kubectlName is "TYPE NAME [--namespace NS] --ignore-not-found".
func kubectlName(o *object) string {
	s := strings.ToLower(o.kind) + " " + o.name
	if o.namespace != "" {
		s += " --namespace " + o.namespace
	}
	return s + " --ignore-not-found"
}

// inProgress is the reason in a record whose deregistration has not come to its end.
const inProgress = "its deregistration was interrupted"

// begin records the deregistration before anything is removed: afterwards, nothing else
// says which cluster it was and in which namespace its account is.
func (d *deregistration) begin(ctx context.Context) error {
	if was := d.leftovers; was != nil && was.GetAnnotations()[cluster.UIDAnnotation] != d.uid() {
		commands, _, _ := unstructured.NestedString(was.Object, "data", leftoverCommands)
		d.report.note(fmt.Sprintf("ConfigMap %s/%s recorded what is left on another cluster, which had the name %s earlier; "+
			"these commands clean that one:\n%s\n", d.MgmtNamespace, was.GetName(), d.Name, commands))
	}
	_, err := d.record(ctx, inProgress, nil)
	if apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		d.report.note(fmt.Sprintf("namespace %s of the management cluster is gone: if this run is interrupted, nothing records that", d.MgmtNamespace))
		return nil
	}
	return err
}

// record writes what remains on the cluster, and why, into the management namespace.
// The record goes with owner, if there is one.
func (d *deregistration) record(ctx context.Context, why string, owner *metav1.OwnerReference) (Change, error) {
	name := LeftoverName(d.Name)
	o := &object{resource: configMaps, namespace: d.MgmtNamespace, name: name, owner: owner}
	o.want = corev1ac.ConfigMap(name, d.MgmtNamespace).
		WithLabels(map[string]string{cluster.ManagedByLabel: cluster.ManagedBy, LeftoverLabel: d.Name}).
		WithAnnotations(map[string]string{cluster.UIDAnnotation: d.uid(), NamespaceAnnotation: d.RemoteNamespace}).
		WithData(map[string]string{
			leftoverReason:   why,
			leftoverCommands: strings.Join(d.commands(), "\n"),
		})
	return d.management.apply(ctx, o)
}

// writeLeftovers records for good what remains on the cluster, and why. The record goes with owner, if there is one.
func (d *deregistration) writeLeftovers(ctx context.Context, why error, owner *metav1.OwnerReference) error {
	d.report.Leftovers = d.commands()
	change, err := d.record(ctx, why.Error(), owner)
	if err != nil {
		return err
	}
	if d.leftovers == nil {
		change.Action = Created // by begin
	}
	d.report.add(change)
	later := ""
	if owner != nil {
		later = "; its agent does it when it comes back and dials `meshctl serve`, which keeps what it knows of its certificate until then"
	}
	d.report.note(fmt.Sprintf("the cluster was not cleaned: %s; ConfigMap %s/%s contains the commands that clean it, "+
		"and `meshctl cluster deregister %s --remote-context ...` does it, too%s", why, d.MgmtNamespace, LeftoverName(d.Name), d.Name, later))
	return nil
}

func groupVersionResource(groupVersion, plural string) (schema.GroupVersionResource, error) {
	gv, err := schema.ParseGroupVersion(groupVersion)
	if err != nil {
		return schema.GroupVersionResource{}, fmt.Errorf("type %s: %w", plural, err)
	}
	return gv.WithResource(plural), nil
}

func isNative(plural, name string) bool {
	return slices.Contains(strings.Fields(natives[plural]), name)
}
