// Package demo runs meshctl on this machine: two clusters with Istio and a small
// application, registered and joined, with policies.
//
// It runs the meshctl binary like a user and does not import the engine. Package
// kube is its Kubernetes client; a Runtime creates the clusters. The scripts in
// nodeimage build images for kind clusters where no container registry is reached.
package demo
