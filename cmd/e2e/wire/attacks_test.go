package wire

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// attacks are tried by who has the credential of an agent, by the administrator of a member, and by a tenant who may
// configure Istio in one namespace. Requests and roots show what they decide, which is nothing.
func attacks(t *testing.T, e *environment) {
	t.Helper()
	waittest.NoError(t, "the trust is established", func() error {
		if _, stands := e.trust(t); !settled(stands) {
			return errors.New(stands)
		}
		return nil
	})
	t.Run("an agent's credential makes no root", func(t *testing.T) { rootOfAnAgent(t, e) })
	t.Run("a root that meshctl did not make waits", func(t *testing.T) { foreignRoot(t, e) })
	t.Run("a tenant takes no federated name", func(t *testing.T) { takenName(t, e) })
	t.Run("a tenant opens no tunnel", func(t *testing.T) { tunnel(t, e) })
	t.Run("a member speaks for itself only", func(t *testing.T) { foreignDomain(t, e) })
	t.Run("an edit signs nothing that a member asks for", func(t *testing.T) { preparedRequest(t, e) })
}

// rootSecret is a root of the attacker's, in the form of one that meshctl made for the VirtualMesh.
func rootSecret(t *testing.T, namespace, name string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{Organization: []string{"gloo-mesh"}, CommonName: "attacker"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	root, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	data := func(typ string, der []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: typ, Bytes: der}))
	}
	return fmt.Appendf(nil, `apiVersion: v1
kind: Secret
metadata: {name: %s, namespace: %s, labels: {owner.networking.mesh.gloo.solo.io: gloo-mesh}, annotations: {trust.multicluster.solo.io/virtual-mesh: gloo-mesh/virtual-mesh}}
type: %s
data: {root-cert.pem: %s, key.pem: %s}
`, name, namespace, snapshot.RootSecretType, data("CERTIFICATE", root), data("EC PRIVATE KEY", marshal(t, key)))
}

func marshal(t *testing.T, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	return der
}

// rootOfAnAgent tries to give the VirtualMesh another root with the credential of the agent of the management cluster.
func rootOfAnAgent(t *testing.T, e *environment) {
	t.Helper()
	before, _ := e.trust(t)
	files := e.clusters["cluster-1"].AgentFiles()
	config, err := clientcmd.BuildConfigFromFlags("", files.Kubeconfig)
	require.NoError(t, err)
	own, err := kube.Namespace(files.Kubeconfig)
	require.NoError(t, err)
	require.NotEqual(t, "gloo-mesh", own)
	agent, err := kube.New("cluster-1", config)
	require.NoError(t, err)
	for _, namespace := range []string{"gloo-mesh", own, "istio-system"} {
		for _, name := range []string{"cacerts", "virtual-mesh.gloo-mesh", "istiod-istio-system-cluster-1"} {
			err := agent.ApplyYAML(t.Context(), rootSecret(t, namespace, name))
			assert.True(t, apierrors.IsForbidden(err) || apierrors.IsInvalid(err), "%s/%s: %v", namespace, name, err)
		}
	}
	e.sees(t)
	after, stands := e.trust(t)
	assert.Equal(t, before, after, stands)
}

// foreignRoot is a Secret in the management plane's namespace that looks like a root of meshctl's.
func foreignRoot(t *testing.T, e *environment) {
	t.Helper()
	before, _ := e.trust(t)
	e.during(t, string(rootSecret(t, "gloo-mesh", "looks-like-a-root")))
	e.warns(t, "neither made nor recorded")
	after, stands := e.trust(t)
	assert.Equal(t, before, after, stands)
}

// warns waits until the status of the VirtualMesh has a warning, or an error.
func (e *environment) warns(t *testing.T, text string) {
	t.Helper()
	waittest.NoError(t, "meshctl warns of "+text, func() error {
		warnings, err := e.warnings(t)
		if err == nil && !strings.Contains(warnings, text) {
			err = errors.New(warnings)
		}
		return err
	})
}

