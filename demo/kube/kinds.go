package kube

import "k8s.io/apimachinery/pkg/runtime/schema"

// Deployments, Pods and the other functions of this file are the kinds that a
// demo reads.
func Deployments() schema.GroupVersionResource { return resource("apps", "v1", "deployments") }

// Pods of the core group.
func Pods() schema.GroupVersionResource { return resource("", "v1", "pods") }

// Services of the core group.
func Services() schema.GroupVersionResource { return resource("", "v1", "services") }

// Secrets of the core group.
func Secrets() schema.GroupVersionResource { return resource("", "v1", "secrets") }

// ServiceAccounts of the core group.
func ServiceAccounts() schema.GroupVersionResource { return resource("", "v1", "serviceaccounts") }

// Nodes of the core group.
func Nodes() schema.GroupVersionResource { return resource("", "v1", "nodes") }

// Webhooks returns a kind of webhook configuration.
func Webhooks(plural string) schema.GroupVersionResource {
	return resource("admissionregistration.k8s.io", "v1", plural)
}

// Networking returns a kind of Istio's networking group.
func Networking(plural string) schema.GroupVersionResource {
	return resource("networking.istio.io", "v1", plural)
}

// Security returns a kind of Istio's security group.
func Security(plural string) schema.GroupVersionResource {
	return resource("security.istio.io", "v1", plural)
}

// Discovery returns a kind that meshctl discovers: meshes, workloads, destinations.
func Discovery(plural string) schema.GroupVersionResource {
	return resource("discovery.mesh.gloo.solo.io", "v1", plural)
}

// Policies returns a kind of meshctl's policies.
func Policies(plural string) schema.GroupVersionResource {
	return resource("networking.mesh.gloo.solo.io", "v1", plural)
}

func resource(group, version, plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: plural}
}
