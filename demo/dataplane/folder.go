package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	istioNamespace = "istio-system"
	// proxyName is the container of a sidecar or a gateway.
	proxyName = "istio-proxy"
	// istiodName is what istiod's certificate is issued for.
	istiodName = "istiod.istio-system.svc"
)

var getOptions = metav1.GetOptions{}

// proxyContainer finds the proxy of a pod, which may be an init container that
// keeps running.
func proxyContainer(spec *corev1.Pod) *corev1.Container {
	for _, containers := range [][]corev1.Container{spec.Spec.Containers, spec.Spec.InitContainers} {
		for i := range containers {
			if containers[i].Name == proxyName {
				return &containers[i]
			}
		}
	}
	return nil
}

// isGateway reports whether the pod's proxy is a gateway (`proxy router`).
func isGateway(spec *corev1.Pod) bool {
	args := proxyContainer(spec).Args
	return len(args) > 1 && args[1] == "router"
}

// workloadName is the name of the Deployment or other controller of a pod.
func workloadName(spec *corev1.Pod) string {
	for _, owner := range spec.OwnerReferences {
		if owner.Kind == "ReplicaSet" {
			return strings.TrimSuffix(owner.Name, "-"+spec.Labels["pod-template-hash"])
		}
		return owner.Name
	}
	return spec.Name
}

// appPorts lists the ports of the application's containers. A port whose name
// begins with tcp serves plain TCP; all others serve HTTP and gRPC.
func appPorts(spec *corev1.Pod) (http, tcp string) {
	var lists [2][]string
	for _, c := range spec.Spec.Containers {
		if c.Name == proxyName {
			continue
		}
		for _, p := range c.Ports {
			kind := 0
			if strings.HasPrefix(p.Name, "tcp") {
				kind = 1
			}
			lists[kind] = append(lists[kind], strconv.Itoa(int(p.ContainerPort)))
		}
	}
	return strings.Join(lists[0], ","), strings.Join(lists[1], ",")
}

// tokenFile is where the agent reads the pod's token, each time that it needs it.
const tokenFile = "var/run/secrets/tokens/istio-token"

// meshSettings are those of a mesh that agents need.
type meshSettings struct {
	TrustDomain   string `json:"trustDomain"`
	DefaultConfig struct {
		ProxyMetadata map[string]any `json:"proxyMetadata"`
	} `json:"defaultConfig"`
}

// mesh reads the key mesh of ConfigMap istio, as a pod has it that starts now.
func (c *cluster) mesh(ctx context.Context) (text string, settings meshSettings, err error) {
	config, err := c.client.CoreV1().ConfigMaps(istioNamespace).Get(ctx, "istio", getOptions)
	if err != nil {
		return "", settings, err
	}
	text = config.Data["mesh"]
	if err := yaml.Unmarshal([]byte(text), &settings); err != nil {
		return "", settings, fmt.Errorf("ConfigMap istio: %w", err)
	}
	return text, settings, nil
}

// writeFolder writes the files that the kubelet mounts into a container of a
// proxy. The agent's paths are relative to its working directory.
func (p *pod) writeFolder(ctx context.Context, spec *corev1.Pod, mesh string) error {
	root, err := p.cluster.client.CoreV1().ConfigMaps(spec.Namespace).Get(ctx, "istio-ca-root-cert", getOptions)
	if err != nil {
		return err
	}
	files := map[string]string{
		"var/run/secrets/istio/root-cert.pem":   root.Data["root-cert.pem"],
		"etc/istio/pod/labels":                  downward(spec.Labels),
		"etc/istio/pod/annotations":             downward(spec.Annotations),
		"etc/istio/config/mesh":                 mesh,
		"etc/istio/proxy/.keep":                 "",
		"var/lib/istio/data/.keep":              "",
		"var/run/secrets/credential-uds/.keep":  "",
		"var/run/secrets/workload-spiffe-uds/.": "",
	}
	for name, content := range files {
		path := filepath.Join(p.folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if strings.HasSuffix(name, "/.") {
			continue
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return err
		}
	}
	if err := os.MkdirAll("logs", 0o700); err != nil {
		return err
	}
	return p.writeToken(ctx, spec)
}

// tokenLifetime is that of a pod's token, tokenEvery the time between two of them,
// and tokenAgain that until another try if there is none.
const (
	tokenLifetime = 12 * time.Hour
	tokenEvery    = time.Hour
	tokenAgain    = time.Minute
)

// renewToken replaces the pod's token when it is time to.
func (p *pod) renewToken(ctx context.Context) {
	if time.Now().Before(p.renewAt) {
		return
	}
	if err := p.writeToken(ctx, p.object()); err != nil {
		log.Printf("pod %s: renewing its token: %v", p, err)
		p.renewAt = time.Now().Add(tokenAgain)
	}
}

// writeToken replaces the pod's token.
func (p *pod) writeToken(ctx context.Context, spec *corev1.Pod) error {
	token, err := p.token(ctx, spec)
	if err != nil {
		return err
	}
	path := filepath.Join(p.folder, tokenFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	// The agent may read it meanwhile.
	if err := os.WriteFile(path+".new", []byte(token), 0o600); err != nil {
		return err
	}
	p.renewAt = time.Now().Add(cmp.Or(time.Duration(p.node.TokenSeconds)*time.Second, tokenEvery))
	return os.Rename(path+".new", path)
}

// token requests a token that only istiod's CA accepts, bound to the pod.
func (p *pod) token(ctx context.Context, spec *corev1.Pod) (string, error) {
	seconds := int64(tokenLifetime / time.Second)
	answer, err := p.cluster.client.CoreV1().ServiceAccounts(spec.Namespace).CreateToken(ctx, spec.Spec.ServiceAccountName,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			Audiences: []string{"istio-ca"}, ExpirationSeconds: &seconds,
			BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: spec.Name, UID: spec.UID},
		}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token of service account %s: %w", spec.Spec.ServiceAccountName, err)
	}
	return answer.Status.Token, nil
}

