package mirror

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Observed is an object as decoded: the digests of the fields that meshctl applied,
// and of the status, are computed while it is decoded, so that neither is kept in memory.
type Observed struct {
	metav1.TypeMeta
	// ObjectMeta has no managed fields and no owners.
	metav1.ObjectMeta
	spec, status Digest
	since        Transitions
	// forged: the status has fields that are not ours.
	Forged bool
	// err is why the digests could not be computed; they are zero then, and differ
	// from everything wanted.
	err error
	// Raw is the object as it was sent, until Read is called.
	Raw json.RawMessage
	// Typed is what Read made of it.
	Typed runtime.Object
}

// Read decodes the object with a function, once, and forgets what was sent.
func (o *Observed) Read(decode func([]byte) runtime.Object) {
	if o.Raw != nil {
		o.Typed, o.Raw = decode(o.Raw), nil
	}
}

// DeepCopyObject returns o: nobody changes an observed object.
func (o *Observed) DeepCopyObject() runtime.Object { return o }

// GetObjectKind makes observed a runtime.Object.
func (o *Observed) GetObjectKind() schema.ObjectKind { return &o.TypeMeta }

// UnmarshalJSON keeps only what the sink compares.
func (o *Observed) UnmarshalJSON(data []byte) error {
	var wire struct {
		metav1.TypeMeta
		Metadata struct {
			Name              string            `json:"name"`
			Namespace         string            `json:"namespace"`
			ResourceVersion   string            `json:"resourceVersion"`
			CreationTimestamp metav1.Time       `json:"creationTimestamp"`
			DeletionTimestamp *metav1.Time      `json:"deletionTimestamp"`
			Labels            map[string]string `json:"labels"`
			Annotations       map[string]string `json:"annotations"`
			ManagedFields     []ManagedFields   `json:"managedFields"`
		} `json:"metadata"`
		Spec   json.RawMessage `json:"spec"`
		Status json.RawMessage `json:"status"`
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	m := wire.Metadata
	o.TypeMeta = wire.TypeMeta
	o.ObjectMeta = metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, ResourceVersion: m.ResourceVersion, CreationTimestamp: m.CreationTimestamp,
		DeletionTimestamp: m.DeletionTimestamp, Labels: m.Labels, Annotations: m.Annotations,
	}
	// An object without digests must not make the list of all others fail.
	caught := kube.Catch(func() { o.err = o.computeDigests(m.ManagedFields, wire.Spec, wire.Status) })
	if o.err = cmp.Or(caught, o.err); o.err != nil {
		o.spec, o.status, o.since = Digest{}, Digest{}, nil
	}
	o.Raw = slices.Clone(data) // the decoder reuses its own
	return nil
}

// computeDigests computes the digests of the fields that meshctl applied, and of the
// status.
func (o *Observed) computeDigests(entries []ManagedFields, spec, status json.RawMessage) error {
	ours, err := Applied(entries, "")
	if err != nil {
		return err
	}
	value, err := ours.Of(spec, "spec")
	if err != nil {
		return err
	}
	o.spec = ObjectDigest(ours.strings("labels", o.Labels), ours.strings("annotations", o.Annotations), value)
	if ours, err = Applied(entries, "status"); err != nil {
		return err
	}
	return o.computeStatus(ours, status)
}

// computeStatus computes the digest of all of a status, because nobody else is to say
// anything there. Registration writes a part of that of a KubernetesCluster; custom
// resources have their kind in lists, too.
func (o *Observed) computeStatus(ours Fields, status json.RawMessage) error {
	value, err := ours.Of(status, "status")
	if err != nil {
		return err
	}
	var all any
	if len(status) > 0 {
		if err := utiljson.Unmarshal(status, &all); err != nil {
			return err
		}
	}
	o.since = transitionsOf(all)
	if o.Kind == snapshot.KubernetesCluster.Info().Kind {
		o.status = StatusDigest(value)
		return nil
	}
	o.status = StatusDigest(all)
	o.Forged = StatusDigest(value) != o.status
	return nil
}

// observedList is a list of them, as an API server answers.
type observedList struct {
	metav1.TypeMeta
	metav1.ListMeta `json:"metadata"`
	Items           []Observed `json:"items"`
}

// DeepCopyObject returns l: nobody changes it.
func (l *observedList) DeepCopyObject() runtime.Object { return l }

// Object is what the Mirror keeps of o.
func (o *Observed) Object(kind snapshot.Kind, cluster string, plane snapshot.Plane) Object {
	at, named := o.Labels[snapshot.ClusterLabel]
	l := Object{
		Version: version(o.ResourceVersion), Spec: o.spec, Status: o.status, Since: o.since,
		Here:  named && at == cluster,
		Going: o.DeletionTimestamp != nil, Created: o.CreationTimestamp.Unix(),
	}
	if OwnerLabel(kind) == snapshot.DiscoveryOwnerLabel {
		l.Source = o.Labels[snapshot.DiscoveryClusterLabel]
		if o.Labels[snapshot.DiscoveryOwnerLabel] == plane.Namespace {
			l.Owner = Marked // there is no other mark
		}
		return l
	}
	switch {
	case !plane.Owns(o.Labels):
	case o.Labels[snapshot.PlaneLabel] == plane.ID:
		l.Owner = Marked
	default:
		l.Owner = Unmarked
	}
	l.Protects = l.Ours() && ReadRelations(o.Annotations[snapshot.RelationsAnnotation]).Protects
	if !l.Here {
		l.Source = at
	}
	if owner := o.Labels[snapshot.NetworkingOwnerLabel]; named && owner != "" && !l.Ours() {
		l.Other = snapshot.Plane{Namespace: owner, ID: o.Labels[snapshot.PlaneLabel]}
	}
	return l
}

// OwnerLabel is the label with the owner of objects of a kind.
func OwnerLabel(k snapshot.Kind) string {
	switch k {
	case snapshot.Mesh, snapshot.Workload, snapshot.Destination:
		return snapshot.DiscoveryOwnerLabel
	}
	return snapshot.NetworkingOwnerLabel
}

// version is a resource version as a number; versions of one cluster compare.
// What is no number counts as 0, older than all.
func version(s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// AddTo makes a scheme decode the objects of a kind as Observed.
func AddTo(scheme *runtime.Scheme, kind snapshot.Kind) {
	gvk := kind.Info().GroupVersionKind
	scheme.AddKnownTypeWithName(gvk, &Observed{})
	scheme.AddKnownTypeWithName(gvk.GroupVersion().WithKind(gvk.Kind+"List"), &observedList{})
}

// Dial prepares a client that sends what was encoded, and decodes nothing but errors. Warnings receives those of the API server.
func Dial(config *rest.Config, warnings rest.WarningHandler) (*kube.Client, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return kube.NewClient(config, kube.ClientOptions{Serializer: serializer.NewCodecFactory(scheme).WithoutConversion(), Warnings: warnings})
}

// Path is the URL path of an object, or of its subresource.
func (i ID) Path(subresource string) []string {
	return kube.Path(i.Kind, i.Namespace, i.Name, subresource)
}
