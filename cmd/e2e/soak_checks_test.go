package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// standing checks, throughout a run, that no object changes that must not: those of
// others, and those of ours that follow from what is not edited.
type standing struct {
	s *soak
	// objects are those at the start, by cluster, kind and name.
	objects map[string]map[string]*unstructured.Unstructured
	clients map[string]*kube.Client
}

// watchedKinds are the kinds of what stands; those of discovered objects only exist in
// the management cluster.
func watchedKinds(cluster string) []schema.GroupVersionResource {
	kinds := []schema.GroupVersionResource{
		kube.Security("authorizationpolicies"), kube.Networking("serviceentries"), kube.Networking("gateways"),
		kube.Networking("virtualservices"), kube.Networking("destinationrules"), kube.Services(), core("configmaps"),
	}
	if cluster == "cluster-1" {
		kinds = append(kinds, kube.Discovery("destinations"), kube.Discovery("meshes"))
	}
	return kinds
}

// stands reports whether an object must stay as it is.
func stands(kind schema.GroupVersionResource, o *unstructured.Unstructured) bool {
	at := o.GetNamespace() + "/" + o.GetName()
	switch {
	case strings.Contains(o.GetName(), "soak"), at == "corner-tenant/shop" && kind == kube.Networking("virtualservices"):
		return false
	case kind == core("configmaps"):
		return at == "istio-system/istio"
	case kind == kube.Services():
		return strings.Contains(at, "bookinfo/") || strings.HasPrefix(at, "corner-tenant/") || strings.HasPrefix(at, "istio-system/")
	case kind == kube.Networking("virtualservices"), kind == kube.Networking("destinationrules"):
		return o.GetName() == "by-hand"
	}
	return at != "bookinfo/details" // the policies on it are edited
}

func newStanding(s *soak) *standing {
	w := &standing{s: s, objects: map[string]map[string]*unstructured.Unstructured{}, clients: map[string]*kube.Client{}}
	for cluster := range s.clients {
		w.clients[cluster] = s.limited(cluster)
		w.objects[cluster] = map[string]*unstructured.Unstructured{}
		for _, kind := range watchedKinds(cluster) {
			list, err := w.clients[cluster].List(s.t.Context(), kind, "")
			require.NoError(s.t, err)
			for _, o := range list {
				if stands(kind, &o) {
					w.objects[cluster][keyOf(kind, &o)] = &o
				}
			}
		}
		require.Greater(s.t, len(w.objects[cluster]), 20)
		s.tally.figure("%d objects stand in %s", len(w.objects[cluster]), cluster)
	}
	return w
}

func keyOf(kind schema.GroupVersionResource, o *unstructured.Unstructured) string {
	return kind.Resource + " " + o.GetNamespace() + "/" + o.GetName()
}

// run checks each cluster until the context ends.
func (w *standing) run(ctx context.Context) {
	done := make(chan struct{})
	for cluster := range w.clients {
		go func() {
			defer func() { done <- struct{}{} }()
			tick := time.NewTicker(200 * time.Millisecond)
			defer tick.Stop()
			for ctx.Err() == nil {
				w.check(ctx, cluster)
				select {
				case <-ctx.Done():
				case <-tick.C:
				}
			}
		}()
	}
	for range w.clients {
		<-done
	}
}

// check compares what stands in a cluster with what there is. A UID tells that an
// object was deleted and made again since the last time.
func (w *standing) check(ctx context.Context, cluster string) {
	there := map[string]*unstructured.Unstructured{}
	for _, kind := range watchedKinds(cluster) {
		list, err := w.clients[cluster].List(ctx, kind, "")
		if err != nil {
			return // the API server does not answer
		}
		for _, o := range list {
			there[keyOf(kind, &o)] = &o
		}
	}
	for key, was := range w.objects[cluster] {
		switch is := there[key]; {
		case is == nil:
			w.s.tally.violate("%s lacks %s", cluster, key)
		case is.GetUID() != was.GetUID():
			w.s.tally.violate("%s: %s was deleted and made again", cluster, key)
		default:
			if difference := differenceOf(was, is); difference != "" {
				w.s.tally.violate("%s: %s was changed: %s", cluster, key, difference)
			}
		}
	}
	for key, o := range there {
		if w.objects[cluster][key] == nil && strings.HasPrefix(key, "authorizationpolicies ") {
			w.opens(cluster, o)
		}
	}
	w.s.tally.count("checks of what stands")
}

// opens checks that a policy that was not there at the start lets nobody in who was
// kept out of the same pods.
func (w *standing) opens(cluster string, o *unstructured.Unstructured) {
	for key, was := range w.objects[cluster] {
		if !strings.HasPrefix(key, "authorizationpolicies ") || was.GetNamespace() != o.GetNamespace() ||
			field(was, "spec", "selector") == nil || !equality.Semantic.DeepEqual(field(was, "spec", "selector"), field(o, "spec", "selector")) {
			continue
		}
		if !equality.Semantic.DeepEqual(field(was, "spec", "rules"), field(o, "spec", "rules")) {
			w.s.tally.violate("%s: AuthorizationPolicy %s/%s lets others in to the pods of %s: %s", cluster, o.GetNamespace(), o.GetName(), key, asJSON(field(o, "spec")))
		}
	}
}

