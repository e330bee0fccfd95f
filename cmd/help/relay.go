package help

// relayIntro is the recipe for clusters whose API server the management plane does not reach.
const relayIntro = `An agent in a cluster can dial the management plane and speak for the cluster.
Then nobody dials its API server, and no credential of it is stored anywhere
else. Clusters that are reached directly and those with agents may be in one
VirtualMesh.

On the management cluster, once:

  meshctl install --relay

This makes the Service gloo-mesh-mgmt-server with port 9900, of the type that
--relay-service-type says. All replicas take agents, and pass them on to the one
that works. With the Helm chart, set relay.enabled.

If you have contexts of both clusters:

  meshctl cluster register cluster-2 --relay --remote-context cluster-2

If you have not: make the manifests, pass them on as you pass on passwords, and
have them applied on the other cluster within the hour:

  meshctl cluster invite cluster-2 --relay-server relay.example.com:9900 > it.yaml
  kubectl apply --server-side -f it.yaml

The token in them counts once, for this cluster's name, and until --ttl. The
agent gets a certificate for it, of a root that the relay has for itself, and
renews that every day. A token that is put into Secret
relay-identity-token-secret later is used at once, without a restart.

As in Gloo Mesh 1.x, all agents may share one token instead: put it, with 16
characters or more, into Secret relay-identity-token-secret, key token, of the
management plane's namespace and of the agents', and the hub's root, ca.crt of
relay-root-tls-secret, into the Secret of that name beside them. The manifests
of "cluster invite" do for the rest, with --relay-cluster NAME among the
arguments of the agent. Without that Secret, there is no such token. Whoever has
it can claim any name, so it lets nobody in: "cluster list" and "check" name
the agents that wait, and one of them is let in by

  meshctl cluster approve cluster-2

for the key and the cluster UID that it shows, which the log of the agent has,
too. Until then, nothing is read from its cluster or written to it.

  meshctl cluster revoke cluster-2      ends its certificates, and disconnects it
  meshctl cluster deregister cluster-2 --remote-context cluster-2

A registered cluster moves to its agent with "cluster register --relay", and
back with "cluster register". It is reached in the old way until the new one
works, and nothing that was written there is deleted.

What proxies hold is not read through agents: "check --proxies" and "why
--proxy" use your own context of the cluster, and say so where there is none.
What proxies count, the agent reads at the addresses of their pods, by Istio's
port 15090, and sends by a connection of its own: nothing else waits for it, and
what it loses, the next reading has. "meshctl telemetry disable" ends that.

Gateways on the way must pass TLS through: both sides prove who they are. Agents
send the server name gloo-mesh-mgmt-server.NAMESPACE, whatever address they
dial, and a gateway can find the Service by it. Own names are in the certificate
with "install --relay-host", and agents ask for them with --relay-name. An Istio
gateway needs a server of protocol TLS in mode PASSTHROUGH for that host on port
9900, and a VirtualService with a tls route to the Service.

Your own PKI, such as cert-manager or Vault, can give agents their certificates.
Tell the hub its root, in ca.crt of Secret relay-client-root-tls-secret: several
roots may be in it, so that one can be exchanged for another. Whoever gets
certificates of that root can speak for a registered cluster whose agent was not
here yet, so take one that is for this alone. Then make the manifests, which
have no token:

  meshctl cluster invite cluster-2 --own-pki > it.yaml

and have the certificate written into Secret relay-client-tls-secret beside the
agent, with the name of the cluster as its only DNS name, or with the URI
spiffe://UID.meshctl/cluster/NAME, where UID is that of the management plane;
for both usages. With cert-manager:

  apiVersion: cert-manager.io/v1
  kind: Certificate
  metadata:
    name: relay-client
    namespace: gloo-mesh
  spec:
    secretName: relay-client-tls-secret
    dnsNames: [cluster-2]
    usages: [digital signature, client auth, server auth]
    privateKey: {algorithm: ECDSA, size: 256, rotationPolicy: Always}
    issuerRef: {kind: Issuer, name: relay}

The agent reads the Secret again when it changes, and renews nothing by itself.
The name is bound to the first cluster that comes with it, by the UID of its
namespace kube-system; another one is refused. "cluster revoke" ends what was
issued before, and the binding.

To exchange the relay's root, add the new one to ca.crt of its Secret, beside
the old one; a day later, when all agents have renewed their certificates, put
it into tls.crt and tls.key; another day later, take the old one out of ca.crt.

Secrets, in the namespace of the management plane:
  relay-root-tls-secret        the relay's root; with ca.crt alone, your own PKI
                               signs, and there are no tokens
  relay-client-root-tls-secret further roots of agents' certificates, in ca.crt
  relay-identity-token-secret  the token that all agents share, if you want one
  relay-waiting-agents         who waits for approval
  relay-server-tls-secret      the certificate that agents are shown
  relay-agent-NAME             what is known of the agent of a cluster
in that of the agent:
  relay-identity-token-secret  its token, until it is used
  relay-root-tls-secret        ca.crt by which it knows the hub, where neither a
                               token nor its certificate says that
  relay-client-tls-secret      its certificate, or that of your own PKI`
