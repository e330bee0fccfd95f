package engine_test

import (
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// difference is where two States are not the same: a path, and what is there. It is empty if they are the same.
type difference struct{ path, text string }

// in is the difference as seen from a value that has this one as an element.
func (d difference) in(element string) difference {
	if d != (difference{}) {
		d.path = element + d.path
	}
	return d
}

// compareStates compares two States of one Input by value, and by which pointers are the same: readers of a Plan find what
// belongs together by identity.
func compareStates(want, got *snapshot.State) difference {
	c := newComparison()
	if want.Audited != nil && got.Audited != nil {
		if d := compareStates(want.Audited, got.Audited); d != (difference{}) {
			return d.in("Audited")
		}
	}
	for _, part := range []struct {
		name      string
		want, got any
	}{{"Discovered", want.Discovered, got.Discovered}, {"Plan", want.Plan, got.Plan}, {"Output", want.Output, got.Output}, {"Audited", want.Audited != nil, got.Audited != nil}} {
		c.written = part.name == "Output"
		if d := c.compare(reflect.ValueOf(part.want), reflect.ValueOf(part.got)); d != (difference{}) {
			return d.in(part.name)
		}
	}
	return difference{}
}

// comparison is like reflect.DeepEqual, but says where the difference is, and knows the types below.
type comparison struct {
	visited map[[2]unsafe.Pointer]bool
	// wanted and gotten are the objects that stand for each other.
	wanted, gotten map[identity]unsafe.Pointer
	// within is the DestinationPlan that is compared.
	within unsafe.Pointer
	// written: an empty slice is another value than nil.
	written bool
}

func newComparison() *comparison {
	return &comparison{visited: map[[2]unsafe.Pointer]bool{}, wanted: map[identity]unsafe.Pointer{}, gotten: map[identity]unsafe.Pointer{}}
}

// identity is an object, and where it is identified by its pointer; nil for everywhere.
type identity struct{ within, object unsafe.Pointer }

// identified are the types whose values readers compare by pointer; an AccessRule only with those of its own Destination.
var identified = map[reflect.Type]bool{
	reflect.TypeFor[*snapshot.MeshPlan]():                    true,
	reflect.TypeFor[*snapshot.DestinationPlan]():             true,
	reflect.TypeFor[*snapshot.AccessRule]():                  true,
	reflect.TypeFor[*snapshot.BackingPlan]():                 true,
	reflect.TypeFor[*discoveryv1.Mesh]():                     true,
	reflect.TypeFor[*discoveryv1.Workload]():                 true,
	reflect.TypeFor[*discoveryv1.Destination]():              true,
	reflect.TypeFor[*networkingv1.TrafficPolicy]():           true,
	reflect.TypeFor[*networkingv1.AccessPolicy]():            true,
	reflect.TypeFor[*networkingv1.VirtualMesh]():             true,
	reflect.TypeFor[*enterprisev1beta1.VirtualDestination](): true,
	reflect.TypeFor[*enterprisev1beta1.ServiceDependency]():  true,
}

// compare returns the difference with the path from here.
func (c *comparison) compare(want, got reflect.Value) difference {
	if want.Kind() == reflect.Interface {
		want, got = want.Elem(), got.Elem()
	}
	if want.IsValid() != got.IsValid() || want.IsValid() && want.Type() != got.Type() {
		return differ(want, got)
	}
	if !want.IsValid() {
		return difference{}
	}
	switch want.Kind() {
	case reflect.Pointer:
		return c.comparePointers(want, got)
	case reflect.Struct:
		return c.compareStructs(want, got)
	case reflect.Slice:
		if c.lengthsDiffer(want, got) {
			return differ(want, got)
		}
		for i := range want.Len() {
			if d := c.compare(want.Index(i), got.Index(i)); d != (difference{}) {
				return d.in(element(i, want.Index(i)))
			}
		}
	case reflect.Map:
		if c.lengthsDiffer(want, got) {
			return differ(want, got)
		}
		for all := want.MapRange(); all.Next(); {
			if d := c.compare(all.Value(), got.MapIndex(all.Key())); d != (difference{}) {
				return d.in(fmt.Sprintf("[%v]", all.Key()))
			}
		}
	default:
		if !want.Equal(got) {
			return differ(want, got)
		}
	}
	return difference{}
}

// lengthsDiffer compares the lengths of slices or maps. Whether an empty one is nil matters only where it is written as JSON.
func (c *comparison) lengthsDiffer(want, got reflect.Value) bool {
	return want.Len() != got.Len() || c.written && want.IsNil() != got.IsNil()
}

func (c *comparison) compareStructs(want, got reflect.Value) difference {
	if isList(want.Type()) {
		return c.compare(want.MethodByName("Slice").Call(nil)[0], got.MethodByName("Slice").Call(nil)[0])
	}
	for i := range want.NumField() {
		if d := c.compare(want.Field(i), got.Field(i)); d != (difference{}) {
			return d.in("." + want.Type().Field(i).Name)
		}
	}
	return difference{}
}

// isList reports whether a type is a snapshot.List.
func isList(t reflect.Type) bool { return strings.HasPrefix(t.Name(), "List[") }

func (c *comparison) comparePointers(want, got reflect.Value) difference {
	w, g := want.UnsafePointer(), got.UnsafePointer()
	if (w == nil) != (g == nil) {
		return differ(want, got)
	}
	if identified[want.Type()] && w != nil {
		wanted, gotten := identity{nil, w}, identity{nil, g}
		if want.Type() == reflect.TypeFor[*snapshot.AccessRule]() {
			wanted.within, gotten.within = c.within, c.within
		}
		if known, ok := c.gotten[wanted]; ok && known != g {
			return difference{"", "not the same object as elsewhere in the State, where a new translation has one object"}
		}
		if known, ok := c.wanted[gotten]; ok && known != w {
			return difference{"", "the same object as elsewhere in the State, where a new translation has several"}
		}
		c.gotten[wanted], c.wanted[gotten] = g, w
	}
	pair := [2]unsafe.Pointer{w, g}
	if w == g || c.visited[pair] {
		return difference{}
	}
	c.visited[pair] = true
	// Those in fields that are not exported are looked at, too.
	want, got = reflect.NewAt(want.Type().Elem(), w), reflect.NewAt(got.Type().Elem(), g)
	if message, ok := want.Interface().(proto.Message); ok {
		if !proto.Equal(message, got.Interface().(proto.Message)) {
			return differ(want, got)
		}
		return difference{}
	}
	if d, ok := c.compareWritten(want.Interface(), got.Interface()); ok {
		return d
	}
	if want.Type() == reflect.TypeFor[*snapshot.DestinationPlan]() {
		c.within = w
	}
	return c.compare(want.Elem(), got.Elem())
}

// compareWritten compares objects that users write; false for others. A Plan may have an object that was read earlier, if
// nothing has changed since then but what no Plan depends on: statuses and labels, and most annotations. Readers take those
// from the Input.
func (c *comparison) compareWritten(want, got any) (difference, bool) {
	spec := func(want, got any) (difference, bool) {
		return c.compare(reflect.ValueOf(want), reflect.ValueOf(got)).in(".Spec"), true
	}
	w, ok := want.(metav1.Object)
	if !ok {
		return difference{}, false
	}
	g := got.(metav1.Object)
	type metadata struct {
		namespace, name, uid string
		generation, created  int64
	}
	of := func(o metav1.Object) metadata {
		return metadata{o.GetNamespace(), o.GetName(), string(o.GetUID()), o.GetGeneration(), o.GetCreationTimestamp().Unix()}
	}
	if of(w) != of(g) {
		return differ(reflect.ValueOf(of(w)), reflect.ValueOf(of(g))), true
	}
	switch w := want.(type) {
	case *networkingv1.TrafficPolicy:
		return spec(&w.Spec, &got.(*networkingv1.TrafficPolicy).Spec)
	case *networkingv1.AccessPolicy:
		return spec(&w.Spec, &got.(*networkingv1.AccessPolicy).Spec)
	case *networkingv1.VirtualMesh:
		if d := c.compare(reflect.ValueOf(w.Annotations), reflect.ValueOf(g.GetAnnotations())); d != (difference{}) {
			return d.in(".Annotations"), true
		}
		return spec(&w.Spec, &got.(*networkingv1.VirtualMesh).Spec)
	case *enterprisev1beta1.VirtualDestination:
		return spec(&w.Spec, &got.(*enterprisev1beta1.VirtualDestination).Spec)
	case *enterprisev1beta1.ServiceDependency:
		return spec(&w.Spec, &got.(*enterprisev1beta1.ServiceDependency).Spec)
	case *discoveryv1.Destination:
		if w.Spec.ExternalService != nil {
			return spec(&w.Spec, &got.(*discoveryv1.Destination).Spec)
		}
	}
	return difference{}, false
}

// element names an element of a slice.
func element(i int, v reflect.Value) string {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			break
		}
		v = v.Elem()
	}
	if v.Kind() == reflect.Struct {
		if ref := v.FieldByName("Ref"); ref.IsValid() && ref.CanInterface() {
			return fmt.Sprintf("[%d: %v]", i, ref.Interface())
		}
	}
	return fmt.Sprintf("[%d]", i)
}

func differ(want, got reflect.Value) difference {
	value := func(v reflect.Value) any {
		if v.IsValid() && v.CanInterface() {
			return v.Interface()
		}
		return fmt.Sprint(v)
	}
	everything := cmp.Exporter(func(reflect.Type) bool { return true })
	return difference{"", "want (-), got (+):\n" + cmp.Diff(value(want), value(got), everything, protocmp.Transform())}
}