func (e *environment) warnings(t *testing.T) (string, error) {
	t.Helper()
	vm, err := e.management.Get(context.WithoutCancel(t.Context()), kube.Policies("virtualmeshes"), "gloo-mesh", "virtual-mesh")
	if err != nil {
		return "", err
	}
	warnings, _, _ := unstructured.NestedSlice(vm.Object, "status", "warnings")
	problems, _, _ := unstructured.NestedSlice(vm.Object, "status", "errors")
	members, _, _ := unstructured.NestedMap(vm.Object, "status", "meshes")
	return fmt.Sprint(warnings, problems, members), nil
}

// sees waits until meshctl has seen what was written before: it has translated an edit that came later.
func (e *environment) sees(t *testing.T) {
	t.Helper()
	const after = `apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: after-the-attack, namespace: gloo-mesh}
spec:
  destinationSelector:
  - kubeServiceRefs:
      services: [{name: ratings, namespace: bookinfo, clusterName: cluster-2}]
  policy: {requestTimeout: 9s}
`
	e.during(t, after)
	waittest.NoError(t, "a later edit is in force", func() error {
		p, err := e.management.Get(t.Context(), kube.Policies("trafficpolicies"), "gloo-mesh", "after-the-attack")
		if err != nil {
			return err
		}
		if state, _, _ := unstructured.NestedString(p.Object, "status", "state"); state != "ACCEPTED" {
			return fmt.Errorf("its state is %q", state)
		}
		return nil
	})
}

// tenantOf is a user who may do everything in namespace tenant of a cluster, and nothing elsewhere.
func (e *environment) tenantOf(t *testing.T, cluster string) *kube.Client {
	t.Helper()
	admin, err := e.clusters[cluster].Client()
	require.NoError(t, err)
	const rights = `apiVersion: v1
kind: Namespace
metadata: {name: tenant}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: all, namespace: tenant}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: all, namespace: tenant}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: all}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: tenant}]
`
	require.NoError(t, admin.ApplyYAML(t.Context(), []byte(rights)))
	config, err := e.clusters[cluster].Config()
	require.NoError(t, err)
	config.Impersonate = rest.ImpersonationConfig{UserName: "tenant"}
	tenant, err := kube.New(cluster, config)
	require.NoError(t, err)
	waittest.NoError(t, "the tenant may write", func() error {
		return tenant.ApplyYAML(t.Context(), []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine, namespace: tenant}\n"))
	})
	return tenant
}

// entry leads requests for a host to an address that has a sidecar.
const entry = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %s, namespace: tenant}
spec:
  hosts: [%s]
  exportTo: ["*"]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 9080, name: http, protocol: HTTP}]
  endpoints: [{address: %s, ports: {http: %d}, labels: {security.istio.io/tlsMode: istio, version: v3}}]
`

// takenName: a host of a federated service is defined by a tenant.
func takenName(t *testing.T, e *environment) {
	t.Helper()
	tenant, thief := e.tenantOf(t, "cluster-1"), e.pod(t, "cluster-1", "ratings-v1")
	for _, host := range []string{ratingsElsewhere, strings.ToUpper(ratingsElsewhere), `"*.bookinfo.svc.cluster-2.global"`, `"*.global"`, ratingsElsewhere + "."} {
		err := tenant.ApplyYAML(t.Context(), fmt.Appendf(nil, entry, "shadow", host, thief.IP, 9080))
		require.True(t, apierrors.IsForbidden(err) || apierrors.IsInvalid(err), "%s: %v", host, err)
	}
	require.NoError(t, e.allAre(t.Context(), e.pod(t, "cluster-1", "productpage-v1"), app.Call{URL: "http://" + ratingsElsewhere + ":9080", Count: 100}, "cluster-2 ratings-v1"))
}

// outside lets callers of such a host connect with whatever name and certificate its DestinationRule says. Sidecars tell
// connections of the mesh by their ALPN.
const outside = `---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: %[1]s, namespace: tenant}
spec: {host: %[2]s, exportTo: ["*"], trafficPolicy: {tls: {%[3]s, sni: outbound_.9080_._.%[4]s}}}
---
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: %[1]s, namespace: istio-system}
spec:
  configPatches:
  - applyTo: CLUSTER
    match: {context: SIDECAR_OUTBOUND, cluster: {service: %[2]s}}
    patch:
      operation: MERGE
      value:
        transport_socket:
          name: envoy.transport_sockets.tls
          typed_config:
            "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
            common_tls_context: {alpn_protocols: [istio]}
