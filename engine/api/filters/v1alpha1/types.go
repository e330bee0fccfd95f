// Package v1alpha1 has what is read of the objects with which users put filters of their own into Istio's proxies. It is far less than
// these objects have, and none of it is ever written.
//
// +kubebuilder:skip
package v1alpha1

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Groups and version of the types.
var (
	networking = schema.GroupVersion{Group: "networking.istio.io", Version: "v1alpha3"}
	extensions = schema.GroupVersion{Group: "extensions.istio.io", Version: "v1alpha1"}
)

// AddToScheme adds the types.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(networking, &EnvoyFilter{})
	s.AddKnownTypes(extensions, &WasmPlugin{}, &TrafficExtension{})
	return nil
}

// EnvoyFilter changes the configuration of proxies (https://istio.io/latest/docs/reference/config/networking/envoy-filter/).
type EnvoyFilter struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec Spec `json:"spec,omitempty"`
}

// WasmPlugin adds code to proxies (https://istio.io/latest/docs/reference/config/proxy_extensions/wasm-plugin/).
type WasmPlugin struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec Spec `json:"spec,omitempty"`
}

// TrafficExtension adds code to proxies (istio.io/api, extensions/v1alpha1/traffic_extension.proto).
type TrafficExtension struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec Spec `json:"spec,omitempty"`
}

// Spec says whose proxies it is for, and where in them. Each kind has some of the fields.
type Spec struct {
	Selector         *Selector         `json:"selector,omitempty"`
	WorkloadSelector *WorkloadSelector `json:"workloadSelector,omitempty"`
	TargetRef        *Target           `json:"targetRef,omitempty"`
	TargetRefs       []Target          `json:"targetRefs,omitempty"`
	Match            []Match           `json:"match,omitempty"`
	ConfigPatches    []Patch           `json:"configPatches,omitempty"`
}

// Selector selects pods.
type Selector struct {
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
}

// WorkloadSelector selects pods.
type WorkloadSelector struct {
	Labels map[string]string `json:"labels,omitempty"`
}

// Target is what it is attached to.
type Target struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
}

// Match selects traffic: of clients, of servers, or of both.
type Match struct {
	Mode string `json:"mode,omitempty"`
}

// Patch is one of an EnvoyFilter.
type Patch struct {
	Match PatchMatch `json:"match,omitempty,omitzero"`
}

// PatchMatch says where it is applied.
type PatchMatch struct {
	Context string `json:"context,omitempty"`
}

// deepCopy is a Spec that shares nothing with another one.
func (s Spec) deepCopy() Spec {
	if s.Selector != nil {
		s.Selector = &Selector{maps.Clone(s.Selector.MatchLabels)}
	}
	if s.WorkloadSelector != nil {
		s.WorkloadSelector = &WorkloadSelector{maps.Clone(s.WorkloadSelector.Labels)}
	}
	if s.TargetRef != nil {
		s.TargetRef = new(*s.TargetRef)
	}
	s.TargetRefs, s.Match, s.ConfigPatches = slices.Clone(s.TargetRefs), slices.Clone(s.Match), slices.Clone(s.ConfigPatches)
	return s
}

// DeepCopyObject implements runtime.Object.
func (o *EnvoyFilter) DeepCopyObject() runtime.Object {
	return &EnvoyFilter{o.TypeMeta, *o.ObjectMeta.DeepCopy(), o.Spec.deepCopy()}
}

// DeepCopyObject implements runtime.Object.
func (o *WasmPlugin) DeepCopyObject() runtime.Object {
	return &WasmPlugin{o.TypeMeta, *o.ObjectMeta.DeepCopy(), o.Spec.deepCopy()}
}

// DeepCopyObject implements runtime.Object.
func (o *TrafficExtension) DeepCopyObject() runtime.Object {
	return &TrafficExtension{o.TypeMeta, *o.ObjectMeta.DeepCopy(), o.Spec.deepCopy()}
}
