package registration

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// A cluster that is registered with Relay is reached through its agent, which dials serve: no credential of it leaves it. The agent has the
// rights on its cluster that serve has on others, beside its own.

// DefaultInvitation is how long the agent of a cluster may take to use its token.
const DefaultInvitation = time.Hour

// maxInvitation bounds that: who finds an old manifest must not become the cluster.
const maxInvitation = 30 * 24 * time.Hour

// Relay has a cluster reached through its agent. Store is required.
type Relay struct {
	// Server is HOST:PORT at which the agent dials serve; if empty, that of the Service that Install makes for it.
	Server string
	// Lasts is how long the agent may take to use its token; DefaultInvitation if zero.
	Lasts time.Duration
	// OwnPKI: the agent gets its certificate of the user's own PKI, and no token. Of Invite only.
	OwnPKI bool
	// Store returns what knows the agents of a management plane.
	Store func(client kube.Clientset, plane snapshot.Plane) RelayStore
}

// RelayStore knows the agents of a management plane.
type RelayStore interface {
	// Invite makes a token for the agent of a cluster, which counts once and for a time, and returns it with the root of the relay in
	// PEM. With a UID, it is for the cluster of this one.
	Invite(ctx context.Context, cluster, uid string, lasts time.Duration) (token string, root []byte, err error)
	// HubRoot is the root of the relay in PEM, by which agents know the hub.
	HubRoot(ctx context.Context) ([]byte, error)
	// Enrolled is the UID of the cluster whose agent has a certificate; empty if none has.
	Enrolled(ctx context.Context, cluster string) (uid string, err error)
	// Approve lets an agent that waits have a certificate, which is that of the cluster for which it asks.
	Approve(ctx context.Context, agent snapshot.RelayWaiting) error
	// Revoke ends all certificates of the agent of a cluster, and its token.
	Revoke(ctx context.Context, cluster string) error
	// Owe notes that what is in a cluster stays there, because its agent is away while it is deregistered: the agent is to remove it when
	// it comes back. It is false if no agent has a certificate with which it could.
	Owe(ctx context.Context, cluster string) (owes bool, err error)
	// Forgive notes that a cluster is registered again, so that what is there is wanted.
	Forgive(ctx context.Context, cluster string) error
}

// via is a registration as far as it is about the agent that dials. Every registration has one.
type via struct {
	*registration

	// token was made for the agent, with the root of the relay; empty if the agent has a certificate.
	token     string
	relayRoot []byte
	// enrolled: the agent has a certificate. serves: a serve runs that it can connect to.
	enrolled, serves bool
	// directAccounts are the ServiceAccounts with which serve reached the cluster before.
	directAccounts []string
	// wasRelayed: the cluster was reached through its agent, and is not any more.
	wasRelayed bool
	// invitedUID is that of a cluster that cannot be reached from here; empty if it is not known.
	invitedUID string
	// owner is what the agent removes at the end, and with it all that registration made; nil before it is written.
	owner *metav1.OwnerReference
}

// RelayRoleName is the ClusterRoleBinding, and the Roles, of an agent that speaks for its cluster.
func RelayRoleName(planeID string) string { return AgentName(planeID) + snapshot.AgentRelaySuffix }

func (r *via) relayed() bool { return r.Relay != nil }

// complete sets defaults and rejects invalid values.
func (r *Relay) complete() error {
	r.Lasts = cmp.Or(r.Lasts, DefaultInvitation)
	if r.Lasts < time.Minute || r.Lasts > maxInvitation {
		return fmt.Errorf("token lifetime %s: want from 1m to %s", r.Lasts, maxInvitation)
	}
	if r.Server == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(r.Server)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 || host == "" {
		return fmt.Errorf("relay server %q: want HOST:PORT, such as relay.example.com:%d", r.Server, snapshot.RelayPort)
	}
	return nil
}

