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
kind: ServiceAccount
metadata: {name: default, namespace: gloo-mesh}
---
apiVersion: v1
kind: Pod
metadata: {name: meshctl-0, namespace: gloo-mesh, labels: {app.kubernetes.io/name: meshctl}, annotations: {team/token: PLANTED-3f9c}}
spec:
  containers: [{name: serve, image: meshctl, env: [{name: PASSWORD, value: PLANTED-3f9c}], args: [serve, PLANTED-3f9c]}]
---
apiVersion: v1
kind: Event
metadata: {name: meshctl-0.1, namespace: gloo-mesh}
involvedObject: {kind: Pod, namespace: gloo-mesh, name: meshctl-0}
reason: Failed
message: "the server answered https://admin:PLANTED-3f9c@db.example.com/: password=PLANTED-3f9c is wrong"
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

// TestRecordingHasNoSecret: what is recorded of a cluster has none of what users put where secrets are
// put, and not the credential with which it was read.
func TestRecordingHasNoSecret(t *testing.T) {
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

	for command, more := range map[string][]string{
		"snapshot": nil,
		"bundle":   {".support/collected.yaml", ".support/check.json", ".support/versions.yaml", ".support/management/pods.yaml", "README.txt"},
	} {
		texts, said := recorded(t, config, command)
		require.Contains(t, texts["cluster-1/deployment.json"], "reviews-v1", "it was read")
		require.Contains(t, texts["cluster-1/configmap.json"], "trustDomain: cluster.local")
		require.Contains(t, texts["cluster-1/service.json"], `"name":"reviews"`)
		require.Contains(t, texts["cluster-1/pod.json"], "reviews-v1-x")
		for _, name := range more {
			require.Contains(t, texts, name)
		}
		for name, text := range texts {
			for what, secret := range map[string]string{"planted": planted, "the credential": credential.Token} {
				assert.NotContains(t, text, secret, "%s: %s in %s", command, what, name)
				assert.NotContains(t, text, base64.StdEncoding.EncodeToString([]byte(secret)), "%s: %s in %s", command, what, name)
			}
		}
		assert.NotContains(t, said, credential.Token)
	}
}

// recorded are the files that a command of meshctl debug records of a cluster, by name, and what it says.
func recorded(t *testing.T, config *rest.Config, command string) (texts map[string]string, said string) {
	t.Helper()
	streams, _, _, errs := cmdutil.TestStreams()
	factory := cmdutil.NewFactory(streams)
	factory.Config = func(string, string) (*rest.Config, error) { return rest.CopyConfig(config), nil }
	factory.Contexts = nil
	file := filepath.Join(t.TempDir(), "recorded.zip")
	cmd := NewCmd(factory, nil)
	cmd.SetArgs([]string{command, "-o", file})
	require.NoError(t, cmd.ExecuteContext(t.Context()), errs.String())

	archive, err := zip.OpenReader(file)
	require.NoError(t, err)
	defer func() { assert.NoError(t, archive.Close()) }()
	texts = map[string]string{}
	for _, f := range archive.File {
		r, err := f.Open()
		require.NoError(t, err)
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		texts[f.Name] = string(data)
	}
	return texts, errs.String()
}
