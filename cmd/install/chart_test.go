package install

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/engine/golden"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// The Helm chart in the folder chart is made of what `meshctl install` writes: placeholders for
// what flags set become values.

// placeholders are unlike any other text of the manifests. Quantities are printed in their usual form.
var placeholders = strings.NewReplacer(
	"        - --relay-bind\n", "        {{- if .Values.relay.enabled }}\n        - --relay-bind\n",
	"        - --relay-name\n        - placeholder-host\n",
	"        {{- range .Values.relay.hosts }}\n        - --relay-name\n        - {{ . | quote }}\n        {{- end }}\n        {{- end }}\n",
	"        env:\n        - name: POD_IP\n          valueFrom:\n            fieldRef:\n              fieldPath: status.podIP\n",
	"        {{- if .Values.relay.enabled }}\n        env:\n        - name: POD_IP\n          valueFrom:\n            fieldRef:\n              fieldPath: status.podIP\n        {{- end }}\n",
	"        - containerPort: 9900\n          name: relay\n          protocol: TCP\n",
	"        {{- if .Values.relay.enabled }}\n        - containerPort: 9900\n          name: relay\n          protocol: TCP\n        {{- end }}\n",
	"  - ports:\n    - port: relay\n      protocol: TCP\n",
	"  {{- if .Values.relay.enabled }}\n  - ports:\n    - port: relay\n      protocol: TCP\n  {{- end }}\n",
	"type: LoadBalancer", "type: {{ .Values.relay.serviceType }}",
	"placeholder-namespace", "{{ .Release.Namespace }}",
	"image: placeholder/image:0", `image: "{{ .Values.image }}"`,
	"replicas: 4242", "replicas: {{ .Values.replicas }}",
	"cpu: 4242m", "cpu: {{ .Values.resources.cpuRequest | quote }}",
	"memory: 4242Mi", "memory: {{ .Values.resources.memoryRequest | quote }}",
	"memory: 4243Mi", "memory: {{ .Values.resources.memoryLimit | quote }}",
	"      imagePullSecrets:\n      - name: placeholder-secret\n",
	"      {{- with .Values.imagePullSecrets }}\n      imagePullSecrets:\n      {{- range . }}\n      - name: {{ . }}\n      {{- end }}\n      {{- end }}\n",
)

func placeholderOptions() registration.InstallOptions {
	return registration.InstallOptions{
		Namespace: "placeholder-namespace", Image: "placeholder/image:0", Replicas: ptr.To[int32](4242), PullSecrets: []string{"placeholder-secret"},
		Resources:      registration.Resources{CPURequest: "4242m", MemoryRequest: "4242Mi", MemoryLimit: "4243Mi"},
		ServiceMonitor: ptr.To(true), Relay: registration.InstallRelay{Enabled: ptr.To(true), Hosts: []string{"placeholder-host"}},
	}
}

const chart = `# Made by "make golden" of what "meshctl install" writes.
apiVersion: v2
name: meshctl
description: The management plane for many service meshes in many clusters
type: application
version: 0.0.0
kubeVersion: ">=1.30.0-0"
`

// values are the defaults of "meshctl install".
func values() string {
	r := registration.DefaultResources()
	return strings.NewReplacer("REPOSITORY", registration.DefaultRepository, "CPU", r.CPURequest, "REQUEST", r.MemoryRequest, "LIMIT", r.MemoryLimit, "TYPE", registration.DefaultRelayServiceType).Replace(
		`# Image of meshctl, such as REPOSITORY:v1.0.0. Required.
image: ""
# Names of Secrets in the namespace with which to pull the image.
imagePullSecrets: []
# One works, the others stand by.
replicas: 2
resources:
  cpuRequest: CPU
  memoryRequest: REQUEST
  memoryLimit: LIMIT
# Have the Prometheus operator scrape the metrics.
serviceMonitor: false
# Let agents of other clusters dial the management plane: see "meshctl help relay".
relay:
  enabled: false
  # Type of the Service that they dial: LoadBalancer, NodePort or ClusterIP.
  serviceType: TYPE
  # Further DNS names by which they know it.
  hosts: []
# Install and upgrade the custom resource types. They stay when the chart is uninstalled: all
# policies would go with them.
crds: true
`)
}

// manifestsOf are objects as text, and what they are.
func manifestsOf(t *testing.T, options registration.InstallOptions) (objects []*unstructured.Unstructured) {
	t.Helper()
	all, err := registration.InstallManifests(options)
	require.NoError(t, err)
	for _, o := range all {
		text, err := snapshot.YAML(o)
		require.NoError(t, err)
		u := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal(text, &u.Object))
		objects = append(objects, u)
	}
	return objects
}

