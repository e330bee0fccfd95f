package engine_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestRandomWorldsHaveEveryField: what the properties are tried on leaves no
// field of these kinds out, also none that is added to the API later.
func TestRandomWorldsHaveEveryField(t *testing.T) {
	t.Parallel()
	missing := map[string]bool{}
	for _, field := range snapshot.FieldsOf(reflect.TypeFor[networkingv1.TrafficPolicySpec]()) {
		missing["TrafficPolicy."+field] = true
	}
	for _, field := range snapshot.FieldsOf(reflect.TypeFor[enterprisev1beta1.VirtualDestinationSpec]()) {
		missing["VirtualDestination."+field] = true
	}
	for seed := range seeds(t, rounds, func() bool { return len(missing) == 0 }) {
		w := newRandomWorld(seed)
		for range 40 {
			w.change()
			for _, p := range w.traffic {
				for _, field := range snapshot.FieldsIn(p.Spec) {
					delete(missing, "TrafficPolicy."+field)
				}
			}
			for _, v := range w.virtual {
				for _, field := range snapshot.FieldsIn(v.Spec) {
					delete(missing, "VirtualDestination."+field)
				}
			}
		}
	}
	require.Empty(t, missing)
}

// next writes the field whose turn it is: over all worlds, every one of the
// fields of the type comes round, as each world begins where others do not.
func (w *randomWorld) next(into any, turn *int) {
	v := reflect.ValueOf(into).Elem()
	fields := snapshot.FieldsOf(v.Type())
	path := fields[*turn%len(fields)]
	*turn++
	w.along(v, strings.Split(path, "."), path)
}

// along makes what is on the way to a field, and writes the field.
func (w *randomWorld) along(v reflect.Value, path []string, whole string) {
	switch {
	case len(path) == 0:
		for w.write(v, whole); v.IsZero(); {
			w.write(v, whole)
		}
	case v.Kind() == reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		w.along(v.Elem(), path, whole)
	case v.Kind() == reflect.Slice:
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		w.along(v.Index(w.r.Intn(v.Len())), path, whole)
	default:
		for i := range v.NumField() {
			if jsonName(v.Type().Field(i)) == path[0] {
				w.along(v.Field(i), path[1:], whole)
			}
		}
	}
}

// scatter writes something into a field that a struct has by a name in JSON, or
// into one of its fields if the name is empty.
func (w *randomWorld) scatter(into any, name string) {
	v := reflect.ValueOf(into).Elem()
	at := w.r.Intn(v.NumField())
	for i := range v.NumField() {
		if name != "" && jsonName(v.Type().Field(i)) == name {
			at = i
		}
	}
	w.write(v.Field(at), jsonName(v.Type().Field(at)))
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// write fills a value. Names are such that they mean something here, mostly.
func (w *randomWorld) write(v reflect.Value, path string) {
	if v.Type() == reflect.TypeFor[metav1.Duration]() {
		all := []time.Duration{0, time.Nanosecond, time.Millisecond, time.Second, 2 * time.Second, time.Hour}
		v.Set(reflect.ValueOf(metav1.Duration{Duration: all[w.r.Intn(len(all))]}))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		w.write(v.Elem(), path)
	case reflect.Struct:
		w.writeStruct(v, path)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+w.r.Intn(2), 2))
		for i := range v.Len() {
			w.write(v.Index(i), path)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		key.SetString([]string{"version", "x-" + fmt.Sprint(w.r.Intn(2)), ""}[w.r.Intn(3)])
		w.write(value, path)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(w.word(path))
	case reflect.Bool:
		v.SetBool(w.r.Intn(2) == 0)
	case reflect.Float64:
		v.SetFloat([]float64{0, 0.5, 50, 100, 101}[w.r.Intn(5)])
	default:
		n := []int64{0, 1, 2, 80, 503, 8080, math.MaxInt32}[w.r.Intn(7)]
		if v.CanUint() {
			v.SetUint(uint64(n))
		} else {
			v.SetInt(n)
		}
	}
}

// writeStruct sets some fields: one only where more exclude each other, as they
// mostly do among pointers.
func (w *randomWorld) writeStruct(v reflect.Value, path string) {
	if v.NumField() == 0 {
		return
	}
	one := w.r.Intn(v.NumField())
	for i := range v.NumField() {
		pointer := v.Field(i).Kind() == reflect.Pointer && v.NumField() > 1
		if i == one || !pointer && w.r.Intn(4) > 0 || w.r.Intn(8) == 0 {
			w.write(v.Field(i), path+"."+jsonName(v.Type().Field(i)))
		}
	}
}

// word is a name, or another text, for a field.
func (w *randomWorld) word(path string) string {
	one := func(of ...string) string { return of[w.r.Intn(len(of))] }
	has := func(end string) bool { return strings.HasSuffix(path, end) }
	n := w.r.Intn(randomServices)
	switch {
	case has("clusterName"), has("clusters"):
		return enginetest.Cluster(w.r.Intn(randomClusters))
	case has("virtualDestination.name"):
		return fmt.Sprintf("virtual-%d", w.r.Intn(virtualNames))
	case has("staticDestination.name"):
		return w.external().Name
	case has("virtualDestination.namespace"), has("staticDestination.namespace"), has("virtualMesh.namespace"), has("meshes.namespace"):
		return snapshot.DefaultNamespace
	case has("virtualMesh.name"):
		return one("virtual-mesh", "other")
	case has("meshes.name"):
		return w.base.Management.VirtualMeshes[0].Spec.Meshes[w.r.Intn(randomClusters)].Name
	case has("namespace"), has("namespaces"):
		return enginetest.Namespace(n)
	case has("kubeService.name"), has("services.name"):
		return enginetest.Service(n)
	case has("tlsMode"):
		return one("DISABLE", "SIMPLE", "ISTIO_MUTUAL", "")
	case has("unit"):
		return one("SECOND", "MINUTE", "HOUR", "DAY", "UNKNOWN", "")
	case has("protocol"):
		return one("", "http", "HTTPS", "grpc", "HTTP2", "MONGO", "TCP", "tls")
	case has("region"):
		return one("region-1", "region-2", "")
	case has("hostname"):
		return virtualHost(w.r)
	case has("targetName"):
		return one("http", "tcp")
	case has("method"), has("Methods"):
		return one("GET", "POST", "get", "*")
	case has("labels"), has("subset"):
		return one("v1", "v2", "a b")
	case has("regex"), has("value"):
		return one("a", "/a.*", ".*", "(")
	default:
		return one("a", "/a", "x-user", ".example.com", "", "ä ")
	}
}