`

// through lets a cluster call the gateway of another one as somebody on the network would: with a name and a certificate of its
// own choice. It returns what to call.
func (e *environment) through(t *testing.T, from, to, name, sni, tls string) string {
	t.Helper()
	admin, err := e.clusters[from].Client()
	require.NoError(t, err)
	at, err := admin.Get(t.Context(), kube.Networking("serviceentries"), "istio-system", "ratings.bookinfo.svc."+to+".global")
	require.NoError(t, err)
	endpoints, _, _ := unstructured.NestedSlice(at.Object, "spec", "endpoints")
	require.NotEmpty(t, endpoints)
	gateway, _, _ := unstructured.NestedString(endpoints[0].(map[string]any), "address")
	ports, _, _ := unstructured.NestedMap(endpoints[0].(map[string]any), "ports")
	require.Len(t, ports, 1)
	var port any
	for _, port = range ports {
	}
	host := name + ".example.com"
	documents := fmt.Appendf(nil, entry, name, host, gateway, port)
	documents = fmt.Appendf(documents, outside, name, host, tls, sni)
	e.inCluster(t, from, documents)
	return "http://" + host + ":9080"
}

// inCluster writes documents, as its administrator, for the time of the test.
func (e *environment) inCluster(t *testing.T, cluster string, documents []byte) {
	t.Helper()
	admin, err := e.clusters[cluster].Client()
	require.NoError(t, err)
	require.NoError(t, admin.ApplyYAML(t.Context(), documents))
	t.Cleanup(func() { assert.NoError(t, admin.DeleteYAML(context.WithoutCancel(t.Context()), documents)) })
}

// tunnel: a tenant of cluster-2 gives a host that looks like a federated one an address, for callers outside. Its API server
// refuses that; what an administrator writes is no way in either.
func tunnel(t *testing.T, e *environment) {
	t.Helper()
	const evil = "evil.tenant.svc.cluster-2.global"
	_, tenant := e.tenantOf(t, "cluster-1"), e.tenantOf(t, "cluster-2")
	behind := fmt.Appendf(nil, entry, "evil", evil, e.pod(t, "cluster-2", "ratings-v1").IP, 9080)
	err := tenant.ApplyYAML(t.Context(), behind)
	require.True(t, apierrors.IsForbidden(err) || apierrors.IsInvalid(err), "%v", err)
	e.inCluster(t, "cluster-2", behind)

	from := e.pod(t, "cluster-1", "productpage-v1")
	dishonest := e.through(t, "cluster-1", "cluster-2", "dishonest", evil, "mode: ISTIO_MUTUAL")
	honest := e.through(t, "cluster-1", "cluster-2", "honest", ratingsElsewhere, "mode: ISTIO_MUTUAL")
	waittest.NoError(t, "the gateway passes on what is federated", func() error {
		return e.allAre(t.Context(), from, app.Call{URL: honest, Count: 10}, "cluster-2 ratings-v1")
	})
	// What was written before has arrived, too.
	waittest.NoError(t, "nothing else", func() error { return e.noneAnswered(t.Context(), from, app.Call{URL: dishonest, Count: 10}) })
}
