package engine_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// FuzzTranslate: whatever users write, if it has the form of the API, is
// translated or refused; the answer is the same every time, with and without
// what is remembered, and taking it away restores what was before.
func FuzzTranslate(f *testing.F) {
	base := enginetest.World(enginetest.Size{Services: 4, Clusters: 2, FederateEvery: 2})
	before := engine.Translate(base)
	f.Fuzz(func(t *testing.T, traffic, access, mesh, virtual, external []byte) {
		in, ok := written(base, traffic, access, mesh, virtual, external)
		if !ok {
			return
		}
		full := text(t, engine.Translate(in).Output)
		translator := engine.New(engine.Options{})
		translator.Translate(base)
		require.Equal(t, full, text(t, translator.Translate(in).Output))
		require.Equal(t, text(t, before.Output), text(t, translator.Translate(base).Output))
	})
}

// written is the world with a policy of each kind beside what is in it. What is
// not JSON of a spec is left out; false if all of it is.
func written(base *snapshot.Input, traffic, access, mesh, virtual, external []byte) (*snapshot.Input, bool) {
	in, m := *base, *base.Management
	in.Management = &m
	meta := metav1.ObjectMeta{Name: "fuzzed", Namespace: snapshot.DefaultNamespace, Generation: 1}
	some := false
	t := &networkingv1.TrafficPolicy{ObjectMeta: meta}
	if json.Unmarshal(traffic, &t.Spec) == nil {
		m.TrafficPolicies, some = []*networkingv1.TrafficPolicy{t}, true
	}
	a := &networkingv1.AccessPolicy{ObjectMeta: meta}
	if json.Unmarshal(access, &a.Spec) == nil {
		m.AccessPolicies, some = []*networkingv1.AccessPolicy{a}, true
	}
	v := &networkingv1.VirtualMesh{ObjectMeta: meta}
	if json.Unmarshal(mesh, &v.Spec) == nil {
		m.VirtualMeshes, some = []*networkingv1.VirtualMesh{v}, true
	}
	d := &enterprisev1beta1.VirtualDestination{ObjectMeta: meta}
	if json.Unmarshal(virtual, &d.Spec) == nil {
		m.VirtualDestinations, some = []*enterprisev1beta1.VirtualDestination{d}, true
	}
	e := &discoveryv1.Destination{ObjectMeta: meta}
	if json.Unmarshal(external, &e.Spec) == nil {
		m.Destinations, some = []*discoveryv1.Destination{e}, true
	}
	return &in, some
}
