package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// history is what happens to the objects of all clusters from some moment on. What a watch
// misses while it begins anew, it finds out by the identities of the objects.
type history struct {
	mu      sync.Mutex
	objects map[string]*past
	// deleted are objects that were deleted, if only for a moment.
	deleted []string
	kinds   map[string][]schema.GroupVersionResource
}

// past is what happened to one object.
type past struct {
	// uid and version are those of the last event.
	uid, version string
	// contents are what was written, in that order; specs the same without metadata and status.
	contents, specs []string
	// by is whose object it is.
	by writer
}

// writer is who writes an object.
type writer int

const (
	byOthers writer = iota
	// byInstall: `meshctl install` does; others write its status.
	byInstall
	// byServe: serve does, its spec or its status.
	byServe
	// byTranslation: serve does, because of policies.
	byTranslation
)

// ofControllers are kinds whose objects come and go all the time.
var ofControllers = []string{
	"events", "pods", "replicasets", "endpointslices", "endpoints", "leases", "componentstatuses", "apiservices", "ipaddresses",
	"prioritylevelconfigurations", "flowschemas", "controllerrevisions",
}

// record watches all objects of all clusters, from what there is now, until the test ends.
func (w *environment) record() *history {
	w.t.Helper()
	h := &history{objects: map[string]*past{}, kinds: map[string][]schema.GroupVersionResource{}}
	for _, c := range w.clusters {
		h.kinds[c.Name()] = watchable(w.t, c)
		factory := dynamicinformer.NewDynamicSharedInformerFactory(w.dynamic[c.Name()], 0)
		for _, kind := range h.kinds[c.Name()] {
			saw := func(o any, first bool) {
				h.saw(eventKey(c.Name(), kind, o), writerOf(kind, o), o.(*unstructured.Unstructured), first)
			}
			_, err := factory.ForResource(kind).Informer().AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
				AddFunc:    saw,
				UpdateFunc: func(_, o any) { saw(o, false) },
				DeleteFunc: func(o any) { h.lost(eventKey(c.Name(), kind, o)) },
			})
			require.NoError(w.t, err)
		}
		factory.Start(w.t.Context().Done())
		w.t.Cleanup(factory.Shutdown)
		for kind, synced := range factory.WaitForCacheSync(w.t.Context().Done()) {
			require.True(w.t, synced, "%s", kind)
		}
	}
	return h
}

// watchable are the kinds of a cluster but for those of its controllers.
func watchable(t requireT, c *local.Cluster) (out []schema.GroupVersionResource) {
	config, err := c.Config()
	require.NoError(t, err)
	client, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(t, err)
	lists, err := discovery.ServerPreferredResources(client)
	require.NoError(t, err)
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "watch"}}, lists) {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(t, err)
		for i := range list.APIResources {
			if name := list.APIResources[i].Name; !slices.Contains(ofControllers, name) {
				out = append(out, group.WithResource(name))
			}
		}
	}
	return out
}

func eventKey(cluster string, kind schema.GroupVersionResource, o any) string {
	name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o)
	if err != nil {
		name = err.Error()
	}
	return cluster + " " + kind.GroupResource().String() + " " + name
}

func writerOf(kind schema.GroupVersionResource, object any) writer {
	o, ok := object.(*unstructured.Unstructured)
	if !ok {
		return byOthers
	}
	labels := o.GetLabels()
	switch {
	case labels[snapshot.NetworkingOwnerLabel] != "":
		return byTranslation
	case strings.HasSuffix(kind.Group, ".solo.io"):
		return byServe
	case labels["app.kubernetes.io/managed-by"] == "meshctl" || kind.Resource == "customresourcedefinitions":
		return byInstall
	}
	return byOthers
}

