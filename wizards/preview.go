package wizards

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/meshctl/meshctl/engine"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// World is what was discovered, and what can be asked about it.
type World struct {
	*snapshot.State

	memo *engine.Translator
	now  time.Time
}

// NewWorld translates an input. Now is when an object that is asked for would
// be created, by which policies rank.
func NewWorld(in *snapshot.Input, now time.Time) *World {
	memo := engine.New(engine.Options{})
	return &World{State: memo.Translate(in), memo: memo, now: now}
}

// Preview is what an object would do.
type Preview struct {
	*explain.Comparison

	ref snapshot.Ref
}

// Exists reports whether there is an object of that kind and name already.
func (w *World) Exists(kind snapshot.Kind, namespace, name string) bool {
	m := w.Input.Management
	has := func(o metav1.Object) bool { return o.GetNamespace() == namespace && o.GetName() == name }
	switch kind {
	case snapshot.TrafficPolicy:
		return slices.ContainsFunc(m.TrafficPolicies, func(o *networkingv1.TrafficPolicy) bool { return has(o) })
	case snapshot.AccessPolicy:
		return slices.ContainsFunc(m.AccessPolicies, func(o *networkingv1.AccessPolicy) bool { return has(o) })
	case snapshot.VirtualMesh:
		return slices.ContainsFunc(m.VirtualMeshes, func(o *networkingv1.VirtualMesh) bool { return has(o) })
	}
	return false
}

// Preview translates once more, with the object.
func (w *World) Preview(object *unstructured.Unstructured) (*Preview, error) {
	in := *w.Input
	m := *in.Management
	in.Management = &m
	kind, _ := snapshot.KindOf(object.GroupVersionKind().GroupKind())
	var err error
	switch kind {
	case snapshot.TrafficPolicy:
		m.TrafficPolicies, err = with(m.TrafficPolicies, &networkingv1.TrafficPolicy{}, object, w.now)
	case snapshot.AccessPolicy:
		m.AccessPolicies, err = with(m.AccessPolicies, &networkingv1.AccessPolicy{}, object, w.now)
	case snapshot.VirtualMesh:
		m.VirtualMeshes, err = with(m.VirtualMeshes, &networkingv1.VirtualMesh{}, object, w.now)
	default:
		err = fmt.Errorf("%s cannot be previewed", object.GetKind())
	}
	if err != nil {
		return nil, err
	}
	comparison, err := explain.Compare(w.Output, w.memo.Translate(&in).Output)
	if err != nil {
		return nil, err
	}
	return &Preview{Comparison: comparison, ref: snapshot.Ref{Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName()}}, nil
}

// with puts an object into a list that is ascending by namespace and name, in
// the place of the one of its name.
func with[T interface {
	metav1.Object
	runtime.Object
}](list []T, typed T, object *unstructured.Unstructured, now time.Time) ([]T, error) {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
	}
	accessor, err := meta.Accessor(typed)
	if err != nil {
		return nil, err
	}
	accessor.SetCreationTimestamp(metav1.NewTime(now))
	at, found := slices.BinarySearchFunc(list, typed, func(a, b T) int {
		if c := strings.Compare(a.GetNamespace(), b.GetNamespace()); c != 0 {
			return c
		}
		return strings.Compare(a.GetName(), b.GetName())
	})
	out := slices.Clone(list)
	if found {
		accessor.SetCreationTimestamp(list[at].GetCreationTimestamp())
		out[at] = typed
		return out, nil
	}
	return slices.Insert(out, at, typed), nil
}

// Issues of the object itself, and those that others get by it.
func (p *Preview) Issues() (own, others []snapshot.Issue) {
	for _, issue := range p.Appeared {
		if issue.Ref == p.ref {
			own = append(own, issue)
		} else {
			others = append(others, issue)
		}
	}
	return own, others
}

// maxObjects bounds what a summary names one by one in a cluster.
const maxObjects = 8

// Summary says in a few lines what the object would change in each cluster,
// and what there is to know about it.
func (p *Preview) Summary() string {
	var b strings.Builder
	if len(p.Clusters) == 0 {
		b.WriteString("No object would change in any cluster.\n")
	}
	for _, c := range p.Clusters {
		name := c.Cluster
		if name == "" {
			name = "the management plane"
		}
		fmt.Fprintf(&b, "In %s: %s\n", name, snapshot.Count(len(c.Objects), "object"))
		for i := range c.Objects {
			if i == maxObjects {
				fmt.Fprintf(&b, "  … and %d more\n", len(c.Objects)-i)
				break
			}
			o := &c.Objects[i]
			fmt.Fprintf(&b, "  %s %s %s/%s\n", o.Verb(), o.Ref.Kind, o.Ref.Namespace, o.Ref.Name)
		}
	}
	own, others := p.Issues()
	writeIssues(&b, "Worth knowing:", own)
	writeIssues(&b, "Others would get these problems:", others)
	writeIssues(&b, "It would mend:", p.Gone)
	return clean(b.String())
}

func writeIssues(b *strings.Builder, title string, issues []snapshot.Issue) {
	if len(issues) == 0 {
		return
	}
	b.WriteString(title + "\n")
	for i, issue := range issues {
		if i == maxObjects {
			fmt.Fprintf(b, "  … and %d more\n", len(issues)-i)
			break
		}
		where := issue.Ref.String()
		if issue.Target != (snapshot.Ref{}) && issue.Target != issue.Ref {
			where += " on " + issue.Target.Name
		}
		fmt.Fprintf(b, "  %s  %s: %s (%s)\n", issue.Severity, where, issue.Message, issue.Code)
		if issue.Hint != "" {
			fmt.Fprintf(b, "         → %s\n", issue.Hint)
		}
	}
}

// Full is every object that would differ.
func (p *Preview) Full() string { return p.Text() }
