package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// attackers try, throughout a run, what they must not be able to do: who has the credential of an agent, the administrator of
// a member, and a tenant who may configure Istio and write policies in one namespace. What is refused must be refused each
// time; what they may write must decide nothing, which is checked in its status, and by what stands.
type attackers struct {
	s        *soak
	attempts []attempt
}

// attempt is one thing to try.
type attempt struct {
	name string
	try  func(ctx context.Context) error
	// decides says what an attempt that is not refused has decided; empty if nothing. Nil if it must be refused.
	decides func(ctx context.Context) (string, error)
}

// policyRights let the tenant write policies in its namespace of the management cluster.
const policyRights = `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: policies, namespace: tenant}
rules: [{apiGroups: [networking.mesh.gloo.solo.io, networking.enterprise.mesh.gloo.solo.io, settings.mesh.gloo.solo.io], resources: ["*"], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: policies, namespace: tenant}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: policies}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: tenant}]
`

func newAttackers(s *soak) *attackers {
	s.t.Helper()
	s.apply("cluster-1", []byte(policyRights))
	a := &attackers{s: s}
	for _, c := range s.clusters {
		a.addTenant(c)
		a.addAgent(c)
	}
	a.addPolicies()
	a.addMember()
	return a
}

func (a *attackers) client(config *rest.Config) *kube.Client {
	a.s.t.Helper()
	config.Timeout = 5 * time.Second
	client, err := kube.New("attacker", config)
	require.NoError(a.s.t, err)
	return client
}

func (a *attackers) tenant(c *local.Cluster) *kube.Client {
	a.s.t.Helper()
	config, err := c.Config()
	require.NoError(a.s.t, err)
	config.Impersonate = rest.ImpersonationConfig{UserName: "tenant"}
	return a.client(config)
}

// addTenant takes names of federated services.
func (a *attackers) addTenant(c *local.Cluster) {
	a.s.t.Helper()
	tenant := a.tenant(c)
	for _, host := range []string{"reviews.bookinfo.svc.cluster-2.global", "Ratings.bookinfo.svc.cluster-1.GLOBAL", `"*.global"`, "details.bookinfo.svc.cluster-1.global."} {
		a.add("tenant of "+c.Name()+" defines "+host, func(ctx context.Context) error { return tenant.ApplyYAML(ctx, fmt.Appendf(nil, shadow, host)) })
	}
	for kind, spec := range map[string]string{
		"VirtualService":  "{hosts: [reviews.bookinfo.svc.cluster-2.global], http: [{route: [{destination: {host: soak}}]}]}",
		"DestinationRule": "{host: reviews.bookinfo.svc.cluster-2.global, trafficPolicy: {tls: {mode: DISABLE}}}",
	} {
		a.add("tenant of "+c.Name()+" writes a "+kind, func(ctx context.Context) error {
			return tenant.ApplyYAML(ctx, fmt.Appendf(nil, "apiVersion: networking.istio.io/v1\nkind: %s\nmetadata: {name: takes, namespace: tenant}\nspec: %s\n", kind, spec))
		})
	}
}

