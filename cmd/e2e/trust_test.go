package e2e

import (
	"context"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/certs/verify"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// sharedTrust joins both meshes with a common root.
const sharedTrust = `
apiVersion: networking.mesh.gloo.solo.io/v1
kind: VirtualMesh
metadata: {name: virtual-mesh, namespace: gloo-mesh}
spec:
  meshes:
  - {name: istiod-istio-system-cluster-1, namespace: gloo-mesh}
  - {name: istiod-istio-system-cluster-2, namespace: gloo-mesh}
  mtlsConfig:
    autoRestartPods: true
    shared:
      rootCertificateAuthority: {generated: {rsaKeySizeBytes: 2048}}
      intermediateCertOptions: {rsaKeySizeBytes: 2048}
  federation: {selectors: [{}]}
`

// usersTrust is the same VirtualMesh with the root that userRoot stores.
var usersTrust = strings.Replace(sharedTrust, "generated: {rsaKeySizeBytes: 2048}", "secret: {name: "+usersRoot+", namespace: gloo-mesh}", 1)

const usersRoot = "corporate-root"

// limitedTrust is the same VirtualMesh, whose gateways alone trust each other.
var limitedTrust = strings.Replace(sharedTrust, `    autoRestartPods: true
    shared:
      rootCertificateAuthority: {generated: {rsaKeySizeBytes: 2048}}
      intermediateCertOptions: {rsaKeySizeBytes: 2048}
`, "    limited: {}\n", 1)

// TestTrust: two meshes with a root each get a common one, and exchange it for another.
// Workloads of one can verify those of the other from then on, at every moment. Then each
// goes back to its own, and their gateways get certificates.
func TestTrust(t *testing.T) {
	shard.Only(t, shard.Clusters)
	t.Parallel()
	w := newEnvironment(t, withBookinfo)
	for _, cluster := range []string{"cluster-1", "cluster-2"} {
		w.must("cluster", "register", cluster, "--remote-context", cluster, "--mgmt-context", "cluster-1")
	}
	var agents []*process
	for _, c := range w.clusters {
		w.keepIstiod(c)
		agents = append(agents, w.startAgent(c))
	}
	said := func() (out []string) {
		for _, agent := range agents {
			out = append(out, agent.log.String())
		}
		return out
	}
	w.startServe()
	w.apply("cluster-1", []byte(sharedTrust))
	first := w.awaitTrust("")
	w.awaitState("virtualmeshes", "virtual-mesh", "ACCEPTED")
	w.until("the two verify each other", w.eachOther)

	watched := w.watchTrust()
	w.must("trust", "rotate", "virtual-mesh", "--yes", "--context", "cluster-1")
	second := w.awaitTrust(first)
	assert.NotEqual(t, first, second)

	// The user has a root, and then another one.
	secret := w.userRoot(pki.RootCertKey, pki.RootKeyKey)
	w.apply("cluster-1", []byte(usersTrust))
	assert.Equal(t, secret, w.awaitTrust(second))
	second, secret = secret, w.userRoot(pki.TLSCertKey, pki.TLSKeyKey) // as cert-manager writes it
	assert.Equal(t, secret, w.awaitTrust(second))
	second = secret
	asked := watched()
	t.Logf("three rotations: the two verified each other %d times", asked)
	assert.Greater(t, asked, 30)
	shown := w.must("trust", "show", "virtual-mesh", "--context", "cluster-1").stdout
	assert.Contains(t, shown, "2 of 2 meshes trust root "+second[:16])
	w.assertNoKeys(said()...) // while both have their keys

	w.apply("cluster-1", []byte(limitedTrust))
	third := w.awaitTrust(second)
	w.until("each mesh is back at its own root", func(context.Context) error {
		for _, c := range w.clusters {
			if err := w.hasLeft(c); err != nil {
				return err
			}
		}
		return nil
	})
	shown = w.must("trust", "show", "virtual-mesh", "--context", "cluster-1").stdout
	assert.Contains(t, shown, "2 of 2 meshes trust root "+third[:16])
	w.assertNoKeys(said()...)
	w.leaves(w.clusters[1], third)
}

// userRoot stores a new root of the user's in a Secret, under these keys, and returns its
// fingerprint.
func (w *environment) userRoot(certKey, keyKey string) string {
	w.t.Helper()
	key, err := pki.NewECDSAKey(rand.Reader, elliptic.P256())
	require.NoError(w.t, err)
	root, err := pki.NewRoot(rand.Reader, time.Now(), key, pki.Subject{Organization: "Example Corp"}, pki.Life{Lasts: 365 * 24 * time.Hour, Backdate: time.Hour})
	require.NoError(w.t, err)
	text, err := key.PEM()
	require.NoError(w.t, err)
	w.apply("cluster-1", fmt.Appendf(nil, `
apiVersion: v1
kind: Secret
metadata: {name: %s, namespace: gloo-mesh}
data: {%s: %s, %s: %s}
`, usersRoot, certKey, base64.StdEncoding.EncodeToString(root.Chain().PEM()), keyKey, base64.StdEncoding.EncodeToString(text)))
	return pki.Fingerprint(root.Chain()[0])
}

// hasLeft is an error as long as istiod has a CA that the agent gave it.
func (w *environment) hasLeft(c *local.Cluster) error {
	_, err := w.clients[c.Name()].Get(w.t.Context(), core("secrets"), "istio-system", "cacerts")
	if err == nil {
		return fmt.Errorf("%s: Secret cacerts is still there", c.Name())
	}
	if !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// leaves deregisters a cluster: its mesh goes back to the root that it had, and nothing of
// the agent remains.
func (w *environment) leaves(c *local.Cluster, root string) {
	w.t.Helper()
	out := w.must("cluster", "deregister", c.Name(), "--remote-context", c.Name(), "--mgmt-context", "cluster-1", "--yes")
	w.t.Logf("%s%s", out.stderr, out.stdout)
	require.NoError(w.t, w.hasLeft(c))
	_, err := w.clients[c.Name()].Get(w.t.Context(), core("secrets"), "istio-system", snapshot.GatewaySecret)
	assert.True(w.t, apierrors.IsNotFound(err), "%v", err)
	config, err := w.clients[c.Name()].Get(w.t.Context(), core("configmaps"), "istio-system", "istio-ca-root-cert")
	require.NoError(w.t, err)
	text, _ := field(config, "data", "root-cert.pem").(string)
	roots, err := pki.ReadBundle([]byte(text))
	require.NoError(w.t, err)
	assert.NotContains(w.t, roots.Fingerprints(), root)
	for _, gvr := range []schema.GroupVersionResource{core("serviceaccounts"), core("secrets"), certificates("certificaterequests"), certificates("issuedcertificates")} {
		left, err := w.clients[c.Name()].List(w.t.Context(), gvr, agents(c.Name()))
		if apierrors.IsNotFound(err) {
			continue
		}
		require.NoError(w.t, err)
		for i := range left {
			assert.Equal(w.t, "default", left[i].GetName(), gvr.Resource)
		}
	}
}

// keepIstiod is the kubelet of istiod until the test ends.
func (w *environment) keepIstiod(c *local.Cluster) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Kubelet(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		assert.NoError(w.t, <-ended)
	})
}

