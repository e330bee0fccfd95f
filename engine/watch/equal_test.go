package watch

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	istiometav1alpha1 "istio.io/api/meta/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"
	typev1beta1 "istio.io/api/type/v1beta1"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	istiosecurityv1 "istio.io/client-go/pkg/apis/security/v1"
	corev1 "k8s.io/api/core/v1"
	kubenetworkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/randfill"

	"github.com/meshctl/meshctl/engine"
	filtersv1alpha1 "github.com/meshctl/meshctl/engine/api/filters/v1alpha1"
	gatewayv1 "github.com/meshctl/meshctl/engine/api/gateway/v1"
	telemetryv1 "github.com/meshctl/meshctl/engine/api/telemetry/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// comparer compares random objects of a feed's kind.
type comparer interface {
	feeder
	compareRandomObjects(t *testing.T)
}

// compareRandomObjects checks that objects of any content can be compared and
// stored, before and after they were stripped, and that a copy equals its original.
func (f *feed[T]) compareRandomObjects(t *testing.T) {
	t.Helper()
	copied := func(o T) T {
		c, ok := o.DeepCopyObject().(T)
		require.True(t, ok)
		return c
	}
	random := rand.New(rand.NewPCG(3, 4))
	filler := randfill.NewWithSeed(1).NilChance(0.3).NumElements(0, 3).MaxDepth(8).Funcs(
		func(e *runtime.RawExtension, c randfill.Continue) { e.Raw = []byte(c.String(5)) })
	another := func() T {
		o, ok := f.lister.Kind.New().(T)
		require.True(t, ok)
		fillObject(filler, random, reflect.ValueOf(o).Elem(), 4)
		o.SetNamespace("default")
		o.SetName("a")
		return o
	}
	for range 30 {
		a, b := another(), another()
		require.True(t, same(a, copied(a)))
		require.NotPanics(t, func() { same(a, b) })
		require.NoError(t, f.Add(copied(a)))
		require.NoError(t, f.Update(copied(b)))
		require.NoError(t, f.Replace([]any{copied(a)}, ""))
		f.strip(a)
		f.strip(b)
		require.True(t, same(a, copied(a)))
		require.NotPanics(t, func() { same(a, b) })
	}
}

// fillObject puts random values into an object, field by field. Depth bounds messages in messages.
func fillObject(filler *randfill.Filler, random *rand.Rand, object reflect.Value, depth int) {
	for i := range object.NumField() {
		field := object.Field(i).Addr().Interface()
		if message, ok := field.(proto.Message); ok {
			fillMessage(random, message.ProtoReflect(), depth)
		} else {
			filler.Fill(field)
		}
	}
}

// fillMessage puts random values into a protobuf message.
func fillMessage(random *rand.Rand, m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		isMessage := field.Message() != nil
		if random.IntN(3) == 0 || isMessage && depth == 0 {
			continue
		}
		value := func(list func() protoreflect.Value) protoreflect.Value {
			if !isMessage {
				return randomScalar(random, field)
			}
			v := list()
			fillMessage(random, v.Message(), depth-1)
			return v
		}
		switch {
		case field.IsMap():
			for range random.IntN(3) {
				key := randomScalar(random, field.MapKey()).MapKey()
				if field.MapValue().Message() == nil {
					m.Mutable(field).Map().Set(key, randomScalar(random, field.MapValue()))
				} else if depth > 0 {
					fillMessage(random, m.Mutable(field).Map().Mutable(key).Message(), depth-1)
				}
			}
		case field.IsList():
			list := m.Mutable(field).List()
			for range random.IntN(3) {
				list.Append(value(list.NewElement))
			}
		default:
			m.Set(field, value(func() protoreflect.Value { return m.NewField(field) }))
		}
	}
}

func randomScalar(random *rand.Rand, field protoreflect.FieldDescriptor) protoreflect.Value {
	n := random.IntN(5)
	switch field.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n > 2)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(n))
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(int64(n))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(uint64(n))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(n))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(n))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(make([]byte, n))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString("abcde"[:n])
	default:
		panic("the test does not know the protobuf kind " + field.Kind().String())
	}
}

// TestObjectsOfAnyKindCanBeCompared goes over all kinds that are followed.
func TestObjectsOfAnyKindCanBeCompared(t *testing.T) {
	t.Parallel()
	managed := managedCache(t, snapshot.Plane{Namespace: "gloo-mesh"}, "west", func() {})
	management := managementCache(t, snapshot.Plane{Namespace: "gloo-mesh"}, withStatuses)
	for _, f := range append(feedsOf(managed), management.feeds...) {
		kind := f.kind()
		if !isRead(f) {
			continue
		}
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			c, ok := f.(comparer)
			require.True(t, ok)
			c.compareRandomObjects(t)
		})
	}
}