// addPolicies are those of a namespace that nobody has named.
func (a *attackers) addPolicies() {
	a.s.t.Helper()
	tenant, admin := a.tenant(a.s.cluster("cluster-1")), a.s.limited("cluster-1")
	const ratings = "{destinationSelector: [{kubeServiceMatcher: {labels: {app: ratings}}}]"
	for _, o := range []struct {
		kind     schema.GroupVersionResource
		manifest string
	}{
		{kube.Policies("accesspolicies"), "apiVersion: networking.mesh.gloo.solo.io/v1\nkind: AccessPolicy\nspec: " + ratings + "}"},
		{kube.Policies("trafficpolicies"), "apiVersion: networking.mesh.gloo.solo.io/v1\nkind: TrafficPolicy\nspec: " + ratings + ", policy: {requestTimeout: 1ms}}"},
		{kube.Policies("virtualmeshes"), "apiVersion: networking.mesh.gloo.solo.io/v1\nkind: VirtualMesh\nspec: {meshes: [{name: istiod-istio-system-cluster-1, namespace: gloo-mesh}], " +
			"globalAccessPolicy: DISABLED, federation: {hostnameSuffix: com, selectors: [{}]}}"},
		{virtualDestinations, "apiVersion: networking.enterprise.mesh.gloo.solo.io/v1beta1\nkind: VirtualDestination\nspec: {hostname: api.example.com, port: {number: 80}, " +
			"virtualMesh: {name: virtual-mesh, namespace: gloo-mesh}, static: {destinations: [{kubeService: {name: ratings, namespace: bookinfo, clusterName: cluster-1}}]}}"},
	} {
		manifest := o.manifest + "\nmetadata: {name: from-tenant, namespace: tenant}\n"
		a.attempts = append(a.attempts, attempt{
			name: "tenant writes " + o.kind.Resource,
			try:  func(ctx context.Context) error { return tenant.ApplyYAML(ctx, []byte(manifest)) },
			decides: func(ctx context.Context) (string, error) {
				is, err := admin.Get(ctx, o.kind, "tenant", "from-tenant")
				if err != nil {
					return "", err
				}
				if state := field(is, "status", "state"); state != nil && state != "INVALID" {
					return fmt.Sprintf("its state is %v", state), nil
				}
				return "", nil
			},
		})
	}
}

// addAgent has the credential of the agent of a cluster.
func (a *attackers) addAgent(c *local.Cluster) {
	s, files := a.s, c.AgentFiles()
	s.t.Helper()
	s.until("the agent has its credentials", func(context.Context) error {
		_, err := os.Stat(files.Kubeconfig)
		return err
	})
	config, err := clientcmd.BuildConfigFromFlags("", files.Kubeconfig)
	require.NoError(s.t, err)
	// Registering again ends a credential; these attackers steal the next one.
	config.BearerTokenFile, config.WrapTransport = "", func(rt http.RoundTripper) http.RoundTripper {
		return stolen{file: filepath.Join(filepath.Dir(files.Token), "token"), next: rt}
	}
	agent := a.client(config)
	clientset, err := kubernetes.NewForConfig(config)
	require.NoError(s.t, err)
	add := func(name string, try func(ctx context.Context) error) { a.add("agent of "+c.Name()+" "+name, try) }
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: %s}\ntype: %s\ndata: {a: YQ==}\n"
	for at, kind := range map[[2]string]string{
		{"virtual-mesh.gloo-mesh", mgmt}:   snapshot.RootSecretType,
		{"cluster-9", mgmt}:                "solo.io/kubeconfig",
		{"cacerts", "bookinfo"}:            "Opaque",
		{"anything", "istio-system"}:       "Opaque",
		{"cluster-1-token", "gloo-mesh"}:   "kubernetes.io/service-account-token",
		{"istio-ca-secret", "kube-system"}: "Opaque",
	} {
		add("writes Secret "+at[1]+"/"+at[0], func(ctx context.Context) error {
			return agent.ApplyYAML(ctx, fmt.Appendf(nil, secret, at[0], at[1], kind))
		})
	}
	for _, change := range []string{
		`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"evil"}]}}}}`, `{"spec":{"replicas":0}}`,
		`{"metadata":{"labels":{"certificates.mesh.gloo.solo.io/restart-cause":"a"}}}`,
	} {
		add("changes a Deployment: "+change, func(ctx context.Context) error {
			_, err := clientset.AppsV1().Deployments("bookinfo").Patch(ctx, "soak-v1", types.StrategicMergePatchType, []byte(change), metav1.PatchOptions{})
			return err
		})
	}
	add("makes a token of another account", func(ctx context.Context) error {
		_, err := clientset.CoreV1().ServiceAccounts("istio-system").CreateToken(ctx, "istiod", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		return err
	})
	for _, namespace := range []string{mgmt, "kube-system", ""} {
		add("reads Secrets of namespace "+namespace, func(ctx context.Context) error {
			_, err := clientset.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{})
			return err
		})
	}
	add("registers a cluster", func(ctx context.Context) error {
		return agent.ApplyYAML(ctx, []byte("apiVersion: multicluster.solo.io/v1alpha1\nkind: KubernetesCluster\nmetadata: {name: cluster-9, namespace: "+mgmt+"}\nspec: {secretName: cluster-9}\n"))
	})
}

