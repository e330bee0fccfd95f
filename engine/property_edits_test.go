package engine_test

import (
	"fmt"
	"math/rand"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// history is a sequence of random edits of an Input: each Input is a value of its own and shares with the ones before what
// did not change, as those of a Source do.
type history struct {
	t  *testing.T
	r  *rand.Rand
	in *snapshot.Input
	// past are the Inputs before, and state is the last State, with which some of them were translated.
	past  []*snapshot.Input
	state *snapshot.State
	// others are objects of other Inputs, by kind.
	others [][]snapshot.APIObject
	// kinds has those that were edited.
	kinds *sync.Map
}

// edits are by name, so that a failure lists what was done. They return the Input itself if there is nothing to edit.
var edits = []struct {
	name   string
	weight int
	edit   func(*history) *snapshot.Input
}{
	{"read an object again", 2, (*history).touch},
	{"read everything again", 1, func(h *history) *snapshot.Input { return reread(h.t, h.in) }},
	{"read nothing new", 1, (*history).share},
	{"change a value of an object", 10, (*history).spoil},
	{"change metadata of an object", 4, (*history).relabel},
	{"delete an object", 4, func(h *history) *snapshot.Input { return h.in.Without(h.any(h.in)) }},
	{"delete an object and create it again", 3, (*history).recreate},
	{"create a copy under another name", 3, (*history).twin},
	{"create an object of another case", 6, (*history).take},
	{"edit an object back", 5, (*history).restore},
	{"go back to an earlier input", 1, (*history).revert},
	{"write what follows", 3, func(h *history) *snapshot.Input { return echo(h.in, h.state.Output) }},
	{"have agents report", 2, (*history).report},
	{"change the roots of a VirtualMesh", 2, (*history).changeRoots},
	{"fail a write", 2, (*history).fail},
	{"have a cluster leave", 1, (*history).leave},
	{"have a cluster join again", 3, (*history).join},
	{"change whether a cluster can be read", 3, (*history).changeSync},
	{"change which settings can be read", 2, (*history).changeUnread},
	{"let a control plane be gone for good", 2, (*history).changeGone},
	{"change an option", 1, (*history).changeOption},
}

// edit makes one random edit, and returns its name.
func (h *history) edit() string {
	total := 0
	for _, e := range edits {
		total += e.weight
	}
	at := h.r.Intn(total)
	for _, e := range edits {
		if at -= e.weight; at < 0 {
			h.set(e.edit(h))
			return e.name
		}
	}
	return ""
}

// set makes an Input the next one.
func (h *history) set(in *snapshot.Input) {
	h.past = append(h.past, h.in)
	h.in = in
}

// any is the reference of a random object, of any kind that there is with the same probability.
func (h *history) any(in *snapshot.Input) snapshot.Ref {
	type list struct {
		cluster string
		kind    snapshot.Kind
		objects snapshot.ObjectList
	}
	var lists []list
	collect := func(cluster string, of snapshot.ObjectLists) {
		for kind, objects := range of.Lists {
			if objects.Len() > 0 {
				lists = append(lists, list{cluster, kind, objects})
			}
		}
	}
	collect("", in.Management)
	for _, c := range in.Clusters {
		collect(c.Name, c)
	}
	if len(lists) == 0 {
		return snapshot.Ref{}
	}
	l := lists[h.r.Intn(len(lists))]
	o := l.objects.At(h.r.Intn(l.objects.Len()))
	return snapshot.Ref{Kind: l.kind, Cluster: l.cluster, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// put changes a copy of a random object.
func (h *history) put(change func(snapshot.APIObject)) *snapshot.Input {
	ref := h.any(h.in)
	o := h.in.Find(ref)
	if o == nil {
		return h.in
	}
	o = copyOf(o)
	change(o)
	return with(h.t, h.in, ref.Cluster, o)
}

func (h *history) touch() *snapshot.Input {
	return h.put(func(o snapshot.APIObject) { o.SetResourceVersion(fmt.Sprint(len(h.past))) })
}

// reread is an Input of which every object is a new one.
func reread(t *testing.T, in *snapshot.Input) *snapshot.Input {
	t.Helper()
	out := shallow(in)
	copyLists := func(of snapshot.ObjectLists) {
		for _, list := range of.Lists {
			var objects []snapshot.APIObject
			for i := range list.Len() {
				objects = append(objects, copyOf(list.At(i)))
			}
			if err := list.Set(objects); err != nil {
				t.Fatal(err)
			}
		}
	}
	copyLists(out.Management)
	for _, c := range out.Clusters {
		copyLists(c)
	}
	return out
}

func (h *history) share() *snapshot.Input { return shallow(h.in) }

func (h *history) spoil() *snapshot.Input {
	for range maxTries {
		ref := h.any(h.in)
		if ref == (snapshot.Ref{}) {
			break
		}
		if out, _ := damagedInput(h.t, h.r, h.in, ref); out != nil {
			return out
		}
	}
	return h.in
}

func (h *history) relabel() *snapshot.Input {
	values := []string{"", "true", "disabled", "default", "v1", "team"}
	return h.put(func(o snapshot.APIObject) {
		value := values[h.r.Intn(len(values))]
		switch h.r.Intn(5) {
		case 0:
			o.SetGeneration(o.GetGeneration() + 1)
		case 1:
			o.SetCreationTimestamp(metav1.NewTime(time.Unix(int64(h.r.Intn(3)), 0)))
		case 2:
			keys := []string{
				snapshot.TrustPauseAnnotation, snapshot.TrustAcceptAnnotation, snapshot.TrustLeaveOutAnnotation, "sidecar.istio.io/inject",
				"networking.istio.io/exportTo",
			}
			o.SetAnnotations(withKey(h.r, o.GetAnnotations(), keys, value))
		default:
			keys := []string{"app", "version", "istio", "istio.io/rev", "istio-injection", "federated", corev1.LabelTopologyRegion, snapshot.DiscoveryOwnerLabel}
			o.SetLabels(withKey(h.r, o.GetLabels(), keys, value))
		}
	})
}

// withKey is a map with another value for one of the keys, or without it.
func withKey(r *rand.Rand, in map[string]string, keys []string, value string) map[string]string {
	out := map[string]string{}
	for k, v := range in {
		out[k] = v
	}
	key := keys[r.Intn(len(keys))]
	if r.Intn(3) > 0 {
		out[key] = value
	} else if delete(out, key); len(out) == 0 {
		return nil
	}
	return out
}

func (h *history) recreate() *snapshot.Input {
	return h.put(func(o snapshot.APIObject) {
		o.SetUID(types.UID(fmt.Sprint("uid-", len(h.past))))
		o.SetCreationTimestamp(metav1.NewTime(time.Unix(int64(h.r.Intn(3)), 0)))
		o.SetGeneration(1)
	})
}

func (h *history) twin() *snapshot.Input {
	return h.put(func(o snapshot.APIObject) { o.SetName([]string{"a-", "z-"}[h.r.Intn(2)] + o.GetName()) })
}

// take creates an object that another Input has, in any cluster.
func (h *history) take() *snapshot.Input {
	from := h.others[h.r.Intn(len(h.others))]
	o := from[h.r.Intn(len(from))]
	if kind, _ := snapshot.KindOfObject(o); h.in.Management.List(kind) != nil {
		return with(h.t, h.in, "", o)
	}
	if len(h.in.Clusters) == 0 {
		return h.in
	}
	return with(h.t, h.in, h.cluster().Name, o)
}

// restore has an object as it was earlier: another object that is equal, or the same one.
func (h *history) restore() *snapshot.Input {
	if len(h.past) == 0 {
		return h.in
	}
	earlier := h.past[h.r.Intn(len(h.past))]
	// Of what was edited since then, if anything was.
	changed := changedRefs(earlier, h.in)
	if len(changed) == 0 {
		return h.in
	}
	ref := changed[h.r.Intn(len(changed))]
	was := earlier.Find(ref)
	switch {
	case was == nil:
		return h.in.Without(ref)
	case ref.Cluster != "" && h.in.Cluster(ref.Cluster) == nil:
		return h.in
	case h.r.Intn(2) == 0:
		was = copyOf(was)
	}
	return with(h.t, h.in, ref.Cluster, was)
}

// changedRefs are the objects that two Inputs do not share.
func changedRefs(a, b *snapshot.Input) []snapshot.Ref {
	before := map[snapshot.Ref]snapshot.APIObject{}
	for ref, o := range a.Objects {
		before[ref] = o
	}
	var out []snapshot.Ref
	for ref, o := range b.Objects {
		if before[ref] != o {
			out = append(out, ref)
		}
		delete(before, ref)
	}
	for ref := range before {
		out = append(out, ref)
	}
	slices.SortFunc(out, snapshot.Ref.Compare)
	return out
}

func (h *history) revert() *snapshot.Input {
	if len(h.past) == 0 {
		return h.in
	}
	earlier := h.past[h.r.Intn(len(h.past))]
	if h.r.Intn(2) == 0 {
		return reread(h.t, earlier)
	}
	return earlier
}
