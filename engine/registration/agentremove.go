package registration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// DefaultAgentWait is how long the agent of a cluster is given to bring its meshes back to the
// certificates that they had before.
const DefaultAgentWait = 10 * time.Minute

var (
	issuedCertificates  = kindResource(snapshot.IssuedCertificate)
	certificateRequests = kindResource(snapshot.CertificateRequest)
)

// awaitAgent waits until the agent has brought all meshes back to what they had before they
// got the trust of a VirtualMesh. Without that, they would go on with certificates that nobody
// renews. A CertificateRequest without an IssuedCertificate is a mesh that leaves.
func (d *deregistration) awaitAgent(ctx context.Context) error {
	said := map[string]string{}
	for deadline := time.Now().Add(d.AgentWait); ; {
		leaving, err := d.leaving(ctx)
		if err != nil || len(leaving) == 0 {
			return err
		}
		which := strings.Join(slices.Sorted(maps.Keys(leaving)), ", ")
		live, err := d.agentLives(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("%s: reading Lease %s/%s: %w", d.remote.label, d.RemoteNamespace, snapshot.AgentLease, err)
		case !live:
			return fmt.Errorf("meshes have certificates of their VirtualMesh, and no `meshctl agent` runs in namespace %s of the cluster that could give them back their own: %s; "+
				"start it, or use --force and exchange the Secret cacerts yourself before its certificate expires", d.RemoteNamespace, which)
		case time.Now().After(deadline):
			return fmt.Errorf("meshes still have certificates of their VirtualMesh after %s: %s; see the log of the agent", d.AgentWait, which)
		}
		if err := leaving.leaveNow(ctx, d); err != nil {
			return err
		}
		leaving.say(d, which, said)
		select {
		case <-ctx.Done():
			return fmt.Errorf("meshes still have certificates of their VirtualMesh: %s: %w", which, ctx.Err())
		case <-time.After(collectPause):
		}
	}
}

// agentLives reports whether an agent runs: it holds its Lease or, if its API server is too
// busy for that, has a pod that is ready.
func (d *deregistration) agentLives(ctx context.Context) (bool, error) {
	held, err := d.remote.isHeld(ctx, d.RemoteNamespace, snapshot.AgentLease)
	if err != nil || held {
		return held, err
	}
	deployed, err := d.remote.get(ctx, deployments, d.RemoteNamespace, AgentName(d.plane.ID))
	if unlessForbidden(err) != nil || deployed == nil {
		return false, unlessForbidden(err)
	}
	ready, _, err := unstructured.NestedInt64(deployed.Object, "status", "readyReplicas")
	return ready > 0, err
}

// leavingMeshes are meshes that are not back at what they had, by name, each with the annotations of its CertificateRequest.
type leavingMeshes map[string]map[string]string

// leaving are those of the cluster.
func (d *deregistration) leaving(ctx context.Context) (leavingMeshes, error) {
	requested, err := objectsIn(ctx, d.remote, certificateRequests, d.RemoteNamespace)
	if err != nil || len(requested) == 0 {
		return nil, err
	}
	asked, err := d.agentsNames(ctx, issuedCertificates)
	out := leavingMeshes{}
	for i := range requested {
		if name := requested[i].Name; !slices.Contains(asked, name) {
			out[name] = requested[i].Annotations
		}
	}
	return out, err
}

// leaveNow has the agent begin at once, unless it was asked before. It would wait a minute whether the IssuedCertificates come back.
// Who may not ask for that waits, too.
func (l leavingMeshes) leaveNow(ctx context.Context, d *deregistration) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		snapshot.LeaveNowAnnotation: time.Now().UTC().Format(time.RFC3339),
	}}})
	if err != nil {
		return err
	}
	for name, annotations := range l {
		if annotations[snapshot.LeaveNowAnnotation] != "" {
			continue
		}
		_, err := d.remote.meta.Resource(certificateRequests.GroupVersionResource).Namespace(d.RemoteNamespace).Patch(
			ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: snapshot.FieldManager + "-leave"})
		if err := unlessForbidden(err); err != nil && !kube.IsAbsent(err) {
			return fmt.Errorf("%s: CertificateRequest %s/%s cannot be annotated: %w", d.remote.label, d.RemoteNamespace, name, err)
		}
	}
	return nil
}

// say tells which meshes are waited for, and what each of them waits for as its agent says; said is what was told.
func (l leavingMeshes) say(d *deregistration, which string, said map[string]string) {
	if d.Progress == nil {
		return
	}
	if said[""] != which {
		d.Progress("Waiting until the agent has given these meshes back their own certificates (a minute or more): " + which + ".")
		said[""] = which
	}
	for _, name := range slices.Sorted(maps.Keys(l)) {
		if waits := snapshot.Clean(l[name][snapshot.WaitsAnnotation]); waits != "" && said[name] != waits {
			d.Progress(name + ": " + waits)
			said[name] = waits
		}
	}
}

// agentsNames is namesIn for the namespace of the agent.
func (d *deregistration) agentsNames(ctx context.Context, r resource) ([]string, error) {
	return d.remote.namesIn(ctx, r, d.RemoteNamespace)
}

// namesIn are the names of objects in a namespace; none if the type is not served.
func (s *server) namesIn(ctx context.Context, r resource, namespace string) ([]string, error) {
	items, err := objectsIn(ctx, s, r, namespace)
	var out []string
	for i := range items {
		out = append(out, items[i].Name)
	}
	return out, err
}

// objectsIn are objects in a namespace; none if the type is not served.
func objectsIn(ctx context.Context, s *server, r resource, namespace string) ([]metav1.PartialObjectMetadata, error) {
	list, err := s.meta.Resource(r.GroupVersionResource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if kube.IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: listing %s: %w", s.label, r.Resource, err)
	}
	return list.Items, nil
}

// removeAgentLease removes the Lease of the agent, unless another management plane asks an
// agent in this namespace for something.
func (d *deregistration) removeAgentLease(ctx context.Context) error {
	asked, err := d.agentsNames(ctx, issuedCertificates)
	if err != nil || len(asked) > 0 {
		return err
	}
	changes, err := d.remote.delete(ctx, leases, d.RemoteNamespace, snapshot.AgentLease)
	d.report.add(changes...)
	return err
}

// isHeld reports whether a process holds a Lease and has renewed it lately.
func (s *server) isHeld(ctx context.Context, namespace, name string) (bool, error) {
	lease, err := s.clientset.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	spec := &lease.Spec
	if spec.RenewTime == nil || spec.LeaseDurationSeconds == nil || spec.HolderIdentity == nil || *spec.HolderIdentity == "" {
		return false, nil
	}
	return time.Since(spec.RenewTime.Time) < 2*time.Duration(*spec.LeaseDurationSeconds)*time.Second, nil
}

// agentObjects are what the agent has on the cluster beside its Roles, in the order in which
// they go: the limits go after the rights.
func (d *deregistration) agentObjects() (rights, rest []*object) {
	name := AgentName(d.plane.ID)
	rights = []*object{
		{resource: deployments, namespace: d.RemoteNamespace, name: name},
		{resource: roleBindings, namespace: d.RemoteNamespace, name: moreName(d.plane.ID)},
		{resource: roles, namespace: d.RemoteNamespace, name: moreName(d.plane.ID)},
		{resource: clusterRoleBindings, name: name},
		{resource: clusterRoles, name: name},
	}
	rest = []*object{
		{resource: policyBindings, name: name},
		{resource: policies, name: name},
		{resource: serviceAccounts, namespace: d.RemoteNamespace, name: name},
	}
	return rights, rest
}
