// Package v1 (gatewayv1) has what is read of the routes of gateway.networking.k8s.io/v1, the Gateway API of Kubernetes. Their own
// module would bring types for all of the API, and newer versions of what many modules share. Fields that nobody reads have no
// place here, and are dropped when an object is decoded.
//
// +kubebuilder:object:generate=true
// +kubebuilder:skip
package v1