func TestGoldenChart(t *testing.T) {
	t.Parallel()
	files := map[string]string{"Chart.yaml": chart, "values.yaml": values()}
	var rest, crds strings.Builder
	for _, u := range manifestsOf(t, placeholderOptions()) {
		if u.GetKind() == "Namespace" {
			continue // helm --create-namespace
		}
		out := &rest
		if u.GetKind() == "CustomResourceDefinition" {
			out = &crds
			annotations := u.GetAnnotations()
			annotations["helm.sh/resource-policy"] = "keep"
			u.SetAnnotations(annotations)
		}
		text, err := snapshot.YAML(u.Object)
		require.NoError(t, err)
		require.NotContains(t, string(text), "{{", "it would have to be escaped")
		body := "---\n" + placeholders.Replace(string(text))
		switch {
		case u.GetKind() == "ServiceMonitor":
			body = "{{- if .Values.serviceMonitor }}\n" + body + "{{- end }}\n"
		case u.GetName() == snapshot.RelayService:
			body = "{{- if .Values.relay.enabled }}\n" + body + "{{- end }}\n"
		}
		out.WriteString(body)
	}
	required := "{{- if not .Values.image }}\n{{- fail \"image: set it to an image of meshctl\" }}\n{{- end }}\n"
	files["templates/meshctl.yaml"] = required + rest.String()
	files["templates/crds.yaml"] = "{{- if .Values.crds }}\n" + crds.String() + "{{- end }}\n"
	for name, content := range files {
		require.NotContains(t, content, "4242", name)
		require.NotContains(t, content, "placeholder", name)
		golden.File(t, filepath.Join("chart", name), content)
	}
}

// TestChartIsWhatInstallWrites: helm renders the same objects.
func TestChartIsWhatInstallWrites(t *testing.T) {
	t.Parallel()
	helm, err := filepath.Glob("../../.bin/helm-*")
	require.NoError(t, err)
	if len(helm) == 0 {
		t.Skip("helm is not there: `make test` installs it")
	}
	for name, c := range map[string]struct {
		values  string
		options registration.InstallOptions
	}{
		"defaults": {"image: meshctl/meshctl:v1.0.0", registration.InstallOptions{Image: "meshctl/meshctl:v1.0.0"}},
		"relay": {
			"{image: meshctl:1, relay: {enabled: true}}",
			registration.InstallOptions{Image: "meshctl:1", Relay: registration.InstallRelay{Enabled: ptr.To(true)}},
		},
		"everything": {
			`{relay: {enabled: true, serviceType: NodePort, hosts: [relay.example.com, "2.example"]}, image: "registry.example:5000/meshctl@sha256:00", imagePullSecrets: [a, b], replicas: 3, serviceMonitor: true, resources: {cpuRequest: "1", memoryRequest: 2Gi, memoryLimit: 3Gi}}`,
			registration.InstallOptions{
				Namespace: "mesh", Image: "registry.example:5000/meshctl@sha256:00", PullSecrets: []string{"a", "b"}, Replicas: ptr.To[int32](3), ServiceMonitor: ptr.To(true),
				Resources: registration.Resources{CPURequest: "1", MemoryRequest: "2Gi", MemoryLimit: "3Gi"},
				Relay:     registration.InstallRelay{Enabled: ptr.To(true), ServiceType: "NodePort", Hosts: []string{"relay.example.com", "2.example"}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "values.yaml")
			require.NoError(t, os.WriteFile(file, []byte(c.values), 0o600))
			if c.options.Namespace == "" {
				c.options.Namespace = snapshot.DefaultNamespace
			}
			text, err := exec.CommandContext(t.Context(), helm[0], "template", "meshctl", "chart", "--kube-version", "1.30", "--namespace", c.options.Namespace, "--values", file).Output()
			require.NoError(t, err)
			got := map[string]map[string]any{}
			for _, document := range bytes.Split(text, []byte("\n---\n")) {
				u := &unstructured.Unstructured{}
				require.NoError(t, yaml.Unmarshal(document, &u.Object))
				if len(u.Object) == 0 {
					continue
				}
				annotations := u.GetAnnotations()
				delete(annotations, "helm.sh/resource-policy")
				u.SetAnnotations(annotations)
				got[u.GetKind()+" "+u.GetNamespace()+"/"+u.GetName()] = u.Object
			}
			want := map[string]map[string]any{}
			for _, u := range manifestsOf(t, c.options) {
				if u.GetKind() != "Namespace" {
					want[u.GetKind()+" "+u.GetNamespace()+"/"+u.GetName()] = u.Object
				}
			}
			assert.Equal(t, want, got)
		})
	}
	refused, err := exec.CommandContext(t.Context(), helm[0], "template", "meshctl", "chart", "--kube-version", "1.30").CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(refused), "image: set it")
}
