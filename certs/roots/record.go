package roots

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// RecordName is the ConfigMap in the management plane's namespace that says what may be trusted.
const RecordName = snapshot.TrustRecord

// Record is what is recorded of a VirtualMesh. What is not in it is a claim, whoever wrote it.
type Record struct {
	// Roots are the fingerprints of the roots that may sign or be trusted: those that were made
	// here, that the VirtualMesh named, or that an administrator accepted.
	Roots []string `json:"roots,omitempty"`
	// Pins are the trust domains of members.
	Pins []snapshot.TrustPin `json:"trustDomains,omitempty"`
	// Making is what the Secret of a root that is being made carries, so that it is known for ours
	// also by a process that begins after the one that made it has died.
	Making string `json:"making,omitempty"`
}

// ReadRecord reads the record of a VirtualMesh; nil if there is none.
func ReadRecord(m *corev1.ConfigMap, vm snapshot.Ref) (*Record, error) {
	text, ok := m.Data[firstName(vm)]
	if !ok {
		return nil, nil
	}
	out := &Record{}
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s, key %s: %w; correct it, or delete the key and run `meshctl trust accept %s`",
			m.Namespace, m.Name, firstName(vm), err, vm.Name)
	}
	return out, nil
}

// WriteRecord changes the record of a VirtualMesh in the ConfigMap; one that is nil goes.
func WriteRecord(m *corev1.ConfigMap, vm snapshot.Ref, record *Record) error {
	if record == nil {
		delete(m.Data, firstName(vm))
		return nil
	}
	slices.Sort(record.Roots)
	record.Roots = slices.Compact(record.Roots)
	slices.SortFunc(record.Pins, snapshot.TrustPin.Compare)
	text, err := yaml.Marshal(record)
	if err != nil {
		return fmt.Errorf("record of VirtualMesh %s/%s: %w", vm.Namespace, vm.Name, err)
	}
	if m.Data == nil {
		m.Data = map[string]string{}
	}
	m.Data[firstName(vm)] = string(text)
	return nil
}

// pin adds pins for meshes that have none, of trust domains that nobody has: whoever translated with
// an older record changes none.
func (r *Record) pin(pins []snapshot.TrustPin) {
	for _, p := range pins {
		taken := slices.ContainsFunc(r.Pins, func(o snapshot.TrustPin) bool {
			return o.Mesh == p.Mesh || slices.ContainsFunc(p.Domains, o.Has)
		})
		if !taken {
			r.Pins = append(r.Pins, p)
		}
	}
}

// record changes the record of a VirtualMesh on the API server. Change gets an empty one if there is
// none, and returns what is to be there.
func (s *Store) record(ctx context.Context, vm snapshot.Ref, change func(*Record) *Record) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	maps := s.clientset.CoreV1().ConfigMaps(s.Namespace)
	failed := func(err error) error {
		return fmt.Errorf("ConfigMap %s/%s, which says what may be trusted, cannot be written: %s", s.Namespace, RecordName, kube.Message(err))
	}
	m, err := maps.Get(ctx, RecordName, metav1.GetOptions{})
	absent := apierrors.IsNotFound(err)
	switch {
	case absent:
		m = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: RecordName, Labels: s.labels()}}
	case err != nil:
		return failed(err)
	}
	before, err := ReadRecord(m, vm)
	if err != nil {
		return err
	}
	after := change(before.clone())
	if after == nil && before == nil || after != nil && after.same(before) {
		return nil
	}
	if err := WriteRecord(m, vm, after); err != nil {
		return err
	}
	if absent {
		m, err = maps.Create(ctx, m, metav1.CreateOptions{FieldManager: snapshot.FieldManager})
	} else {
		m, err = maps.Update(ctx, m, metav1.UpdateOptions{FieldManager: snapshot.FieldManager})
	}
	if err != nil {
		return failed(err)
	}
	s.records.put(m)
	return nil
}

// recordOf is the record of a VirtualMesh; nil if there is none. Problem says why it cannot be read.
func recordOf(maps []*corev1.ConfigMap, vm snapshot.Ref) (record *Record, problem string) {
	if len(maps) == 0 {
		return nil, ""
	}
	record, err := ReadRecord(maps[0], vm)
	if err != nil {
		return nil, err.Error()
	}
	return record, ""
}

// accept makes what an annotation accepts part of the record. A trust domain leaves the member that had it.
func (r *Record) accept(roots []string, pins []snapshot.TrustPin) {
	r.Roots = append(r.Roots, roots...)
	for _, p := range pins {
		for i := range r.Pins {
			r.Pins[i].Domains = slices.DeleteFunc(slices.Clone(r.Pins[i].Domains), p.Has)
		}
		r.Pins = append(slices.DeleteFunc(r.Pins, func(o snapshot.TrustPin) bool { return o.Mesh == p.Mesh || len(o.Domains) == 0 }), p)
	}
}

// pin records the trust domains of members that the Plan found, and what an annotation accepts.
func (s *Store) pin(ctx context.Context, v *view, plan *snapshot.Plan) error {
	if v.recordProblem != "" || plan == nil {
		return nil
	}
	var found []snapshot.TrustPin
	for _, vm := range plan.VirtualMeshes {
		if vm.Ref == v.ref && vm.Trust != nil {
			found = vm.Trust.Pins
		}
	}
	roots, pins, _ := snapshot.AcceptedClaims(v.vm.Annotations[snapshot.TrustAcceptAnnotation])
	change := func(r *Record) *Record {
		r.accept(roots, pins)
		r.pin(found)
		return r
	}
	if change(v.facts.record.clone()).same(v.facts.record) {
		return nil
	}
	return s.record(ctx, v.ref, change)
}

func (r *Record) clone() *Record {
	if r == nil {
		return &Record{}
	}
	return &Record{Roots: slices.Clone(r.Roots), Pins: slices.Clone(r.Pins), Making: r.Making}
}

// same reports whether two records say the same; one that is nil says nothing.
func (r *Record) same(o *Record) bool {
	a, b := &corev1.ConfigMap{}, &corev1.ConfigMap{}
	return WriteRecord(a, snapshot.Ref{}, r.clone()) == nil && WriteRecord(b, snapshot.Ref{}, o.clone()) == nil && reflect.DeepEqual(a.Data, b.Data)
}