// edited stores an object, then a change that strip removes, then one that it keeps.
func edited[T object](t *testing.T, strip func(T) bool, stored, ignored, kept T) {
	t.Helper()
	for _, o := range []T{stored, ignored, kept} {
		o.SetNamespace("default")
		o.SetName("a")
	}
	changes := 0
	c := newStore(nil, strip, func() { changes++ })
	require.NoError(t, c.Replace([]any{stored}, ""))
	before := c.list()
	ignored.SetLabels(map[string]string{"edited": "yes"})
	ignored.SetAnnotations(map[string]string{"edited": "yes"})
	ignored.SetGeneration(2)
	require.NoError(t, c.Update(ignored))
	assert.True(t, snapshot.SameSlice(before, c.list()), "%T: an edit that is not read", stored)
	require.NoError(t, c.Update(kept))
	assert.False(t, snapshot.SameSlice(before, c.list()), "%T: an edit that is read", stored)
	assert.Equal(t, 2, changes, "%T", stored)
}

// ofMesh strips objects of a type of a mesh.
func ofMesh[T object]() func(T) bool {
	for _, dialect := range engine.Dialects() {
		if strip := dialect.Reads[kindOf[T]()]; strip != nil {
			return func(o T) bool { strip(o); return true }
		}
	}
	return nil
}

