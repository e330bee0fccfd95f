package apply

import (
	"cmp"
	"encoding/json"
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

// observed is an object as decoded: the digests of the fields that meshctl applied,
// and of the status, are computed while it is decoded, so that neither is kept in memory.
type observed struct {
	metav1.TypeMeta
	// ObjectMeta has no managed fields and no owners.
	metav1.ObjectMeta
	spec, status digest
	// forged: the status has fields that are not ours.
	forged bool
	// err is why the digests could not be computed; they are zero then, and differ
	// from everything wanted.
	err error
}

// DeepCopyObject returns o: nobody changes an observed object.
func (o *observed) DeepCopyObject() runtime.Object { return o }

// GetObjectKind makes observed a runtime.Object.
func (o *observed) GetObjectKind() schema.ObjectKind { return &o.TypeMeta }

// UnmarshalJSON keeps only what the sink compares.
func (o *observed) UnmarshalJSON(data []byte) error {
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
			ManagedFields     []managed         `json:"managedFields"`
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
		o.spec, o.status = digest{}, digest{}
	}
	return nil
}

// computeDigests computes the digests of the fields that meshctl applied, and of the
// status.
func (o *observed) computeDigests(entries []managed, spec, status json.RawMessage) error {
	ours, err := applied(entries, "")
	if err != nil {
		return err
	}
	value, err := ours.of(spec, "spec")
	if err != nil {
		return err
	}
	o.spec = objectDigest(ours.strings("labels", o.Labels), ours.strings("annotations", o.Annotations), value)
	if ours, err = applied(entries, "status"); err != nil {
		return err
	}
	return o.computeStatus(ours, status)
}

// computeStatus computes the digest of all of a status, because nobody else is to say
// anything there. Registration writes a part of that of a KubernetesCluster; custom
// resources have their kind in lists, too.
func (o *observed) computeStatus(ours fields, status json.RawMessage) error {
	value, err := ours.of(status, "status")
	if err != nil {
		return err
	}
	var all any
	if len(status) > 0 {
		if err := utiljson.Unmarshal(status, &all); err != nil {
			return err
		}
	}
	if o.Kind == snapshot.KubernetesCluster.Info().Kind {
		o.status = statusDigest(value)
		return nil
	}
	o.status = statusDigest(all)
	o.forged = statusDigest(value) != o.status
	return nil
}

// observedList is a list of them, as an API server answers.
type observedList struct {
	metav1.TypeMeta
	metav1.ListMeta `json:"metadata"`
	Items           []observed `json:"items"`
}

// DeepCopyObject returns l: nobody changes it.
func (l *observedList) DeepCopyObject() runtime.Object { return l }

// live is what the mirror keeps of o.
func (o *observed) live(kind snapshot.Kind, cluster string, plane snapshot.Plane) live {
	at, named := o.Labels[snapshot.ClusterLabel]
	l := live{
		version: version(o.ResourceVersion), spec: o.spec, status: o.status,
		here:  named && at == cluster,
		going: o.DeletionTimestamp != nil, created: o.CreationTimestamp.Unix(),
	}
	if ownerLabel(kind) == snapshot.DiscoveryOwnerLabel {
		l.source, l.marked = o.Labels[snapshot.DiscoveryClusterLabel], true
		l.ours = o.Labels[snapshot.DiscoveryOwnerLabel] == plane.Namespace
		return l
	}
	l.ours = plane.Owns(o.Labels)
	l.marked = l.ours && o.Labels[snapshot.PlaneLabel] == plane.ID
	if !l.here {
		l.source = at
	}
	if owner := o.Labels[snapshot.NetworkingOwnerLabel]; named && owner != "" && !l.ours {
		l.other = snapshot.Plane{Namespace: owner, ID: o.Labels[snapshot.PlaneLabel]}
	}
	return l
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

// dial prepares a client for the kinds that the sink writes, each with one small
// type. The budget bounds what the server may send; nil does not.
func dial(config *rest.Config, kinds []snapshot.Kind, warnings rest.WarningHandler, budget *kube.Budget) (*kube.Client, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	for _, k := range kinds {
		gvk := k.Info().GroupVersionKind
		scheme.AddKnownTypeWithName(gvk, &observed{})
		scheme.AddKnownTypeWithName(gvk.GroupVersion().WithKind(gvk.Kind+"List"), &observedList{})
		metav1.AddToGroupVersion(scheme, gvk.GroupVersion())
	}
	return kube.NewClient(config, kube.ClientOptions{
		Serializer: serializer.NewCodecFactory(scheme).WithoutConversion(), Warnings: warnings, Budget: budget,
	})
}

// path is the URL path of an object, or of its subresource.
func (i id) path(subresource string) []string {
	return kube.Path(i.kind, i.namespace, i.name, subresource)
}
