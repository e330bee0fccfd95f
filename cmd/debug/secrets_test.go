package debug

import (
	"archive/zip"
	"encoding/base64"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/registration"
)

// planted is what stands wherever somebody may have put a secret.
const planted = "PLANTED-3f9c"

// secrets are objects as users have them, with secrets in Secrets, in environments and arguments, in
// ConfigMaps, and in the annotations in which kubectl and Helm keep what was applied.
const secrets = `
apiVersion: v1
kind: Namespace
metadata: {name: istio-system, annotations: {kubectl.kubernetes.io/last-applied-configuration: PLANTED-3f9c}}
---
apiVersion: v1
kind: Namespace
metadata: {name: bookinfo, annotations: {team/token: PLANTED-3f9c}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: bookinfo}
---
apiVersion: v1
kind: Secret
metadata: {name: cacerts, namespace: istio-system}
stringData: {ca-key.pem: PLANTED-3f9c, root-cert.pem: PLANTED-3f9c}
---
apiVersion: v1
kind: Secret
metadata: {name: password, namespace: bookinfo}
stringData: {password: PLANTED-3f9c}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: istio, namespace: istio-system, annotations: {kubectl.kubernetes.io/last-applied-configuration: PLANTED-3f9c}}
data:
  mesh: |
    trustDomain: cluster.local
    extensionProviders:
    - name: tracer
      opentelemetry: {service: tracer, port: 443, http: {path: /v1, headers: [{name: authorization, value: PLANTED-3f9c}]}}
  token: PLANTED-3f9c
---
apiVersion: v1
kind: ConfigMap
metadata: {name: application, namespace: bookinfo}
data: {password: PLANTED-3f9c}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: istiod, namespace: istio-system, labels: {app: istiod, istio.io/rev: default}, annotations: {kubectl.kubernetes.io/last-applied-configuration: PLANTED-3f9c}}
spec:
  selector: {matchLabels: {app: istiod}}
  template:
    metadata: {labels: {app: istiod, istio.io/rev: default}, annotations: {vault/token: PLANTED-3f9c}}
    spec:
      serviceAccountName: istiod
      containers:
      - name: discovery
        image: "docker.io/istio/pilot:1.31.1"
        args: [discovery, --token=PLANTED-3f9c]
        env: [{name: REVISION, value: default}, {name: CA_PASSWORD, value: PLANTED-3f9c}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: reviews-v1, namespace: bookinfo, labels: {app: reviews}, annotations: {kubectl.kubernetes.io/last-applied-configuration: PLANTED-3f9c}}
spec:
  selector: {matchLabels: {app: reviews}}
  template:
    metadata: {labels: {app: reviews}, annotations: {vault/token: PLANTED-3f9c}}
    spec:
      initContainers: [{name: init, image: init, command: [sh, -c, PLANTED-3f9c]}]
      containers:
      - name: reviews
        image: reviews
        args: [--password=PLANTED-3f9c]
        env: [{name: PASSWORD, value: PLANTED-3f9c}]
        livenessProbe: {httpGet: {path: /, port: 80, httpHeaders: [{name: Authorization, value: PLANTED-3f9c}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: reviews-v1-x, namespace: bookinfo, labels: {app: reviews}, annotations: {kubectl.kubernetes.io/last-applied-configuration: PLANTED-3f9c}}
spec:
  containers:
  - {name: reviews, image: reviews, env: [{name: PASSWORD, value: PLANTED-3f9c}], args: [PLANTED-3f9c]}
  - {name: istio-proxy, image: "docker.io/istio/proxyv2:1.31.1", env: [{name: PASSWORD, value: PLANTED-3f9c}, {name: ISTIO_META_NODE, value: PLANTED-3f9c}]}
---
apiVersion: v1
kind: Service
metadata: {name: reviews, namespace: bookinfo, annotations: {discovery.mesh.gloo.solo.io/enabled: "true", kubectl.kubernetes.io/last-applied-configuration: PLANTED-3f9c}}
spec:
  selector: {app: reviews}
  ports: [{name: http, port: 9080}]
---
apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: patient, namespace: gloo-mesh, annotations: {kubectl.kubernetes.io/last-applied-configuration: PLANTED-3f9c}}
spec: {policy: {requestTimeout: 1s}}
`

// TestSnapshotHasNoSecret: what is recorded of a cluster has none of what users put where secrets are
// put, and not the credential with which it was read.
func TestSnapshotHasNoSecret(t *testing.T) {
	t.Parallel()
	config, err := sandboxtest.APIServers(t, 1)[0].Config()
	require.NoError(t, err)
	_, err = registration.Register(t.Context(), registration.Options{Name: "cluster-1", RemoteConfig: config, MgmtConfig: config})
	require.NoError(t, err)
	for manifest := range strings.SplitSeq(secrets, "---\n") {
		sandboxtest.Apply(t, config, []byte(manifest))
	}
	credential, _, err := cluster.ParseSecret(sandboxtest.Secret(t, config, cluster.DefaultNamespace, "cluster-1"))
	require.NoError(t, err)
	require.NotEmpty(t, credential.Token)

	streams, _, _, said := cmdutil.TestStreams()
	factory := cmdutil.NewFactory(streams)
	factory.Config = func(string, string) (*rest.Config, error) { return rest.CopyConfig(config), nil }
	factory.Contexts = nil
	file := filepath.Join(t.TempDir(), "snapshot.zip")
	cmd := NewCmd(factory, nil)
	cmd.SetArgs([]string{"snapshot", "-o", file})
	require.NoError(t, cmd.ExecuteContext(t.Context()), said.String())

	archive, err := zip.OpenReader(file)
	require.NoError(t, err)
	defer func() { assert.NoError(t, archive.Close()) }()
	texts := map[string]string{}
	for _, f := range archive.File {
		r, err := f.Open()
		require.NoError(t, err)
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		texts[f.Name] = string(data)
	}
	require.Contains(t, texts["cluster-1/deployment.json"], "reviews-v1", "it was read")
	require.Contains(t, texts["cluster-1/configmap.json"], "trustDomain: cluster.local")
	require.Contains(t, texts["cluster-1/service.json"], `"name":"reviews"`)
	require.Contains(t, texts["cluster-1/pod.json"], "reviews-v1-x")
	for name, text := range texts {
		for what, secret := range map[string]string{"planted": planted, "the credential": credential.Token} {
			assert.NotContains(t, text, secret, "%s in %s", what, name)
			assert.NotContains(t, text, base64.StdEncoding.EncodeToString([]byte(secret)), "%s in %s", what, name)
		}
	}
	assert.NotContains(t, said.String(), credential.Token)
}
