package discovery

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// istioMeshes makes a mesh of every istiod.
func istioMeshes(w *world) []*mesh {
	var out []*mesh
	for _, d := range w.deployments {
		if pilot := pilotOf(d); pilot != nil {
			out = append(out, w.istioMesh(d, pilot))
		}
	}
	return out
}

// pilotOf returns the container of a Deployment that is an Istio control
// plane, or nil. The label is the installation's own; without it, the image
// and the name must both speak for it.
func pilotOf(d *appsv1.Deployment) *corev1.Container {
	containers := d.Spec.Template.Spec.Containers
	if d.Labels["app"] == istiodName || d.Spec.Template.Labels["app"] == istiodName {
		for i := range containers {
			if containers[i].Name == istiodContainer || isPilotImage(containers[i].Image) {
				return &containers[i]
			}
		}
		if len(containers) > 0 {
			return &containers[0]
		}
		return nil
	}
	for i := range containers {
		image := containers[i].Image
		if isPilotImage(image) && (strings.HasPrefix(d.Name, istiodName) || strings.Contains(image, "istio/pilot")) {
			return &containers[i]
		}
	}
	return nil
}

// isPilotImage spares most images the parsing.
func isPilotImage(s string) bool {
	if !strings.Contains(s, istioPilotWord) {
		return false
	}
	img, ok := parseImage(s)
	return ok && img.hasWord(istioPilotWord)
}

func (w *world) istioMesh(d *appsv1.Deployment, pilot *corev1.Container) *mesh {
	source := snapshot.Ref{Kind: snapshot.Deployment, Cluster: w.cluster, Namespace: d.Namespace, Name: d.Name}
	name := w.name(w.meshNames, objectName(d.Name, d.Namespace, w.cluster), source)
	ref := snapshot.Ref{Kind: snapshot.Mesh, Namespace: w.namespace, Name: name}
	revision := istiodRevision(d, pilot)
	config := w.istioConfig(d.Namespace, revision, ref)
	if config.rootNamespace == d.Namespace {
		config.rootNamespace = "" // as usual
	}
	if acceptsAnyTrustDomain(pilot) {
		config.peers = []string{discoveryv1.AnyTrustDomain}
	}

	installation := discoveryv1.MeshInstallation{
		Namespace: d.Namespace,
		Cluster:   w.cluster,
		Version:   w.version(pilot.Image, source, ref),
		Region:    w.clusterRegion(),
	}
	if d.Spec.Selector != nil {
		installation.PodLabels = d.Spec.Selector.MatchLabels
	}
	return &mesh{
		revision: revision,
		usual:    revision == istioDefault,
		object: &discoveryv1.Mesh{
			ObjectMeta: w.meta(name),
			Spec: discoveryv1.MeshSpec{
				Istio: &discoveryv1.IstioMesh{
					Installation:            installation,
					RootNamespace:           config.rootNamespace,
					TrustDomain:             config.trustDomain,
					TrustDomainAliases:      config.aliases,
					PeerTrustDomains:        config.peers,
					IstiodServiceAccount:    serviceAccount(&d.Spec.Template),
					SmartDnsProxyingEnabled: config.smartDNS,
				},
				AgentInfo: w.agentInfo(),
			},
		},
	}
}

// istiodRevision is the revision that a control plane goes by: its pods'
// label, its own, or its setting; all the same in every proper installation.
func istiodRevision(d *appsv1.Deployment, pilot *corev1.Container) string {
	for _, labels := range []map[string]string{d.Spec.Template.Labels, d.Labels} {
		if r := labels[istioRevisionKey]; r != "" {
			return r
		}
	}
	for _, e := range pilot.Env {
		if e.Name == "REVISION" && e.Value != "" {
			return e.Value
		}
	}
	return istioDefault
}

func acceptsAnyTrustDomain(pilot *corev1.Container) bool {
	return slices.ContainsFunc(pilot.Env, func(e corev1.EnvVar) bool { return e.Name == istioSkipTrustDomain && isTrue(e.Value) })
}

// agentInfo says where the certificate agent of the cluster runs; nil if nowhere.
func (w *world) agentInfo() *discoveryv1.AgentInfo {
	for _, pod := range w.pods {
		if pod.Labels["app"] == "cert-agent" {
			return &discoveryv1.AgentInfo{AgentNamespace: pod.Namespace}
		}
	}
	return nil
}
