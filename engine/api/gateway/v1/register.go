package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "gateway.networking.k8s.io", Version: "v1"}

// AddToScheme adds the kinds of this package to s.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&HTTPRoute{}, &HTTPRouteList{},
		&GRPCRoute{}, &GRPCRouteList{},
		&TCPRoute{}, &TCPRouteList{},
		&TLSRoute{}, &TLSRouteList{},
		&Gateway{}, &GatewayList{},
		&ListenerSet{}, &ListenerSetList{},
		&BackendTLSPolicy{}, &BackendTLSPolicyList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	// This is the version that all releases serve (Istio, metadata.yaml).
	grants := schema.GroupVersion{Group: GroupVersion.Group, Version: "v1beta1"}
	s.AddKnownTypes(grants, &ReferenceGrant{}, &ReferenceGrantList{})
	metav1.AddToGroupVersion(s, grants)
	return nil
}
