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

  meshctl cluster revoke cluster-2      ends its certificates, and disconnects it
  meshctl cluster deregister cluster-2 --remote-context cluster-2

A registered cluster moves to its agent with "cluster register --relay", and
back with "cluster register". It is reached in the old way until the new one
works, and nothing that was written there is deleted.

What proxies hold is not read through agents: "check --proxies" and "why
--proxy" use your own context of the cluster, and say so where there is none.

Gateways on the way must pass TLS through: both sides prove who they are. Agents
send the server name gloo-mesh-mgmt-server.NAMESPACE, whatever address they
dial, and a gateway can find the Service by it. Own names are in the certificate
with "install --relay-host", and agents ask for them with --relay-name. An Istio
gateway needs a server of protocol TLS in mode PASSTHROUGH for that host on port
9900, and a VirtualService with a tls route to the Service.

Secrets, in the namespace of the management plane:
  relay-root-tls-secret        the relay's root; with ca.crt alone, your own PKI
                               signs, and there are no tokens
  relay-server-tls-secret      the certificate that agents are shown
  relay-agent-NAME             what is known of the agent of a cluster
in that of the agent:
  relay-identity-token-secret  its token, until it is used
  relay-client-tls-secret      its certificate; of your own PKI, with the name of
                               the cluster as its only DNS name`
