package snapshot

import "strconv"

// Names of what belongs to the relay, over which agents speak for their clusters. Those of the Service and of the Secrets are as in Gloo
// Mesh, whose manifests have them, too.
const (
	// RelayService is the Service, in the management plane's namespace, at which agents find it, and RelayPort is its port (TCP).
	RelayService = "gloo-mesh-mgmt-server"
	RelayPort    = 9900

	// RelayRootSecret has the root of the relay: tls.crt, tls.key and ca.crt; of a user's own PKI, ca.crt is enough. In an agent's cluster
	// it has ca.crt only.
	RelayRootSecret = "relay-root-tls-secret"
	// RelayServerSecret has the certificate of the hub: tls.crt, tls.key and ca.crt.
	RelayServerSecret = "relay-server-tls-secret"
	// RelayClientSecret has the certificate of an agent, in its cluster: tls.crt, tls.key and ca.crt.
	RelayClientSecret = "relay-client-tls-secret"
	// RelayTokenSecret has the token of an agent that has no certificate yet, in its cluster, in the key RelayTokenKey. In the management
	// plane's namespace, it has the one that agents share, as in Gloo Mesh: nobody makes it but a user.
	RelayTokenSecret = "relay-identity-token-secret"
	RelayTokenKey    = "token"

	// RelayClientRootSecret has further roots of agents' certificates, in ca.crt and in the management plane's namespace: those of a user's
	// own PKI.
	RelayClientRootSecret = "relay-client-root-tls-secret"

	// RelayOutputPrefix is before the number in the names of the ConfigMaps in which an agent keeps what stands in its cluster.
	RelayOutputPrefix = "meshctl-relay-output-"
	// RelayOutputMost is how many of them an agent may have: 14 MiB of compressed documents, which are some 100,000 objects.
	RelayOutputMost = 16

	// RelayRecordPrefix is before the name of a cluster in the name of the Secret that says what the hub knows of its agent, and
	// RelayRecordType is the type of these Secrets.
	RelayRecordPrefix = "relay-agent-"
	RelayRecordType   = "meshctl.io/relay-agent"

	// RelayWaitingSecret says, in the key RelayWaitingKey and in the management plane's namespace, which agents wait for approval:
	// RelayWaitings. It is a Secret, though it has none: whoever writes it decides what an administrator sees who approves.
	RelayWaitingSecret = "relay-waiting-agents"
	RelayWaitingKey    = "agents"
)

// RelayOutputName is the ConfigMap with a piece of what stands in an agent's cluster, from 0 on.
func RelayOutputName(n int) string { return RelayOutputPrefix + strconv.Itoa(n) }

// RelayServerName is the DNS name by which agents know the hub of a management plane in a namespace.
func RelayServerName(namespace string) string { return RelayService + "." + namespace }

// AgentNamePrefix is before the UID of the management plane in the name of the Deployment of an agent.
const AgentNamePrefix = "meshctl-agent-"

// Ends of the names of what the agent of a management plane has beside what is named as its Deployment: the Roles and the ClusterRoleBinding
// with which it speaks for its cluster, and the Role for what an administrator names.
const (
	AgentRelaySuffix = "-relay"
	AgentMoreSuffix  = "-more"
)

// RelayLeaveName is the ClusterRole, and the ClusterRoleBinding, by which the agent of a management plane may delete this one ClusterRole:
// all that registration made for the agent is owned by it, and goes with it. Of a cluster that was invited, it owns nothing, and allows the
// agent to delete its rights and its Deployment, too.
func RelayLeaveName(planeID string) string { return AgentNamePrefix + planeID + "-leave" }

// What is on objects that meshctl made beside those that it translates and discovers.
const (
	// ManagedByLabel is the label, and ManagedBy its value.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	ManagedBy      = "meshctl"
)

// ClusterUIDAnnotation, on a KubernetesCluster, is the UID of the namespace kube-system of the cluster that is registered.
const ClusterUIDAnnotation = "registration.multicluster.solo.io/cluster-uid"
