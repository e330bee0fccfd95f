package istio

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// controlPlanes finds every istiod.
func controlPlanes(x *discovery.Index) []*discovery.ControlPlane {
	var out []*discovery.ControlPlane
	injectors := newInjectors(x.Objects)
	for _, d := range x.Deployments {
		pilot := pilotOf(d)
		if pilot == nil {
			continue
		}
		evidence := injectors.leadTo(d.Namespace, istiodRevision(d, pilot))
		if x.Believed(d, evidence, "Istio", "no MutatingWebhookConfiguration of an injector leads to it") {
			out = append(out, newControlPlane(x, d, pilot))
		}
	}
	return out
}

// pilotOf returns the container of a Deployment that is an Istio control
// plane, or nil. The label is the installation's own; without it, both the image and
// the name must match.
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

// isPilotImage parses only the few images that contain the word.
func isPilotImage(s string) bool {
	if !strings.Contains(s, pilotWord) {
		return false
	}
	img, ok := discovery.ParseImage(s)
	return ok && img.HasWord(pilotWord)
}

func newControlPlane(x *discovery.Index, d *appsv1.Deployment, pilot *corev1.Container) *discovery.ControlPlane {
	mesh := x.NewMesh(d)
	ref := snapshot.RefOf(snapshot.Mesh, mesh)
	revision := istiodRevision(d, pilot)
	config, known := readSettings(x, d.Namespace, revision, pilot, ref)
	if !known {
		return &discovery.ControlPlane{Mesh: mesh, Revision: revision, Default: revision == defaultRevision, Unread: true}
	}
	if config.rootNamespace == d.Namespace {
		config.rootNamespace = "" // as usual
	}
	if isSet(pilot, skipTrustDomain) {
		config.peers = []string{discoveryv1.AnyTrustDomain}
	}
	installation := x.Installation(d, x.Version(pilot.Image, d, ref))
	installation.Region = x.Region()
	mesh.Spec = discoveryv1.MeshSpec{
		Istio: &discoveryv1.IstioMesh{
			Installation:            installation,
			RootNamespace:           config.rootNamespace,
			TrustDomain:             config.trustDomain,
			TrustDomainAliases:      config.aliases,
			PeerTrustDomains:        config.peers,
			IstiodServiceAccount:    discovery.ServiceAccount(&d.Spec.Template.Spec),
			SmartDnsProxyingEnabled: config.smartDNS,
			DefaultExportTo:         config.exportTo,
			PathNormalization:       config.pathNormalization,
			OutboundTrafficPolicy:   config.outbound,
			DiscoverySelectors:      config.selectors,
			IgnoresOwn:              ignoredOwn(x, config, d.Namespace),
			ServiceEntryVisibility:  visibilityIn(x, config, d.Namespace),
			DefaultTrafficPolicy:    config.defaults,
			EndpointSettings:        endpointSettings(x, config, d.Namespace, revision),
			PlainByDefault:          config.plain,
			Ingress:                 config.ingress,
			Network:                 networkOf(x, d.Namespace),
			ClusterID:               clusterIDOf(pilot),
			WithoutALPN:             isOff(pilot, alpnFilter),
			LocalHosts:              config.localHosts,
			SharedHosts:             config.sharedHosts,
			InboundTrafficPolicy:    config.inbound,
			ForeignCA:               foreignCA(pilot),
			Ambient:                 ambientOf(x, d, pilot),
			RootFingerprints:        rootsOf(x, d.Namespace, pilot, config, ref),
		},
	}
	reportIgnoredOwn(x, mesh)
	plane := &discovery.ControlPlane{
		Mesh: mesh, Revision: revision, Default: revision == defaultRevision, Debounce: debounceOf(x, d, pilot, ref),
		Ambient: mesh.Spec.Istio.Ambient != nil, Nodes: servesZtunnel(x, d.Namespace, revision),
	}
	if len(config.selectors) > 0 {
		plane.Ignores = func(ns *corev1.Namespace) bool { return !selects(config.selectors, ns) }
		plane.ReadHint = selectHint
	}
	return plane
}

// istiodRevision is the revision of a control plane: the label of its pods, its own
// label, or its setting, which are equal in every proper installation.
func istiodRevision(d *appsv1.Deployment, pilot *corev1.Container) string {
	for _, labels := range []map[string]string{d.Spec.Template.Labels, d.Labels} {
		if r := labels[revisionKey]; r != "" {
			return r
		}
	}
	for _, e := range pilot.Env {
		if e.Name == revisionEnv && e.Value != "" {
			return e.Value
		}
	}
	return defaultRevision
}

// storedRevision implements Detector.Stored: the revision is in the labels of the pods or in
// the name, as Istio's chart writes them.
func storedRevision(spec *discoveryv1.MeshSpec, deployment string) (revision string, standard, ok bool) {
	if spec.Istio == nil {
		return "", false, false
	}
	_, named, _ := strings.Cut(deployment, istiodName+"-")
	revision = cmp.Or(spec.Istio.Installation.PodLabels[revisionKey], named, defaultRevision)
	return revision, revision == defaultRevision, true
}

// isSet reports whether an environment variable turns a feature on.
func isSet(c *corev1.Container, name string) bool {
	return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == name && isTrue(e.Value) })
}

// isOff reports whether an environment variable turns a feature off.
func isOff(c *corev1.Container, name string) bool {
	return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
		on, err := strconv.ParseBool(e.Value)
		return e.Name == name && e.ValueFrom == nil && err == nil && !on
	})
}
