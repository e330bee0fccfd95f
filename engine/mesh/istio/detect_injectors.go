package istio

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	// injectorLabel is the value of the label app of the injector's webhook configurations, also those of its revision tags.
	injectorLabel = "sidecar-injector"
	// injectorWebhook is how the names of the injector's webhooks end.
	injectorWebhook = "sidecar-injector.istio.io"
	// injectorConfig is the webhook configuration of a control plane in istio-system
	// without a revision (Istio's chart istiod, templates/mutatingwebhook.yaml).
	injectorConfig = "istio-" + injectorLabel
	usualNamespace = "istio-system"
)

// injectors are what the webhook configurations of a cluster say about control planes. They are the evidence of one: cluster-scoped
// objects, which an editor of a namespace cannot write.
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
	case !strings.HasSuffix(webhook.Name, injectorWebhook):
	case webhook.ClientConfig.Service != nil:
		j.namespaces[webhook.ClientConfig.Service.Namespace] = true
	default:
		j.names[config.Name] = config.Labels[revisionKey]
	}
}

// leadTo reports whether an injector leads to a control plane. One that is reached by a URL
// says so by its name only.
func (j *injectors) leadTo(namespace, revision string) bool {
	if j.unknown || j.namespaces[namespace] {
		return true
	}
	name := injectorConfig
	if revision != defaultRevision {
		name += "-" + revision
	}
	if namespace != usualNamespace {
		name += "-" + namespace
	}
	of, found := j.names[name]
	return found && (of == revision || of == "" && revision == defaultRevision)
}