// RelayAddress is HOST:PORT at which agents in other clusters dial serve, by the Service that Install makes for them. An error says why there is
// none.
func RelayAddress(ctx context.Context, config *rest.Config, namespace string, timeout time.Duration) (string, error) {
	s, err := newServer(managementSide, "", config, timeout)
	if err != nil {
		return "", err
	}
	return relayAddress(ctx, s, namespace, false)
}

// relayAddress is where agents dial serve, by the Service that Install makes for them; within: the agent is in the same cluster.
func relayAddress(ctx context.Context, s *server, namespace string, within bool) (string, error) {
	name := namespace + "/" + snapshot.RelayService
	service, err := s.clientset.CoreV1().Services(namespace).Get(ctx, snapshot.RelayService, metav1.GetOptions{})
	if kube.IsAbsent(err) {
		return "", fmt.Errorf("%s: there is no Service %s for agents to dial; run `meshctl install --relay`, or say with --relay-server where they find `meshctl serve --relay-bind`", s.label, name)
	}
	if err != nil {
		return "", fmt.Errorf("%s: reading Service %s: %w", s.label, name, err)
	}
	at := func(host string, port int32) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }
	i := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == snapshot.RelayPort })
	switch {
	case i < 0:
		return "", fmt.Errorf("%s: Service %s has no port %d; run `meshctl install --relay` again, or use --relay-server", s.label, name, snapshot.RelayPort)
	case within:
		return at(snapshot.RelayServerName(namespace)+".svc", snapshot.RelayPort), nil
	case service.Spec.Type == corev1.ServiceTypeLoadBalancer:
		for _, ingress := range service.Status.LoadBalancer.Ingress {
			if host := cmp.Or(ingress.Hostname, ingress.IP); host != "" {
				return at(host, snapshot.RelayPort), nil
			}
		}
		return "", fmt.Errorf("%s: Service %s has no address of a load balancer yet; wait until it has one (`kubectl -n %s get service %s`), or use --relay-server",
			s.label, name, namespace, snapshot.RelayService)
	case service.Spec.Type == corev1.ServiceTypeNodePort:
		host, err := nodeAddress(ctx, s)
		if err != nil {
			return "", err
		}
		return at(host, service.Spec.Ports[i].NodePort), nil
	}
	return "", fmt.Errorf("%s: Service %s is of type %s, to which nothing leads from other clusters; use --relay-server with the address of what leads to it, or `meshctl install --relay-service-type`",
		s.label, name, service.Spec.Type)
}

// nodeAddress is that of a node; one from outside comes first.
func nodeAddress(ctx context.Context, s *server) (string, error) {
	list, err := s.clientset.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: pageSize})
	if err != nil {
		return "", fmt.Errorf("%s: listing nodes: %w; use --relay-server", s.label, err)
	}
	for _, wanted := range []corev1.NodeAddressType{corev1.NodeExternalIP, corev1.NodeInternalIP} {
		for i := range list.Items {
			for _, a := range list.Items[i].Status.Addresses {
				if a.Type == wanted && a.Address != "" {
					return a.Address, nil
				}
			}
		}
	}
	return "", fmt.Errorf("%s: no node has an address; use --relay-server", s.label)
}

// relayObjects are what a registration has on its cluster that is reached through its agent, in the order in which they are written.
func (r *via) relayObjects() []*object {
	labels := wantedBy(r.registration).labels()
	shared := maps.Clone(labels)
	delete(shared, snapshot.ClusterLabel)
	name, agent := RelayRoleName(r.plane.ID), AgentName(r.plane.ID)
	out := wantedBy(r.registration).clusterRoleObjects(RoleName(r.plane.ID), name, shared, labels, remoteRules(r.policies), agent)
	// After the permission: serve goes on writing.
	out = append(out, policyObjects(HostsPolicyName(r.plane.ID), shared, hostsPolicy(r.suffixes))...)
	rules := r.relayNamespaces()
	for _, namespace := range slices.Sorted(maps.Keys(rules)) {
		out = append(out, wantedBy(r.registration).roleObjects(namespace, name, rules[namespace], agent)...)
	}
	// The token comes after all that its use takes, and before who uses it.
	agentHas := wantedBy(r.registration).agentObjects()
	split := slices.IndexFunc(agentHas, func(o *object) bool { return o.resource == deployments })
	if split < 0 {
		split = len(agentHas)
	}
	return slices.Concat(out, agentHas[:split], r.relaySecrets(), agentHas[split:])
}

