package istio

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/discovery"
)

// detectors have only that of Istio.
var detectors = discovery.Detectors{Detector()}

const someDigest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestParseSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want settings
		err  string
	}{
		"empty":                        {text: ""},
		"comment only":                 {text: "# nothing\n"},
		"trust domain":                 {text: "trustDomain: a.example", want: settings{trustDomain: "a.example"}},
		"root namespace":               {text: "rootNamespace: istio-config", want: settings{rootNamespace: "istio-config"}},
		"root namespace beside a slip": {text: "rootNamespace: istio-config\ntrustDomain: [a]", want: settings{rootNamespace: "istio-config"}, err: "trustDomain"},
		"aliases": {
			text: "trustDomain: a\ntrustDomainAliases: [c, b, c, \"\"]\ncaCertificates: [{pem: x, trustDomains: [e]}, {trustDomains: [d, e]}]",
			want: settings{trustDomain: "a", aliases: []string{"b", "c"}, peers: []string{"d", "e"}, roots: []string{"x"}},
		},
		"aliases beside a slip":           {text: "trustDomainAliases: [b]\ntrustDomain: [a]", want: settings{aliases: []string{"b"}}, err: "trustDomain"},
		"original name":                   {text: "trust_domain: a.example", want: settings{trustDomain: "a.example"}},
		"smart DNS":                       {text: "defaultConfig:\n  proxyMetadata: {ISTIO_META_DNS_CAPTURE: \"true\"}", want: settings{smartDNS: true}},
		"smart DNS by 1":                  {text: "defaultConfig:\n  proxyMetadata: {ISTIO_META_DNS_CAPTURE: \"1\"}", want: settings{smartDNS: true}},
		"smart DNS off":                   {text: "defaultConfig:\n  proxyMetadata: {ISTIO_META_DNS_CAPTURE: \"false\"}"},
		"an empty outboundTrafficPolicy":  {text: "outboundTrafficPolicy: {}", want: settings{outbound: "REGISTRY_ONLY"}},
		"outboundTrafficPolicy ALLOW_ANY": {text: "outboundTrafficPolicy: {mode: ALLOW_ANY}"},
		"discoverySelectors": {
			text: "discoverySelectors: [{matchLabels: {a: b}, matchExpressions: [{key: c, operator: Exists}]}]",
			want: settings{selectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"a": "b"}, MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "c", Operator: "Exists"}}}}},
		},
		"a wrong discoverySelector": {text: "discoverySelectors: [{matchLabels: {a: b}}, {matchExpressions: [{key: c, operator: Near}]}]"},
		"enableAutoMtls":            {text: "enableAutoMtls: true"},
		"no enableAutoMtls":         {text: "enableAutoMtls: false", want: settings{plain: true}},
		"defaultTrafficPolicy":      {text: "defaultTrafficPolicy: {outlierDetection: {}, connectionPool: {}}", want: settings{defaults: []string{"connectionPool", "outlierDetection"}}},
		"unknown field":             {text: "trustDomain: a.example\nnextYear: {x: [1]}", want: settings{trustDomain: "a.example"}},
		"unknown enum":              {text: "trustDomain: a.example\naccessLogEncoding: HOLOGRAM", want: settings{trustDomain: "a.example"}},
		"wrong type beside":         {text: "trustDomain: a.example\nconnectTimeout: [1]", want: settings{trustDomain: "a.example"}, err: "unexpected token ["},
		"bare boolean": {
			text: "defaultConfig:\n  proxyMetadata: {ISTIO_META_DNS_CAPTURE: true}",
			want: settings{smartDNS: true}, err: "invalid value for string field value: true",
		},
		"wrong type":             {text: "trustDomain: [a]", err: "invalid value for string field trustDomain: ["},
		"a list":                 {text: "- a", err: "unexpected token ["},
		"not YAML":               {text: "trustDomain: \"a", err: "not YAML"},
		"a tab":                  {text: "a:\n\tb: 1", err: "not YAML"},
		"key twice, as in Istio": {text: "trustDomain: a\ntrustDomain: b", want: settings{trustDomain: "b"}},
		"both halves":            {text: "trustDomain: [a]\ndefaultConfig: {proxyMetadata: {ISTIO_META_DNS_CAPTURE: \"true\"}}", want: settings{smartDNS: true}, err: "trustDomain"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseSettings(c.text)
			assert.Equal(t, c.want, got)
			if c.err == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.err)
			assert.NotContains(t, err.Error(), "\u00a0")
		})
	}
}

func TestPilotOf(t *testing.T) {
	t.Parallel()
	deployment := func(name, label string, containers ...corev1.Container) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}}
		d.Spec.Template.Spec.Containers = containers
		if label != "" {
			d.Spec.Template.Labels = map[string]string{"app": label}
		}
		return d
	}
	logs := corev1.Container{Name: "logs", Image: "fluent:1"}
	for name, c := range map[string]struct {
		deployment *appsv1.Deployment
		want       string
	}{
		"label and container name": {deployment("anything", "istiod", logs, corev1.Container{Name: "discovery", Image: "corp/control:1"}), "corp/control:1"},
		"label and image":          {deployment("anything", "istiod", logs, corev1.Container{Name: "x", Image: "corp/pilot:1"}), "corp/pilot:1"},
		"label only":               {deployment("anything", "istiod", corev1.Container{Name: "x", Image: "corp/control:1"}), "corp/control:1"},
		"label without containers": {deployment("istiod", "istiod"), ""},
		"name and mirrored image":  {deployment("istiod-1-31", "", logs, corev1.Container{Name: "x", Image: "corp:5000/m/pilot@" + someDigest}), "corp:5000/m/pilot@" + someDigest},
		"Istio's own image":        {deployment("control-plane", "", corev1.Container{Name: "x", Image: "registry.example/istio/pilot:1"}), "registry.example/istio/pilot:1"},
		"name only":                {deployment("istiod", "", corev1.Container{Name: "x", Image: "nginx:1"}), ""},
		"another pilot":            {deployment("ship", "", corev1.Container{Name: "x", Image: "corp/pilot:1"}), ""},
		"an autopilot":             {deployment("istiod", "", corev1.Container{Name: "x", Image: "corp/autopilot:1"}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := pilotOf(c.deployment)
			if c.want == "" {
				assert.Nil(t, got)
				return
			}
			require.NotNil(t, got)
			assert.Equal(t, c.want, got.Image)
		})
	}
}