// saw notes what an object is now. The first list of a watch is no event.
func (h *history) saw(key string, by writer, o *unstructured.Unstructured, first bool) {
	content := o.DeepCopy()
	for _, ofServer := range []string{"resourceVersion", "generation", "managedFields"} {
		unstructured.RemoveNestedField(content.Object, "metadata", ofServer)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.objects[key]
	if p == nil {
		p = &past{by: by}
		h.objects[key] = p
		if !first {
			p.contents, p.specs = []string{""}, []string{""}
		}
	}
	if p.uid != "" && p.uid != string(o.GetUID()) {
		h.deleted = append(h.deleted, key+" (there is another one now)")
	}
	if p.version == o.GetResourceVersion() {
		return // the watch began anew
	}
	p.uid, p.version = string(o.GetUID()), o.GetResourceVersion()
	p.contents = append(p.contents, asJSON(content.Object))
	delete(content.Object, "metadata")
	delete(content.Object, "status")
	p.specs = append(p.specs, asJSON(content.Object))
}

// gone are the objects that were deleted.
func (h *history) gone() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.deleted)
}

func (h *history) lost(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deleted = append(h.deleted, key)
}

// behind returns an error unless the history has the objects as they are.
func (h *history) behind(ctx context.Context, clients map[string]dynamic.Interface) error {
	for cluster, kinds := range h.kinds {
		for _, kind := range kinds {
			list, err := clients[cluster].Resource(kind).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for i := range list.Items {
				o := &list.Items[i]
				h.mu.Lock()
				p := h.objects[eventKey(cluster, kind, o)]
				h.mu.Unlock()
				if writerOf(kind, o) != byOthers && (p == nil || p.version != o.GetResourceVersion()) {
					return fmt.Errorf("%s: the watch is behind", eventKey(cluster, kind, o))
				}
			}
		}
	}
	return nil
}

// violations are what an upgrade must not do. Edits must never ask for the same twice, so that
// what comes back was written by somebody who was behind.
func (h *history) violations() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for _, key := range h.deleted {
		out = append(out, "deleted: "+key)
	}
	for _, key := range slices.Sorted(maps.Keys(h.objects)) {
		p := h.objects[key]
		var err error
		switch p.by {
		case byOthers:
		case byInstall:
			err = comesBack(slices.Compact(slices.Clone(p.specs)))
		case byServe:
			err = comesBack(p.contents)
		case byTranslation:
			err = errors.Join(comesBack(p.contents), anEditEach(p.specs))
		}
		if err != nil {
			out = append(out, fmt.Sprintf("%s: %v", key, err))
		}
	}
	return out
}

// comesBack returns an error if an object got a content that it had before; also the last one:
// then it was written for nothing.
func comesBack(contents []string) error {
	at := map[string]int{}
	for n, content := range contents {
		if before, ok := at[content]; ok {
			return fmt.Errorf("write %d of %d made it again as it was after write %d: %s; in between %s", n, len(contents)-1, before, content, contents[before+1:n])
		}
		at[content] = n
	}
	return nil
}

// anEditEach returns an error unless each write is because of a later edit than the one before.
func anEditEach(specs []string) error {
	for n := 1; n < len(specs); n++ {
		if latestMark(specs[n]) <= latestMark(specs[n-1]) {
			return fmt.Errorf("write %d of %d has no later edit: %s, after %s", n, len(specs)-1, specs[n], specs[n-1])
		}
	}
	return nil
}

var number = regexp.MustCompile(`\d+`)

// latestMark is the highest mark of an edit in a spec, and 0 if there is none. No other number is as high.
func latestMark(spec string) int {
	latest := 0
	for _, text := range number.FindAllString(spec, -1) {
		if n, err := strconv.Atoi(text); err == nil && n >= firstMark && n < 2*firstMark {
			latest = max(latest, n)
		}
	}
	return latest
}

// writes counts what was written of each kind of writer.
func (h *history) writes() map[writer]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[writer]int{}
	for _, p := range h.objects {
		out[p.by] += len(p.contents) - 1
	}
	return out
}