// downward writes labels or annotations as the downward API does.
func downward(values map[string]string) string {
	var lines []string
	for key, value := range values {
		lines = append(lines, fmt.Sprintf("%s=%q\n", key, value))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// agentArguments are those of the container, with Istio's template for Envoy's
// configuration.
func (p *pod) agentArguments(spec *corev1.Pod) []string {
	arguments := []string{"agent"}
	for _, a := range proxyContainer(spec).Args {
		arguments = append(arguments, strings.ReplaceAll(a, "$(POD_NAMESPACE)", spec.Namespace))
	}
	return append(arguments, "--templateFile="+p.node.Bootstrap)
}

// agentEnvironment is the environment of the container, with what is different
// outside of a container.
func (p *pod) agentEnvironment(spec *corev1.Pod, settings meshSettings) ([]string, error) {
	values := map[string]string{}
	for _, v := range proxyContainer(spec).Env {
		if v.ValueFrom == nil {
			values[v.Name] = v.Value
		} else if v.ValueFrom.FieldRef != nil {
			values[v.Name] = field(spec, v.ValueFrom.FieldRef.FieldPath)
		}
	}
	config := map[string]any{}
	if err := json.Unmarshal([]byte(values["PROXY_CONFIG"]), &config); err != nil && values["PROXY_CONFIG"] != "" {
		return nil, fmt.Errorf("its variable PROXY_CONFIG: %w", err)
	}
	// The configuration of an injected proxy has it already; for a gateway's, the
	// variable replaces the mesh's configuration.
	if config["proxyMetadata"] == nil {
		config["proxyMetadata"] = settings.DefaultConfig.ProxyMetadata
	}
	config["discoveryAddress"] = fmt.Sprintf("%s:%d", p.cluster.network.router, istiodPort)
	config["binaryPath"] = p.node.Envoy
	config["concurrency"] = 1
	encoded, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	values["PROXY_CONFIG"] = string(encoded)
	values["ISTIOD_SAN"] = istiodName
	values["TRUST_DOMAIN"] = cmp.Or(settings.TrustDomain, "cluster.local")
	values["CLOUD_PLATFORM"] = "none"
	values["GOMAXPROCS"] = "1"
	values["INSTANCE_IP"] = p.ip
	// With an address of its own for the CA, the agent would not expect
	// ISTIOD_SAN there. With one for DNS, it would run Envoy as another user.
	delete(values, "CA_ADDR")
	delete(values, "DNS_PROXY_ADDR")
	var environment []string
	for name, value := range values {
		environment = append(environment, name+"="+value)
	}
	slices.Sort(environment)
	return environment, nil
}

// field is the value of a field of the downward API.
func field(spec *corev1.Pod, path string) string {
	switch path {
	case "metadata.name":
		return spec.Name
	case "metadata.namespace":
		return spec.Namespace
	case "metadata.uid":
		return string(spec.UID)
	case "status.podIP":
		return spec.Status.PodIP
	case "status.hostIP":
		return spec.Status.HostIP
	case "spec.nodeName":
		return spec.Spec.NodeName
	case "spec.serviceAccountName":
		return spec.Spec.ServiceAccountName
	}
	if key, ok := strings.CutPrefix(path, "metadata.labels['"); ok {
		return spec.Labels[strings.TrimSuffix(key, "']")]
	}
	if key, ok := strings.CutPrefix(path, "metadata.annotations['"); ok {
		return spec.Annotations[strings.TrimSuffix(key, "']")]
	}
	return ""
}
