package registration

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/meshctl/meshctl/engine/cluster"
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
	for _, o := range bindings {
		out = append(out, kubectl+" delete "+kubectlName(o))
	}
	for _, k := range translatedKinds() {
		r := kindResource(k)
		for _, selector := range translatedSelectors(d.plane, d.Name) {
			out = append(out, fmt.Sprintf("%s delete %s.%s --all-namespaces --selector '%s'", kubectl, r.Resource, r.Group, selector))
		}
	}
	for _, o := range slices.Backward(rest) {
		out = append(out, kubectl+" delete "+kubectlName(o))
	}
	return out
}

// kubectlName is "TYPE NAME [--namespace NS] --ignore-not-found".
func kubectlName(o *object) string {
	s := strings.ToLower(o.kind) + " " + o.name
	if o.namespace != "" {
		s += " --namespace " + o.namespace
	}
	return s + " --ignore-not-found"
}

// writeLeftovers records in the management namespace what remains on the cluster,
// and why.
func (d *deregistration) writeLeftovers(ctx context.Context, why error) error {
	d.report.Leftovers = d.commands()
	name := LeftoverName(d.Name)
	o := &object{resource: configMaps, namespace: d.MgmtNamespace, name: name}
	o.want = corev1ac.ConfigMap(name, d.MgmtNamespace).
		WithLabels(map[string]string{cluster.ManagedByLabel: cluster.ManagedBy, LeftoverLabel: d.Name}).
		WithAnnotations(map[string]string{cluster.UIDAnnotation: d.uid(), NamespaceAnnotation: d.RemoteNamespace}).
		WithData(map[string]string{
			leftoverReason:   why.Error(),
			leftoverCommands: strings.Join(d.report.Leftovers, "\n"),
		})
	change, err := d.management.apply(ctx, o)
	if err != nil {
		return err
	}
	d.report.add(change)
	d.report.note(fmt.Sprintf("the cluster was not cleaned: %s; ConfigMap %s/%s contains the commands that clean it, "+
		"and `meshctl cluster deregister %s --remote-context ...` does it, too", why, d.MgmtNamespace, name, d.Name))
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