func TestEditsOfIstioObjects(t *testing.T) {
	t.Parallel()
	edited(t, ofMesh[*istionetworkingv1.VirtualService](), &istionetworkingv1.VirtualService{Spec: networking.VirtualService{Hosts: []string{"a"}}},
		&istionetworkingv1.VirtualService{Spec: networking.VirtualService{Hosts: []string{"a"}}, Status: istiometav1alpha1.IstioStatus{ObservedGeneration: 2}},
		&istionetworkingv1.VirtualService{Spec: networking.VirtualService{Hosts: []string{"a"}, Tcp: []*networking.TCPRoute{{}}}})
	edited(t, ofMesh[*gatewayv1.HTTPRoute](), &gatewayv1.HTTPRoute{}, &gatewayv1.HTTPRoute{}, &gatewayv1.HTTPRoute{Spec: gatewayv1.HTTPRouteSpec{Hostnames: []string{"a"}}})
	edited(t, ofMesh[*gatewayv1.Gateway](), &gatewayv1.Gateway{}, &gatewayv1.Gateway{Status: gatewayv1.GatewayStatus{Addresses: []gatewayv1.Address{{Value: "a"}}}},
		&gatewayv1.Gateway{Spec: gatewayv1.GatewaySpec{GatewayClassName: "istio"}})
	notProgrammed := []gatewayv1.ListenerStatus{{Name: "a", Conditions: []metav1.Condition{{Type: gatewayv1.Programmed, Status: metav1.ConditionFalse}}}}
	edited(t, ofMesh[*gatewayv1.ListenerSet](), &gatewayv1.ListenerSet{}, &gatewayv1.ListenerSet{Status: gatewayv1.ListenerSetStatus{Listeners: []gatewayv1.ListenerStatus{{Name: "a"}}}},
		&gatewayv1.ListenerSet{Status: gatewayv1.ListenerSetStatus{Listeners: notProgrammed}})
	edited(t, ofMesh[*gatewayv1.ReferenceGrant](), &gatewayv1.ReferenceGrant{}, &gatewayv1.ReferenceGrant{}, &gatewayv1.ReferenceGrant{Spec: gatewayv1.ReferenceGrantSpec{To: []gatewayv1.GrantTo{{Kind: "Service"}}}})
	toService := gatewayv1.BackendTLSPolicySpec{TargetRefs: []gatewayv1.PolicyTarget{{Kind: "Service"}}}
	edited(t, ofMesh[*gatewayv1.BackendTLSPolicy](), &gatewayv1.BackendTLSPolicy{}, &gatewayv1.BackendTLSPolicy{}, &gatewayv1.BackendTLSPolicy{Spec: toService})
	edited(t, ofMesh[*kubenetworkingv1.Ingress](), &kubenetworkingv1.Ingress{}, &kubenetworkingv1.Ingress{Spec: kubenetworkingv1.IngressSpec{DefaultBackend: &kubenetworkingv1.IngressBackend{}}},
		&kubenetworkingv1.Ingress{Spec: kubenetworkingv1.IngressSpec{Rules: []kubenetworkingv1.IngressRule{{Host: "a"}}}})
	edited(t, ofMesh[*istionetworkingv1.ServiceEntry](), &istionetworkingv1.ServiceEntry{Spec: networking.ServiceEntry{Hosts: []string{"a"}, Resolution: networking.ServiceEntry_DNS}},
		&istionetworkingv1.ServiceEntry{
			Spec:   networking.ServiceEntry{Hosts: []string{"a"}, Resolution: networking.ServiceEntry_DNS},
			Status: networking.ServiceEntryStatus{Addresses: []*networking.ServiceEntryAddress{{Value: "240.240.0.1"}}},
		},
		&istionetworkingv1.ServiceEntry{Spec: networking.ServiceEntry{Hosts: []string{"a"}, ExportTo: []string{"."}}})
	edited(t, ofMesh[*istionetworkingv1.DestinationRule](), &istionetworkingv1.DestinationRule{Spec: networking.DestinationRule{Host: "a", TrafficPolicy: &networking.TrafficPolicy{}}},
		&istionetworkingv1.DestinationRule{Spec: networking.DestinationRule{Host: "a", TrafficPolicy: &networking.TrafficPolicy{OutlierDetection: &networking.OutlierDetection{}}}},
		&istionetworkingv1.DestinationRule{Spec: networking.DestinationRule{Host: "a", TrafficPolicy: &networking.TrafficPolicy{Tls: &networking.ClientTLSSettings{}}}})
	edited(t, ofMesh[*istionetworkingv1.DestinationRule](), &istionetworkingv1.DestinationRule{Spec: networking.DestinationRule{Host: "a"}},
		&istionetworkingv1.DestinationRule{Spec: networking.DestinationRule{Host: "a"}, Status: istiometav1alpha1.IstioStatus{ObservedGeneration: 1}},
		&istionetworkingv1.DestinationRule{Spec: networking.DestinationRule{Host: "b"}})
	edited(t, ofMesh[*istionetworkingv1.DestinationRule](), &istionetworkingv1.DestinationRule{Spec: networking.DestinationRule{Host: "a", WorkloadSelector: &typev1beta1.WorkloadSelector{MatchLabels: map[string]string{"app": "a"}}}},
		&istionetworkingv1.DestinationRule{Spec: networking.DestinationRule{Host: "a", WorkloadSelector: &typev1beta1.WorkloadSelector{MatchLabels: map[string]string{"app": "a"}}, TrafficPolicy: nil}},
		&istionetworkingv1.DestinationRule{Spec: networking.DestinationRule{Host: "a", WorkloadSelector: &typev1beta1.WorkloadSelector{MatchLabels: map[string]string{"app": "b"}}}})
	edited(t, ofMesh[*istionetworkingv1.Sidecar](), &istionetworkingv1.Sidecar{}, &istionetworkingv1.Sidecar{Spec: networking.Sidecar{Ingress: []*networking.IstioIngressListener{{Bind: "x"}}}},
		&istionetworkingv1.Sidecar{Spec: networking.Sidecar{WorkloadSelector: &networking.WorkloadSelector{Labels: map[string]string{"app": "a"}}}})
	edited(t, ofMesh[*istiosecurityv1.AuthorizationPolicy](), &istiosecurityv1.AuthorizationPolicy{Spec: security.AuthorizationPolicy{Rules: []*security.Rule{{}}}},
		&istiosecurityv1.AuthorizationPolicy{Spec: security.AuthorizationPolicy{Rules: []*security.Rule{{}}}},
		&istiosecurityv1.AuthorizationPolicy{Spec: security.AuthorizationPolicy{Rules: []*security.Rule{{From: []*security.Rule_From{{}}}, {}}}})
	edited(t, ofMesh[*istiosecurityv1.PeerAuthentication](), &istiosecurityv1.PeerAuthentication{}, &istiosecurityv1.PeerAuthentication{},
		&istiosecurityv1.PeerAuthentication{Spec: security.PeerAuthentication{Mtls: &security.PeerAuthentication_MutualTLS{}}})
	edited(t, ofMesh[*istionetworkingv1.Sidecar](), &istionetworkingv1.Sidecar{Spec: networking.Sidecar{OutboundTrafficPolicy: &networking.OutboundTrafficPolicy{EgressProxy: &networking.Destination{Host: "a"}}}},
		&istionetworkingv1.Sidecar{Spec: networking.Sidecar{OutboundTrafficPolicy: &networking.OutboundTrafficPolicy{EgressProxy: &networking.Destination{Host: "b"}}}},
		&istionetworkingv1.Sidecar{Spec: networking.Sidecar{OutboundTrafficPolicy: &networking.OutboundTrafficPolicy{}}})
	edited(t, ofMesh[*istiosecurityv1.RequestAuthentication](), &istiosecurityv1.RequestAuthentication{Spec: security.RequestAuthentication{JwtRules: []*security.JWTRule{{}}}},
		&istiosecurityv1.RequestAuthentication{Spec: security.RequestAuthentication{JwtRules: []*security.JWTRule{{Jwks: "{}"}}}},
		&istiosecurityv1.RequestAuthentication{Spec: security.RequestAuthentication{JwtRules: []*security.JWTRule{{FromParams: []string{"a"}}}}})
	patch := func(at string) filtersv1alpha1.Patch {
		return filtersv1alpha1.Patch{Match: filtersv1alpha1.PatchMatch{Context: at}}
	}
	edited(t, ofMesh[*filtersv1alpha1.EnvoyFilter](), &filtersv1alpha1.EnvoyFilter{Spec: filtersv1alpha1.Spec{ConfigPatches: []filtersv1alpha1.Patch{patch("ANY")}}},
		&filtersv1alpha1.EnvoyFilter{Spec: filtersv1alpha1.Spec{ConfigPatches: []filtersv1alpha1.Patch{patch("ANY"), patch("ANY")}}},
		&filtersv1alpha1.EnvoyFilter{Spec: filtersv1alpha1.Spec{ConfigPatches: []filtersv1alpha1.Patch{patch("GATEWAY")}}})
	edited(t, ofMesh[*filtersv1alpha1.WasmPlugin](), &filtersv1alpha1.WasmPlugin{}, &filtersv1alpha1.WasmPlugin{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "b"}}},
		&filtersv1alpha1.WasmPlugin{Spec: filtersv1alpha1.Spec{Match: []filtersv1alpha1.Match{{Mode: "CLIENT"}}}})
	edited(t, ofMesh[*filtersv1alpha1.TrafficExtension](), &filtersv1alpha1.TrafficExtension{}, &filtersv1alpha1.TrafficExtension{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "b"}}},
		&filtersv1alpha1.TrafficExtension{Spec: filtersv1alpha1.Spec{Selector: &filtersv1alpha1.Selector{}}})
	edited(t, ofMesh[*telemetryv1.Telemetry](), &telemetryv1.Telemetry{}, &telemetryv1.Telemetry{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "b"}}},
		&telemetryv1.Telemetry{Spec: telemetryv1.Spec{Metrics: []telemetryv1.Metrics{{Overrides: []telemetryv1.Override{{}}}}}})
}