// stolen uses what is in the file of a token now.
type stolen struct {
	file string
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (s stolen) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := os.ReadFile(s.file)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(token))
	return s.next.RoundTrip(r)
}

// addMember is the administrator of cluster-2, who asks for a CA that may sign for the other mesh.
func (a *attackers) addMember() {
	s := a.s
	s.t.Helper()
	namespace, err := kube.Namespace(s.cluster("cluster-2").AgentFiles().Kubeconfig)
	require.NoError(s.t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	require.NoError(s.t, err)
	request, err := x509.CreateCertificateRequest(cryptorand.Reader, &x509.CertificateRequest{
		URIs: []*url.URL{{Scheme: "spiffe", Host: "cluster-1.example", Path: "/ns/istio-system/sa/istiod"}},
	}, key)
	require.NoError(s.t, err)
	text := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}))
	admin := s.limited("cluster-2")
	kind := schema.GroupVersionResource{Group: "certificates.mesh.gloo.solo.io", Version: "v1", Resource: "certificaterequests"}
	documents := fmt.Sprintf(`apiVersion: certificates.mesh.gloo.solo.io/v1
kind: IssuedCertificate
metadata: {name: istiod-istio-system-cluster-2, namespace: %[1]s}
spec:
  hosts: ["spiffe://cluster-1.example/ns/istio-system/sa/istiod"]
  issuedCertificateSecret: {name: cacerts, namespace: istio-system}
---
apiVersion: certificates.mesh.gloo.solo.io/v1
kind: CertificateRequest
metadata: {name: istiod-istio-system-cluster-2, namespace: %[1]s}
spec: {certificateSigningRequest: %[2]s}
`, namespace, text)
	a.attempts = append(a.attempts, attempt{
		name: "administrator of cluster-2 asks for a CA",
		try:  func(ctx context.Context) error { return admin.ApplyYAML(ctx, []byte(documents)) },
		decides: func(ctx context.Context) (string, error) {
			is, err := admin.Get(ctx, kind, namespace, "istiod-istio-system-cluster-2")
			if err != nil {
				return "", err
			}
			if signed := field(is, "status", "signedCertificate"); signed != nil {
				return "it was signed", nil
			}
			return "", nil
		},
	})
}

// add adds an attempt that must be refused.
func (a *attackers) add(name string, try func(ctx context.Context) error) {
	a.attempts = append(a.attempts, attempt{name: name, try: try})
}

// run tries one thing after another until the context ends.
func (a *attackers) run(ctx context.Context) {
	random := rand.New(rand.NewPCG(a.s.limits.seed, 2))
	tick := time.NewTicker(2 * pace)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		one := a.attempts[random.IntN(len(a.attempts))]
		err := one.try(ctx)
		refused := apierrors.IsForbidden(err) || apierrors.IsInvalid(err)
		switch {
		case ctx.Err() != nil:
			return
		case refused && one.decides == nil:
			a.s.tally.count("attacks that were refused")
		case err != nil:
			a.s.tally.count("attacks that no API server took")
		case one.decides == nil:
			a.s.tally.violate("%s", one.name)
		default:
			if what, err := one.decides(ctx); err == nil && what != "" {
				a.s.tally.violate("%s: %s", one.name, what)
			}
			a.s.tally.count("attacks that decide nothing")
		}
	}
}