// startAgent starts `meshctl agent` for a cluster, outside of it, with the account that the registration made and more flags.
func (w *environment) startAgent(c *local.Cluster, flags ...string) *process {
	w.t.Helper()
	files := c.AgentFiles()
	w.until("the agent has its credentials", func(context.Context) error {
		_, err := os.Stat(files.Kubeconfig)
		return err
	})
	namespace, err := kube.Namespace(files.Kubeconfig)
	require.NoError(w.t, err)
	return w.start("meshctl agent of "+c.Name(), append([]string{"agent", "--kubeconfig", files.Kubeconfig, "--namespace", namespace, "--istiod-address", c.Istiod(),
		"--token-file", files.Token, "--cluster-id", c.Name(), "--health-bind", sandboxtest.Address(w.t), "--log-level", "debug"}, flags...)...)
}

// awaitTrust waits until the VirtualMesh has another root than before, and returns it.
func (w *environment) awaitTrust(before string) (root string) {
	w.t.Helper()
	last := ""
	w.until("the trust is established", func(ctx context.Context) error {
		vm, err := w.clients["cluster-1"].Get(ctx, kube.Policies("virtualmeshes"), mgmt, "virtual-mesh")
		if err != nil {
			return err
		}
		root, _ = field(vm, "status", "trust", "root").(string)
		if now := fmt.Sprint(field(vm, "status", "trust", "stage"), " ", field(vm, "status", "trust", "message")); now != last {
			w.t.Log(time.Now().Format(time.TimeOnly), now)
			last = now
		}
		if root == before || !strings.HasPrefix(last, "ESTABLISHED") && !strings.Contains(last, "no member uses any other root") {
			return errors.New(last)
		}
		return nil
	})
	return root
}

