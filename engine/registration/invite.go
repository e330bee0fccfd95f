package registration

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// InviteOptions configure Invite. Relay and Agent are required.
type InviteOptions struct {
	// Name the cluster will have everywhere: a DNS label.
	Name string
	// MgmtConfig is the client configuration of the management cluster, with the permissions of an administrator, and MgmtContext what
	// messages call it; optional.
	MgmtConfig  *rest.Config
	MgmtContext string
	// MgmtNamespace is that of the management plane; cluster.DefaultNamespace if empty. RemoteNamespace is that of the agent on its
	// cluster; the one in which it is or, for a new cluster, cluster.DefaultNamespace if empty.
	MgmtNamespace, RemoteNamespace string
	// ClusterDomain is the DNS suffix of the cluster's Services; cluster.local if empty.
	ClusterDomain string
	// MeshNamespaces are those of the cluster's control planes, in which the agent gets Roles: they have to exist there.
	// DefaultMeshNamespace if there are none.
	MeshNamespaces []string
	Relay          *Relay
	Agent          *Agent
	// Timeout bounds the server's first answer; DefaultTimeout if zero.
	Timeout time.Duration
}

// DefaultMeshNamespace has the control plane of Istio, unless it was installed elsewhere.
const DefaultMeshNamespace = "istio-system"

// Invitation is what the administrator of the other cluster needs.
type Invitation struct {
	// Objects are to be written there, in their order. One of them has a token, which is a secret.
	Objects []any
	// Server is HOST:PORT that the agent dials, and Until is when its token ends.
	Server string
	Until  time.Time
	// Namespace is that of the agent.
	Namespace string
	Report    Report
}

// Invite registers a cluster to be reached through its agent without access to it: it makes the objects that its administrator writes
// there. It can be repeated; only the token that was made last counts, and an agent that has a certificate keeps it until the token is
// used.
func Invite(ctx context.Context, o InviteOptions) (Invitation, error) {
	r, err := newInvited(o)
	if err != nil {
		return Invitation{}, err
	}
	r.meshNamespaces = slices.Clone(o.MeshNamespaces)
	if len(r.meshNamespaces) == 0 {
		r.meshNamespaces = []string{DefaultMeshNamespace}
	}
	slices.Sort(r.meshNamespaces)
	r.meshNamespaces = slices.Compact(r.meshNamespaces)
	if err := r.inspectInvited(ctx); err != nil {
		return Invitation{}, err
	}
	for _, step := range []func(context.Context) error{r.writeManagementCRDs, r.writeManagementNamespace, r.writeIdentity, r.writeKubernetesCluster} {
		if err := step(ctx); err != nil {
			return Invitation{Report: r.report}, fmt.Errorf("cluster %s: inviting: %w; run the same command again to finish", r.Name, err)
		}
	}
	until := time.Now().Add(r.Relay.Lasts)
	// Who invites a cluster again may have made it anew: its UID is not asked for.
	invite := func() error { return r.invite(ctx, "") }
	if r.Relay.OwnPKI {
		invite = func() (err error) {
			r.relayRoot, err = r.Relay.Store(r.management.clientset, r.plane).HubRoot(ctx)
			return err
		}
	}
	if err := invite(); err != nil {
		return Invitation{Report: r.report}, fmt.Errorf("cluster %s: inviting: %w; run the same command again to finish", r.Name, err)
	}
	out := Invitation{Server: r.Relay.Server, Until: until, Namespace: r.RemoteNamespace, Report: r.report}
	types, err := agentTypes()
	if err != nil {
		return out, err
	}
	for _, o := range slices.Concat([]*object{wantedBy(r.registration).remoteNamespaceObject()}, types, wantedBy(r.registration).remoteObjects()) {
		out.Objects = append(out.Objects, o.want)
	}
	return out, nil
}

// agentTypes are the types of what management planes and agents say to each other.
func agentTypes() ([]*object, error) {
	types, err := allCRDs()
	return slices.DeleteFunc(types, func(o *object) bool { return !strings.HasSuffix(o.name, "."+agentGroup) }), err
}

func newInvited(o InviteOptions) (*via, error) {
	r := &registration{Options: Options{
		Name: o.Name, MgmtConfig: o.MgmtConfig, MgmtContext: o.MgmtContext, MgmtNamespace: o.MgmtNamespace, RemoteNamespace: o.RemoteNamespace,
		ClusterDomain: o.ClusterDomain, Relay: o.Relay, Agent: o.Agent, Timeout: o.Timeout,
	}}
	if err := r.complete(); err != nil {
		return nil, err
	}
	var err error
	r.management, err = newServer(managementSide, r.MgmtContext, r.MgmtConfig, r.Timeout)
	r.report.Cluster = r.Name
	r.via = &via{registration: r}
	return r.via, err
}

