package snapshot

import "encoding/json"

// ProxyNames is how a kind of mesh names things in the configuration of its proxies, which are Envoys.
type ProxyNames struct {
	// Container is that of the proxy in a pod, and AdminPort where it serves its admin interface, on the pod's loopback interface.
	Container string
	AdminPort uint32
	// Target is what a cluster is for: a subset, or all, of what callers know by a host and port. Passes is set instead for those by which
	// proxies connect to whatever address their application asked for. Both are zero for others.
	Target func(cluster string) (target ProxyTarget, passes bool)
	// PodPorts: the ports of targets are those on which pods listen, instead of those of services.
	PodPorts bool
	// Origin is the object that a route or a cluster comes from, by its metadata; zero if they name none. Its cluster is not set.
	Origin func(metadata map[string]json.RawMessage) Ref
	// Patches are the kinds of objects that change configuration and leave no name there.
	Patches []ProxyPatch
	// Policy is the object that a policy of an RBAC filter comes from; zero if its name says none. Its cluster is not set.
	Policy func(name string) Ref
	// Stats is what proxies count; nil if it is not read.
	Stats *ProxyStats
	// Sync is where control planes say what proxies have acknowledged; nil if they do not.
	Sync *ProxySync
}

// ProxySync is a page of a control plane, on the loopback interface of its pods, about what it sent to proxies.
type ProxySync struct {
	Port uint32
	Path string
	// Parse reads the page. Errors say what is wrong with it.
	Parse func(data []byte) ([]SyncedProxy, error)
}

// SyncedProxy is a proxy that is connected to a control plane. Its texts are not trusted.
type SyncedProxy struct {
	Namespace, Pod string
	// Waits are the kinds of configuration that were sent to it last and that it has not acknowledged, and Refused says why it
	// rejected one of them; empty if it did not.
	Waits   []string
	Refused string
}

// ProxyPatch is a kind of object that changes what the proxies of pods hold, of its own namespace or, in the root namespace, of all.
type ProxyPatch struct {
	Kind, Group, Version, Resource string
	// Selector is the field of spec whose labels select the pods; those without it are for all pods.
	Selector string
}

// ProxyTarget is what requests are sent to.
type ProxyTarget struct {
	Host   string
	Port   uint32
	Subset string
}
