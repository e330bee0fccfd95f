package discovery

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file says which Deployments are believed to be control planes. Anyone who may edit
// one namespace can make a Deployment that looks like one, and a mesh changes what all
// workloads of its cluster belong to. So a control plane needs evidence that is outside of
// its namespace, or that an editor of a namespace cannot write.

// InjectorLabel selects the webhook configurations of Istio's injector, also those of its
// revision tags.
const (
	InjectorLabel = "app"
	InjectorValue = "sidecar-injector"
)

const (
	// istioInjectorName is how the names of the injector's webhooks end.
	istioInjectorName = "sidecar-injector.istio.io"
	// istioInjector is the webhook configuration of a control plane in istio-system
	// without a revision (Istio's chart istiod, templates/mutatingwebhook.yaml).
	istioInjector       = "istio-" + InjectorValue
	istioUsualNamespace = "istio-system"
)

// injectors are what the webhook configurations of a cluster say about control planes.
type injectors struct {
	// unknown: the webhook configurations were not read.
	unknown bool
	// namespaces have a Service that an injector's webhook leads to.
	namespaces map[string]bool
	// names are the configurations that lead to a URL, with their revisions.
	names map[string]string
}

func newInjectors(c *snapshot.Cluster) *injectors {
	out := &injectors{unknown: c.WebhooksUnknown, namespaces: map[string]bool{}, names: map[string]string{}}
	for _, config := range c.MutatingWebhookConfigurations {
		for i := range config.Webhooks {
			out.add(config, &config.Webhooks[i])
		}
	}
	return out
}

func (j *injectors) add(config *admissionv1.MutatingWebhookConfiguration, webhook *admissionv1.MutatingWebhook) {
	switch {
	case !strings.HasSuffix(webhook.Name, istioInjectorName):
	case webhook.ClientConfig.Service != nil:
		j.namespaces[webhook.ClientConfig.Service.Namespace] = true
	default:
		j.names[config.Name] = config.Labels[istioRevisionKey]
	}
}

// leadTo reports whether an injector leads to a control plane. One that is reached by a URL
// says so by its name only.
func (j *injectors) leadTo(namespace, revision string) bool {
	if j.unknown || j.namespaces[namespace] {
		return true
	}
	name := istioInjector
	if revision != istioDefault {
		name += "-" + revision
	}
	if namespace != istioUsualNamespace {
		name += "-" + namespace
	}
	of, found := j.names[name]
	return found && (of == revision || of == "" && revision == istioDefault)
}

// believed reports whether a Deployment that looks like a control plane is one: there is
// evidence, or the Settings name its namespace, or there was evidence before. If there is
// none now, that is an issue.
func (x *Index) believed(d *appsv1.Deployment, evidence bool, mesh, missing string) bool {
	if evidence || x.installed[d.Namespace] {
		return true
	}
	if x.storedMesh(objectName(d.Name, d.Namespace, x.Cluster), d.Namespace) != nil {
		x.Report(snapshot.Issue{
			Code: snapshot.ControlPlaneIgnored, Severity: snapshot.Warning, Ref: x.Ref(snapshot.Deployment, d),
			Message: "it stays a control plane of " + mesh + ", although nothing shows any more that it was installed as one: " + missing,
			Hint:    "install it again, or name its namespace in the Settings (discovery.controlPlanes); or delete the Deployment",
		})
		return true
	}
	x.Report(snapshot.Issue{
		Code: snapshot.ControlPlaneIgnored, Severity: snapshot.Warning, Ref: x.Ref(snapshot.Deployment, d),
		Message: "it looks like a control plane of " + mesh + " and is ignored, because anyone who may edit its namespace can have made it: " + missing,
		Hint:    "if you installed it, name its namespace in the Settings (discovery.controlPlanes); else ask who made it",
	})
	return false
}