// TestEditsOfWorkloadEntries: of these, labels are read wherever they stand, and that one is not healthy.
func TestEditsOfWorkloadEntries(t *testing.T) {
	t.Parallel()
	changes := 0
	c := newStore(nil, ofMesh[*istionetworkingv1.WorkloadEntry](), func() { changes++ })
	entry := func(change func(*istionetworkingv1.WorkloadEntry)) any {
		o := &istionetworkingv1.WorkloadEntry{Spec: networking.WorkloadEntry{Address: "192.0.2.1", Labels: map[string]string{"app": "a"}, Network: "a"}}
		o.Namespace, o.Name = "shop", "a"
		change(o)
		return o
	}
	require.NoError(t, c.Replace([]any{entry(func(*istionetworkingv1.WorkloadEntry) {})}, ""))
	for i, change := range []func(*istionetworkingv1.WorkloadEntry){
		func(o *istionetworkingv1.WorkloadEntry) {
			o.Annotations, o.Spec.Network = map[string]string{"a": "b"}, "b"
		},
		func(o *istionetworkingv1.WorkloadEntry) { o.Labels = map[string]string{"app": "b"} },
		func(o *istionetworkingv1.WorkloadEntry) {
			o.Annotations = map[string]string{"proxy.istio.io/health-checks-enabled": "true"}
		},
	} {
		require.NoError(t, c.Update(entry(change)))
		assert.Equal(t, 1+i, changes, i)
	}
}

// TestSerializedMessagesEqualFreshOnes: a message that was printed or sent has
// other internal state than one that was not.
func TestSerializedMessagesEqualFreshOnes(t *testing.T) {
	t.Parallel()
	entry := func() *istionetworkingv1.ServiceEntry {
		return &istionetworkingv1.ServiceEntry{Spec: networking.ServiceEntry{Hosts: []string{"a"}}}
	}
	used := entry()
	_, err := proto.Marshal(&used.Spec)
	require.NoError(t, err)
	assert.True(t, same(entry(), used))
	assert.True(t, same(&corev1.Pod{}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}}), "nil and empty are the same")
}