// inspectInvited finds out what there is on the management cluster, and whether the rest can be written. It changes nothing.
func (r *via) inspectInvited(ctx context.Context) error {
	if err := r.management.probe(ctx); err != nil {
		return err
	}
	if err := r.findRelay(ctx, false); err != nil {
		return err
	}
	if r.Agent.Image == "" {
		return fmt.Errorf("cluster %s: no image of the agent is known, as serve does not run in the management cluster; name one of meshctl with --agent-image", r.Name)
	}
	var err error
	if r.missing.managementNamespace, err = r.management.lacksNamespace(ctx, r.MgmtNamespace); err != nil {
		return err
	}
	if r.missing.crds, err = crdsOn(r.management).outdatedCRDs(ctx, ""); err != nil {
		return err
	}
	if err := r.readIdentity(ctx); err != nil {
		return err
	}
	r.account = AgentName(r.plane.ID)
	if err := r.management.require(ctx, r.managementAccess()); err != nil {
		return err
	}
	if err := r.checkInvited(ctx); err != nil {
		return err
	}
	m, err := r.management.inScope(ctx, r.MgmtNamespace)
	if err != nil {
		return err
	}
	r.suffixes = suffixes(m)
	r.vault = vaultAccess{Servers: r.Agent.VaultServers, Audience: cmp.Or(r.Agent.VaultAudience, snapshot.VaultAudience)}
	r.noteVault()
	for _, namespace := range r.meshNamespaces {
		r.meshNames = append(r.meshNames, "istiod-"+namespace+"-"+r.Name)
	}
	return r.addKnownMeshes(ctx)
}

// addKnownMeshes adds those that were discovered in the cluster: they may have other names than at first.
func (r *via) addKnownMeshes(ctx context.Context) error {
	list, err := r.management.client(meshes, r.MgmtNamespace).List(ctx, metav1.ListOptions{LabelSelector: discoveredSelector(r.MgmtNamespace, r.Name)})
	if err != nil && !kube.IsAbsent(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("%s: listing Meshes: %w", r.management.label, err)
	}
	if list != nil {
		for i := range list.Items {
			r.meshNames = append(r.meshNames, list.Items[i].GetName())
		}
	}
	slices.Sort(r.meshNames)
	r.meshNames = slices.Compact(r.meshNames)
	return nil
}

// checkInvited rejects the name of a cluster that is reached in another way.
func (r *via) checkInvited(ctx context.Context) error {
	secret, err := storedSecret(ctx, r.management.clientset, r.MgmtNamespace, r.Name)
	if err != nil {
		return err
	}
	known, err := r.management.getKubernetesCluster(ctx, r.MgmtNamespace, r.Name)
	if err != nil {
		return err
	}
	if secret != nil || known != nil && known.Spec.SecretName != "" {
		return &NameTakenError{Name: r.Name, Reason: fmt.Sprintf(
			"it is reached with a credential; `meshctl cluster register %s --relay --remote-context ...` has it reached through its agent from then on", r.Name)}
	}
	if known != nil && known.Annotations[snapshot.LeavingAnnotation] != "" {
		return leavesError(r.Name, r.MgmtNamespace)
	}
	if r.invitedUID, err = r.Relay.Store(r.management.clientset, r.plane).Enrolled(ctx, r.Name); err != nil {
		return fmt.Errorf("cluster %s: %w", r.Name, err)
	}
	if known != nil {
		orDefault(&r.RemoteNamespace, known.Status.Namespace)
		orDefault(&r.invitedUID, known.Annotations[cluster.UIDAnnotation])
	}
	orDefault(&r.RemoteNamespace, cluster.DefaultNamespace)
	return nil
}

func (r *via) writeManagementCRDs(ctx context.Context) error {
	changes, err := crdsOn(r.management).applyCRDs(ctx, r.missing.crds)
	r.report.add(changes...)
	return err
}

func (r *via) writeManagementNamespace(ctx context.Context) error {
	if !r.missing.managementNamespace {
		return nil
	}
	return r.apply(ctx, r.management, namespaceObject(r.MgmtNamespace))
}