// differenceOf says what is different in contents; empty if nothing is.
func differenceOf(was, is *unstructured.Unstructured) string {
	passage := is.GetKind() == "Gateway"
	if passage {
		is = withHostsOf(was, is)
	}
	for _, path := range [][]string{{"metadata", "labels"}, {"metadata", "annotations"}, {"metadata", "ownerReferences"}, {"spec"}, {"data"}} {
		if a, b := field(was, path...), field(is, path...); !equality.Semantic.DeepEqual(a, b) {
			return fmt.Sprintf("%s: %s, was %s", strings.Join(path, "."), asJSON(b), asJSON(a))
		}
	}
	if !passage && was.GetGeneration() != is.GetGeneration() {
		return "and changed back"
	}
	return ""
}

// withHostsOf is a Gateway without the hosts that another one of it does not have, of services that come and go, and without what it provides
// because of them.
func withHostsOf(was, is *unstructured.Unstructured) *unstructured.Unstructured {
	had := asJSON(field(was, "spec"))
	is = is.DeepCopy()
	annotations := is.GetAnnotations()
	provided := mirror.ReadRelations(was.GetAnnotations()[snapshot.RelationsAnnotation]).Provides
	relations := mirror.ReadRelations(annotations[snapshot.RelationsAnnotation])
	relations.Provides = slices.DeleteFunc(relations.Provides, func(n mirror.Name) bool { return !slices.Contains(provided, n) })
	annotations[snapshot.RelationsAnnotation] = relations.Annotation()
	is.SetAnnotations(annotations)
	servers, _ := field(is, "spec", "servers").([]any)
	for _, s := range servers {
		s, _ := s.(map[string]any)
		hosts, _ := s["hosts"].([]any)
		s["hosts"] = slices.DeleteFunc(hosts, func(host any) bool { return isOfTheRun(fmt.Sprint(host)) && !strings.Contains(had, asJSON(host)) })
	}
	return is
}

func asJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// vitals reads memory and goroutines of the management plane throughout a run.
type vitals struct {
	s      *soak
	server atomic.Pointer[server]
	// rested are the goroutines of the process when it first had converged; its pid.
	rested, pid           int
	goroutines, megabytes int
}

// megabytesAtMost bounds the resident memory of the management plane: about three times what it takes
// for two clusters with some 100 objects.
const megabytesAtMost = 300

func newVitals(s *soak) *vitals {
	v := &vitals{s: s}
	v.server.Store(s.serve)
	return v
}

func (v *vitals) run(ctx context.Context) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		if goroutines, megabytes, err := v.read(v.server.Load()); err == nil {
			v.goroutines, v.megabytes = max(v.goroutines, goroutines), max(v.megabytes, megabytes)
			if megabytes > megabytesAtMost {
				v.s.tally.violate("the management plane takes more than %d MB", megabytesAtMost)
			}
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	v.s.tally.figure("at most %d MB of resident memory and %d goroutines", v.megabytes, v.goroutines)
}

// rest compares goroutines where nothing is going on: none may be left of what has
// happened since this process was at rest for the first time.
func (v *vitals) rest() error {
	goroutines, megabytes, err := v.read(v.s.serve)
	if err != nil {
		return err
	}
	if pid := v.s.serve.cmd.Process.Pid; pid != v.pid {
		v.pid, v.rested = pid, goroutines
		v.s.tally.figure("process %d at rest for the first time: %d MB, %d goroutines", pid, megabytes, goroutines)
	}
	if most := v.rested + v.rested/4 + 20; goroutines > most {
		return fmt.Errorf("the management plane has %d goroutines, and %d when it was at rest for the first time", goroutines, v.rested)
	}
	return nil
}

var (
	goroutinesLine = regexp.MustCompile(`(?m)^go_goroutines (\S+)$`)
	memoryLine     = regexp.MustCompile(`(?m)^process_resident_memory_bytes (\S+)$`)
)

func (v *vitals) read(server *server) (goroutines, megabytes int, err error) {
	text, err := v.s.read(server.metrics+"/metrics", "")
	if err != nil {
		return 0, 0, err
	}
	var values []float64
	for _, line := range []*regexp.Regexp{goroutinesLine, memoryLine} {
		found := line.FindStringSubmatch(text)
		if found == nil {
			return 0, 0, fmt.Errorf("%s is not in the metrics", line)
		}
		value, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			return 0, 0, err
		}
		values = append(values, value)
	}
	return int(values[0]), int(values[1] / 1e6), nil
}
