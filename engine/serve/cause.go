package serve

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	causeStart = "start"
	// causeNone: nothing was translated since all was written, so what is
	// written now was changed by somebody else, or is tried again.
	causeNone = "repair"
	// maxCauses bounds how many things one cause names.
	maxCauses = 4
)

// cause is why the Sink has work at present: what had changed in the Inputs
// since all was last written.
type cause struct {
	mu   sync.Mutex
	list []string
	more int
}

// add notes what a round with something to write was for.
func (c *cause) add(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case slices.Contains(c.list, text):
	case len(c.list) < maxCauses:
		c.list = append(c.list, text)
	default:
		c.more++
	}
}

// clear notes that all is written.
func (c *cause) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list, c.more = nil, 0
}

// String names the cause.
func (c *cause) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.list) == 0 {
		return causeNone
	}
	text := strings.Join(c.list, "; ")
	if c.more > 0 {
		text += fmt.Sprintf("; and %d more", c.more)
	}
	return text
}

// logger adds the cause to each line of a logger.
func (c *cause) logger(log *slog.Logger) *slog.Logger {
	return slog.New(&causeHandler{Handler: log.Handler(), cause: c})
}

type causeHandler struct {
	slog.Handler
	cause *cause
}

// Handle implements slog.Handler.
func (h *causeHandler) Handle(ctx context.Context, r slog.Record) error {
	r.AddAttrs(slog.String("cause", h.cause.String()))
	return h.Handler.Handle(ctx, r) //nolint:wrapcheck // a handler hands on what the next one says
}

// WithAttrs implements slog.Handler.
func (h *causeHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &causeHandler{Handler: h.Handler.WithAttrs(attrs), cause: h.cause}
}

// WithGroup implements slog.Handler.
func (h *causeHandler) WithGroup(name string) slog.Handler {
	return &causeHandler{Handler: h.Handler.WithGroup(name), cause: h.cause}
}

// describe names what is new in an Input: "TrafficPolicy bookinfo/reviews",
// "12 Pods in cluster-1".
func describe(before *snapshot.State, now *snapshot.Input) string {
	if before == nil {
		return causeStart
	}
	var d differences
	was := before.Input
	d.management(was.Management, now.Management)
	known := map[string]*snapshot.Cluster{}
	for _, c := range was.Clusters {
		known[c.Name] = c
	}
	for _, c := range now.Clusters {
		old := known[c.Name]
		delete(known, c.Name)
		switch {
		case old == c:
		case old == nil:
			d.add("cluster " + c.Name + " was added")
		case old.Sync != c.Sync:
			d.add("cluster " + c.Name + " is " + c.Sync.String())
		default:
			d.cluster(old, c)
		}
	}
	for _, c := range was.Clusters {
		if known[c.Name] != nil {
			d.add("cluster " + c.Name + " was removed")
		}
	}
	if !same(was.Failures, now.Failures) {
		d.add("failed writes")
	}
	return d.String()
}

// differences collects what to name.
type differences struct {
	named []string
	more  int
}

func (d *differences) add(text string) {
	if len(d.named) == maxCauses {
		d.more++
		return
	}
	d.named = append(d.named, text)
}

// String lists what was collected.
func (d *differences) String() string {
	text := strings.Join(d.named, ", ")
	if d.more > 0 {
		text += fmt.Sprintf(" and %d more", d.more)
	}
	return text
}

