package discovery

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// InjectorLabel is the label by which the webhook configurations of injectors are told from others.
const InjectorLabel = "app"

// Reads lists parts of objects that a source keeps only if they are listed here,
// because they are large or may contain secrets. Names, labels, owners, images and
// service accounts are always kept.
type Reads struct {
	// Annotations are the names of those that are read among the given ones, of
	// workloads and pods. Nil for none.
	Annotations func(map[string]string) []string
	// Env are the names of environment variables. Those whose value is elsewhere are
	// kept without a value, and with a ValueFrom that does not say where.
	Env []string
	// Args are the arguments of a container that are read, in a form that Args
	// returns unchanged. Nil for none.
	Args func(*corev1.Container) []string
	// ConfigMaps are those of the control planes of a cluster, of which its Deployments
	// and MutatingWebhookConfigurations suffice. See ConfigMaps. Nil if none are read.
	ConfigMaps func(*snapshot.Cluster) []snapshot.Ref
	// ConfigMapNames are those of the ConfigMaps that ConfigMaps finds for control planes which
	// are installed as usual. They may be read in all namespaces, others only in those of
	// control planes.
	ConfigMapNames []string
	// ConfigMap are the keys that are read of ConfigMaps of that name, if the first of
	// them is there, and how many bytes of the text of each at most. Nil if none are read.
	ConfigMap func(name string) (keys []string, most int)
	// Redact removes from such a ConfigMap what may be secret, and is not read. Nil if
	// nothing is.
	Redact func(*corev1.ConfigMap)
	// Injector is the value of the label InjectorLabel of the
	// MutatingWebhookConfigurations that are read; empty if none are.
	Injector string
}

// ConfigMaps are those that hold the settings of what looks like a control plane in a
// cluster, of which Deployments and MutatingWebhookConfigurations are looked at. First
// come those for which there is evidence: anyone who may edit a namespace can add others.
func (all Detectors) ConfigMaps(c *snapshot.Cluster) []snapshot.Ref {
	var out []snapshot.Ref
	for _, d := range all {
		if d.Reads.ConfigMaps != nil {
			out = append(out, d.Reads.ConfigMaps(c)...)
		}
	}
	return out
}

// ConfigMapNames are those of the only ConfigMaps that may be read in all namespaces: ConfigMaps often hold things as good as secrets.
func (all Detectors) ConfigMapNames() []string {
	var out []string
	for _, d := range all {
		out = append(out, d.Reads.ConfigMapNames...)
	}
	return out
}

// InjectorSelector is the label selector of the MutatingWebhookConfigurations that are
// read; it matches nothing if none are.
func (all Detectors) InjectorSelector() string {
	var values []string
	for _, d := range all {
		if d.Reads.Injector != "" {
			values = append(values, d.Reads.Injector)
		}
	}
	switch len(values) {
	case 0:
		return InjectorLabel + ",!" + InjectorLabel
	case 1:
		return InjectorLabel + "=" + values[0]
	}
	return InjectorLabel + " in (" + strings.Join(values, ",") + ")"
}

// Redact removes from a ConfigMap what may be secret, and is not read.
func (all Detectors) Redact(cm *corev1.ConfigMap) {
	for _, d := range all {
		if d.Reads.Redact != nil {
			d.Reads.Redact(cm)
		}
	}
}

// ReadConfigMap is what is read of a ConfigMap; nil if nothing is.
func (all Detectors) ReadConfigMap(cm *corev1.ConfigMap) map[string]string {
	for _, d := range all {
		if d.Reads.ConfigMap == nil {
			continue
		}
		keys, most := d.Reads.ConfigMap(cm.Name)
		out := map[string]string{}
		for _, key := range keys {
			if text, ok := cm.Data[key]; ok {
				out[key] = text[:min(len(text), most)]
			}
		}
		if len(keys) > 0 && hasKey(out, keys[0]) {
			return out
		}
	}
	return nil
}

func hasKey(data map[string]string, key string) bool {
	_, has := data[key]
	return has
}

// ReadAnnotations are the names of the annotations of a workload or pod that are read.
func (all Detectors) ReadAnnotations(annotations map[string]string) []string {
	var out []string
	for _, d := range all {
		if d.Reads.Annotations != nil {
			out = append(out, d.Reads.Annotations(annotations)...)
		}
	}
	return out
}

// ReadEnv reports whether an environment variable of a container is read.
func (all Detectors) ReadEnv(name string) bool {
	return slices.ContainsFunc(all, func(d Detector) bool { return slices.Contains(d.Reads.Env, name) })
}

// ReadArgs are the arguments of a container that are read.
func (all Detectors) ReadArgs(c *corev1.Container) []string {
	var out []string
	for _, d := range all {
		if d.Reads.Args != nil {
			out = append(out, d.Reads.Args(c)...)
		}
	}
	return out
}