func TestSidecarOf(t *testing.T) {
	t.Parallel()
	app := corev1.Container{Name: "app", Image: "corp/app:1"}
	proxy := corev1.Container{Name: "istio-proxy", Image: "registry.example/istio/proxyv2:1.31.1-distroless"}
	with := func(c corev1.Container, change func(*corev1.Container)) corev1.Container { change(&c); return c }
	always := func(c *corev1.Container) { c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways) }
	for name, c := range map[string]struct {
		containers, init []corev1.Container
		want             bool
	}{
		"no sidecar":            {containers: []corev1.Container{app}},
		"sidecar":               {containers: []corev1.Container{app, proxy}, want: true},
		"gateway":               {containers: []corev1.Container{proxy}, want: true},
		"by name only":          {containers: []corev1.Container{app, {Name: "istio-proxy", Image: "corp/envoy@" + someDigest}}, want: true},
		"by image only":         {containers: []corev1.Container{app, {Name: "mesh", Image: "corp:5000/m/istio-proxyv2:1"}}, want: true},
		"native sidecar":        {containers: []corev1.Container{app}, init: []corev1.Container{with(proxy, always)}, want: true},
		"istio-init only":       {containers: []corev1.Container{app}, init: []corev1.Container{with(proxy, func(c *corev1.Container) { c.Name = "istio-init" })}},
		"init that ends":        {containers: []corev1.Container{app}, init: []corev1.Container{proxy}},
		"ztunnel":               {containers: []corev1.Container{{Name: "istio-proxy", Image: "registry.example/istio/ztunnel:1.31.1"}}},
		"a namesake's image":    {containers: []corev1.Container{{Name: "mesh", Image: "corp/notproxyv2:1"}}},
		"image is no reference": {containers: []corev1.Container{{Name: "mesh", Image: "proxyv2 "}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, got := sidecarOf(nil, &corev1.Pod{Spec: corev1.PodSpec{Containers: c.containers, InitContainers: c.init}})
			assert.Equal(t, c.want, got)
		})
	}
}

func TestRevisionOf(t *testing.T) {
	t.Parallel()
	const rev, status = "istio.io/rev", "sidecar.istio.io/status"
	for name, c := range map[string]struct {
		annotations, labels map[string]string
		want                string
		requested           bool
	}{
		"silent":                  {requested: true},
		"annotation":              {annotations: map[string]string{rev: "a", status: `{"revision":"b"}`}, labels: map[string]string{rev: "c"}, want: "a"},
		"injection status":        {annotations: map[string]string{status: `{"revision":"b"}`}, labels: map[string]string{rev: "c"}, want: "b"},
		"status without revision": {annotations: map[string]string{status: `{"containers":["istio-proxy"]}`}, labels: map[string]string{rev: "c"}, want: "c", requested: true},
		"status is no JSON":       {annotations: map[string]string{status: `injected`}, labels: map[string]string{rev: "c"}, want: "c", requested: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, requested := revisionOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: c.annotations, Labels: c.labels}})
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.requested, requested)
		})
	}
}

func TestIstiodRevision(t *testing.T) {
	t.Parallel()
	pilot := &corev1.Container{Env: []corev1.EnvVar{{Name: "REVISION", Value: "env"}}}
	d := &appsv1.Deployment{}
	assert.Equal(t, "default", istiodRevision(d, &corev1.Container{}))
	assert.Equal(t, "env", istiodRevision(d, pilot))
	d.Labels = map[string]string{"istio.io/rev": "own"}
	assert.Equal(t, "own", istiodRevision(d, pilot))
	d.Spec.Template.Labels = map[string]string{"istio.io/rev": "pods"}
	assert.Equal(t, "pods", istiodRevision(d, pilot))
}

func TestReadConfigMap(t *testing.T) {
	t.Parallel()
	data := map[string]string{"mesh": "m", "root-cert.pem": "r", "meshNetworks": "n", "other": "o"}
	for name, want := range map[string]map[string]string{
		"istio": {"mesh": "m", "meshNetworks": "n"}, "istio-1-31": {"mesh": "m", "meshNetworks": "n"}, "istio-ca-root-cert": {"root-cert.pem": "r"},
		"my-settings": {"mesh": "m", "meshNetworks": "n"}, // of which a control plane has the name
	} {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
		assert.Equal(t, want, detectors.ReadConfigMap(cm), name)
	}
	assert.Nil(t, detectors.ReadConfigMap(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "istio"}, Data: map[string]string{"": "m"}}))
	huge := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: rootsName}, Data: map[string]string{rootsKey: strings.Repeat("r", 2*maxRootsText)},
	}
	_, err := fingerprints(detectors.ReadConfigMap(huge)[rootsKey])
	assert.ErrorContains(t, err, "more than 65536 bytes", "what is cut off is not taken for the whole")
}