func (d *differences) management(a, b *snapshot.Management) {
	if a == b {
		return
	}
	list(d, snapshot.TrafficPolicy, "", a.TrafficPolicies, b.TrafficPolicies)
	list(d, snapshot.AccessPolicy, "", a.AccessPolicies, b.AccessPolicies)
	list(d, snapshot.VirtualMesh, "", a.VirtualMeshes, b.VirtualMeshes)
	list(d, snapshot.VirtualDestination, "", a.VirtualDestinations, b.VirtualDestinations)
	list(d, snapshot.ServiceDependency, "", a.ServiceDependencies, b.ServiceDependencies)
	list(d, snapshot.Settings, "", a.Settings, b.Settings)
	list(d, snapshot.KubernetesCluster, "", a.KubernetesClusters, b.KubernetesClusters)
	list(d, snapshot.WasmDeployment, "", a.WasmDeployments, b.WasmDeployments)
	list(d, snapshot.AccessLogRecord, "", a.AccessLogRecords, b.AccessLogRecords)
	list(d, snapshot.Role, "", a.Roles, b.Roles)
	list(d, snapshot.RoleBinding, "", a.RoleBindings, b.RoleBindings)
	list(d, snapshot.Mesh, "", a.Meshes, b.Meshes)
	list(d, snapshot.Destination, "", a.Destinations, b.Destinations)
	list(d, snapshot.Workload, "", a.Workloads, b.Workloads)
}

func (d *differences) cluster(a, b *snapshot.Cluster) {
	if a.Domain != b.Domain || a.Reason != b.Reason {
		d.add("cluster " + b.Name)
	}
	list(d, snapshot.Service, b.Name, a.Services, b.Services)
	list(d, snapshot.Deployment, b.Name, a.Deployments, b.Deployments)
	list(d, snapshot.DaemonSet, b.Name, a.DaemonSets, b.DaemonSets)
	list(d, snapshot.StatefulSet, b.Name, a.StatefulSets, b.StatefulSets)
	list(d, snapshot.ConfigMap, b.Name, a.ConfigMaps, b.ConfigMaps)
	list(d, snapshot.VirtualService, b.Name, a.VirtualServices, b.VirtualServices)
	list(d, snapshot.ServiceEntry, b.Name, a.ServiceEntries, b.ServiceEntries)
	list(d, snapshot.DestinationRule, b.Name, a.DestinationRules, b.DestinationRules)
	list(d, snapshot.AuthorizationPolicy, b.Name, a.AuthorizationPolicies, b.AuthorizationPolicies)
	list(d, snapshot.Sidecar, b.Name, a.Sidecars, b.Sidecars)
	list(d, snapshot.MeshConfig, b.Name, a.MeshConfigs, b.MeshConfigs)
	list(d, snapshot.Namespace, b.Name, a.Namespaces, b.Namespaces)
	list(d, snapshot.Node, b.Name, a.Nodes, b.Nodes)
	list(d, snapshot.EndpointSlice, b.Name, a.EndpointSlices, b.EndpointSlices)
	list(d, snapshot.Pod, b.Name, a.Pods, b.Pods)
	list(d, snapshot.ReplicaSet, b.Name, a.ReplicaSets, b.ReplicaSets)
}

// listed is a pointer to an API type.
type listed interface {
	comparable
	metav1.Object
}

// list names the objects in which two lists, both ascending, differ.
func list[T listed](d *differences, kind snapshot.Kind, cluster string, a, b []T) {
	if same(a, b) {
		return
	}
	count := 0
	var first T
	for len(a) > 0 || len(b) > 0 {
		if len(a) > 0 && len(b) > 0 && a[0] == b[0] {
			a, b = a[1:], b[1:]
			continue
		}
		var one T
		switch order := compareHeads(a, b); {
		case order < 0:
			one, a = a[0], a[1:]
		case order > 0:
			one, b = b[0], b[1:]
		default:
			one, a, b = b[0], a[1:], b[1:]
		}
		if count++; count == 1 {
			first = one
		}
	}
	switch {
	case count == 1:
		ref := snapshot.RefOf(kind, first)
		ref.Cluster = cluster
		d.add(ref.String())
	case count > 1 && cluster != "":
		d.add(fmt.Sprintf("%d %s in %s", count, kind.Info().Resource, cluster))
	case count > 1:
		d.add(fmt.Sprintf("%d %s", count, kind.Info().Resource))
	}
}

// compareHeads orders the first objects of two lists, of which one may be empty.
func compareHeads[T listed](a, b []T) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	if c := strings.Compare(a[0].GetNamespace(), b[0].GetNamespace()); c != 0 {
		return c
	}
	return strings.Compare(a[0].GetName(), b[0].GetName())
}

// same reports whether two lists are one: the same memory.
func same[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