// watchTrust lets the clusters verify each other all the time. The function that it
// returns ends that, and says how often it was done.
func (w *environment) watchTrust() (end func() int) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	asked := 0
	running.Go(func() {
		for ctx.Err() == nil {
			switch err := w.eachOther(ctx); {
			case err == nil:
				asked++
			case ctx.Err() == nil && !errors.Is(err, errStarting):
				assert.NoError(w.t, err, time.Now().Format(time.TimeOnly))
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	return func() int {
		cancel()
		running.Wait()
		return asked
	}
}

// errStarting: an istiod does not listen; workloads keep what they have.
var errStarting = errors.New("an istiod is starting")

// eachOther gets a certificate from each istiod, as a sidecar does, and verifies it with
// the roots that the other one hands out.
func (w *environment) eachOther(ctx context.Context) error {
	answers := make([]*verify.Answer, len(w.clusters))
	for i, c := range w.clusters {
		config, err := w.clients[c.Name()].Get(ctx, core("configmaps"), "istio-system", "istio-ca-root-cert")
		if err != nil {
			return err
		}
		text, _ := field(config, "data", "root-cert.pem").(string)
		roots, err := pki.ReadBundle([]byte(text))
		if err != nil {
			return err
		}
		secret, err := w.clients[c.Name()].Get(ctx, core("secrets"), "istio-system", "cacerts")
		if err != nil {
			return err
		}
		encoded, _ := field(secret, "data", "root-cert.pem").(string)
		ahead, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return err
		}
		more, err := pki.ReadBundle(ahead)
		if err != nil {
			return err
		}
		answers[i], err = verify.Ask(ctx, time.Now(), verify.Server{
			Address: c.Istiod(), Names: []string{"istiod.istio-system.svc"}, Roots: roots.Union(more), TokenFile: c.AgentFiles().Token, ClusterID: c.Name(),
		})
		if err != nil {
			if strings.Contains(err.Error(), "connection refused") {
				return errStarting
			}
			return fmt.Errorf("%s: %w", c.Name(), err)
		}
	}
	for i, a := range answers {
		for j, b := range answers {
			if err := pki.Verify(a.Chain, b.Bundle, time.Now(), pki.Want{Usage: pki.ForWorkload}); err != nil {
				return fmt.Errorf("a certificate of %s in %s: %w", w.clusters[i].Name(), w.clusters[j].Name(), err)
			}
		}
	}
	return nil
}

// asksForCertificates has what is asked of the agent of a cluster written, and a request
// signed as an agent makes it.
func (w *environment) asksForCertificates(cluster string) {
	w.t.Helper()
	w.apply("cluster-1", []byte(sharedTrust))
	name := "istiod-istio-system-" + cluster
	var hosts []string
	w.until("the agent is asked for a certificate", func(ctx context.Context) error {
		if _, err := w.clients[cluster].Get(ctx, certificates("podbouncedirectives"), agents(cluster), name); err != nil {
			return err
		}
		asked, err := w.clients[cluster].Get(ctx, certificates("issuedcertificates"), agents(cluster), name)
		if err == nil {
			hosts, _, err = unstructured.NestedStringSlice(asked.Object, "spec", "hosts")
		}
		return err
	})
	key, err := pki.NewECDSAKey(rand.Reader, elliptic.P256())
	require.NoError(w.t, err)
	csr, err := pki.NewRequest(rand.Reader, key, "Istio", hosts)
	require.NoError(w.t, err)
	w.apply(cluster, fmt.Appendf(nil, `
apiVersion: certificates.mesh.gloo.solo.io/v1
kind: CertificateRequest
metadata: {name: %s, namespace: %s}
spec: {certificateSigningRequest: %s}
`, name, agents(cluster), base64.StdEncoding.EncodeToString(csr)))
	w.until("the request is signed", func(ctx context.Context) error {
		request, err := w.clients[cluster].Get(ctx, certificates("certificaterequests"), agents(cluster), name)
		if err == nil && field(request, "status", "state") != "FINISHED" {
			err = fmt.Errorf("status: %v", field(request, "status"))
		}
		return err
	})
	w.delete(cluster, certificates("certificaterequests"), agents(cluster), name)
}

func certificates(plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "certificates.mesh.gloo.solo.io", Version: "v1", Resource: plural}
}