// relayNamespaces are those in which the agent has a further Role, with its rules.
func (r *via) relayNamespaces() map[string][]rbacv1.PolicyRule {
	out := map[string][]rbacv1.PolicyRule{r.RemoteNamespace: slices.Clone(r.Agent.RelayRules)}
	for _, namespace := range r.meshNamespaces {
		out[namespace] = append(out[namespace], settingsRule())
	}
	return out
}

// relaySecrets are the token of the agent and the root of the relay; none if the agent has a certificate.
func (r *via) relaySecrets() []*object {
	secret := func(name, key string, value []byte) *object {
		return &object{
			resource: secrets, namespace: r.RemoteNamespace, name: name, foreignHint: nameHint,
			want: corev1ac.Secret(name, r.RemoteNamespace).WithLabels(wantedBy(r.registration).labels()).WithData(map[string][]byte{key: value}),
		}
	}
	root := secret(snapshot.RelayRootSecret, corev1.ServiceAccountRootCAKey, r.relayRoot)
	switch {
	case r.Relay.OwnPKI:
		return []*object{root}
	case r.token == "":
		return nil
	}
	return []*object{root, secret(snapshot.RelayTokenSecret, snapshot.RelayTokenKey, []byte(r.token))}
}

// relayArgs have the agent speak for its cluster.
func (r *via) relayArgs() []string {
	if !r.relayed() {
		return nil
	}
	out := []string{"--relay-server", r.Relay.Server, "--relay-name", snapshot.RelayServerName(r.MgmtNamespace), "--mgmt-namespace", r.MgmtNamespace}
	if r.Relay.OwnPKI {
		out = append(out, "--relay-cluster", r.Name, "--relay-plane", r.plane.ID)
	}
	return out
}

// relayLeftovers are the objects of a relay in an agent's cluster beside its ClusterRole and Deployment, in the order in which they go.
func relayLeftovers(planeID, namespace string) []*object {
	leave := snapshot.RelayLeaveName(planeID)
	out := []*object{
		{resource: clusterRoleBindings, name: RelayRoleName(planeID)},
		// The agent has ended by now: what is owned goes with it.
		{resource: clusterRoleBindings, name: leave}, {resource: clusterRoles, name: leave},
	}
	for _, name := range []string{snapshot.RelayTokenSecret, snapshot.RelayClientSecret, snapshot.RelayRootSecret} {
		out = append(out, &object{resource: secrets, namespace: namespace, name: name})
	}
	return out
}

// relayManagementAccess is what registering a relay cluster takes on the management cluster beside the rest.
func (r *via) relayManagementAccess() []access {
	record := secrets.access(r.MgmtNamespace, snapshot.RelayRecordPrefix+r.Name)
	wanted := slices.Concat(record.each("get", "patch"),
		secrets.access(r.MgmtNamespace, snapshot.RelayRootSecret).each("get"), secrets.access(r.MgmtNamespace, snapshot.RelayServerSecret).each("get"))
	wanted = append(wanted, secrets.access(r.MgmtNamespace, "").each("create")...)
	if r.moves() {
		wanted = append(wanted, secrets.access(r.MgmtNamespace, r.Name).each("delete")...)
	}
	return append(wanted, leases.access(r.MgmtNamespace, cluster.LeaseName).each("get")...)
}

// moves: the cluster has a credential, and is to be reached through its agent from now on.
func (r *via) moves() bool { return r.relayed() && r.secret != nil }
