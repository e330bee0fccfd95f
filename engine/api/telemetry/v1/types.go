// Package v1 has what is read of the objects by which users say what Istio's proxies count. It is far less than these objects have, and
// none of it is ever written.
//
// +kubebuilder:skip
package v1

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is that of the types.
var GroupVersion = schema.GroupVersion{Group: "telemetry.istio.io", Version: "v1"}

// AddToScheme adds the types.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Telemetry{})
	return nil
}

// Telemetry says what proxies count, log and trace (https://istio.io/latest/docs/reference/config/telemetry/). Only the first is read.
type Telemetry struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec Spec `json:"spec,omitempty"`
}

// Spec says for which proxies it is, and what they count.
type Spec struct {
	Selector   *Selector `json:"selector,omitempty"`
	TargetRef  *Target   `json:"targetRef,omitempty"`
	TargetRefs []Target  `json:"targetRefs,omitempty"`
	Metrics    []Metrics `json:"metrics,omitempty"`
}

// Selector selects pods.
type Selector struct {
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
}

// Target is what it is attached to.
type Target struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
}

// Metrics are settings of providers; without any, of those that are set already.
type Metrics struct {
	Providers []Provider `json:"providers,omitempty"`
	Overrides []Override `json:"overrides,omitempty"`
}

// Provider is one of the extensionProviders of the mesh.
type Provider struct {
	Name string `json:"name,omitempty"`
}

// Override changes the settings of metrics. Later ones come after earlier ones.
type Override struct {
	Match *Match `json:"match,omitempty"`
	// Disabled: what is matched is not counted. Unset leaves it as it is, but for metrics that were disabled all at once.
	Disabled *bool `json:"disabled,omitempty"`
}

// Match selects metrics, all without a name, and a side, both without a mode.
type Match struct {
	Metric       string `json:"metric,omitempty"`
	CustomMetric string `json:"customMetric,omitempty"`
	Mode         string `json:"mode,omitempty"`
}

// deepCopy is a Spec that shares nothing with another one.
func (s Spec) deepCopy() Spec {
	if s.Selector != nil {
		s.Selector = &Selector{maps.Clone(s.Selector.MatchLabels)}
	}
	if s.TargetRef != nil {
		s.TargetRef = new(*s.TargetRef)
	}
	s.TargetRefs, s.Metrics = slices.Clone(s.TargetRefs), slices.Clone(s.Metrics)
	for i := range s.Metrics {
		m := &s.Metrics[i]
		m.Providers, m.Overrides = slices.Clone(m.Providers), slices.Clone(m.Overrides)
		for j := range m.Overrides {
			o := &m.Overrides[j]
			if o.Match != nil {
				o.Match = new(*o.Match)
			}
			if o.Disabled != nil {
				o.Disabled = new(*o.Disabled)
			}
		}
	}
	return s
}

// DeepCopyObject implements runtime.Object.
func (t *Telemetry) DeepCopyObject() runtime.Object {
	return &Telemetry{t.TypeMeta, *t.ObjectMeta.DeepCopy(), t.Spec.deepCopy()}
}
