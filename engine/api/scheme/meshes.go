package scheme

import (
	osmconfigv1alpha2 "github.com/openservicemesh/osm/pkg/apis/config/v1alpha2"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	istiosecurityv1 "istio.io/client-go/pkg/apis/security/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object is a pointer to an API type.
type Object interface {
	metav1.Object
	runtime.Object
}

// OfMesh returns an empty object of a kind that users write for a mesh, and that the engine reads; nil for another kind.
func OfMesh(kind schema.GroupVersionKind) Object {
	switch kind {
	case istionetworkingv1.SchemeGroupVersion.WithKind("VirtualService"):
		return &istionetworkingv1.VirtualService{}
	case istionetworkingv1.SchemeGroupVersion.WithKind("DestinationRule"):
		return &istionetworkingv1.DestinationRule{}
	case istionetworkingv1.SchemeGroupVersion.WithKind("ServiceEntry"):
		return &istionetworkingv1.ServiceEntry{}
	case istionetworkingv1.SchemeGroupVersion.WithKind("Sidecar"):
		return &istionetworkingv1.Sidecar{}
	case istiosecurityv1.SchemeGroupVersion.WithKind("AuthorizationPolicy"):
		return &istiosecurityv1.AuthorizationPolicy{}
	case osmconfigv1alpha2.SchemeGroupVersion.WithKind("MeshConfig"):
		return &osmconfigv1alpha2.MeshConfig{}
	}
	return nil
}
