package watch

import (
	"cmp"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// newClient prepares a client that decodes into the types of a scheme, each
// object by itself.
func newClient(config *rest.Config, scheme *runtime.Scheme, contentType string, budget *kube.Budget) (*kube.Client, error) {
	return kube.NewClient(config, kube.ClientOptions{
		Serializer:  lenient{serializer.NewCodecFactory(scheme).WithoutConversion()},
		ContentType: contentType,
		Budget:      budget,
	})
}

// mirroredKinds are the kinds of a side that the management plane writes, or of which it writes statuses.
func mirroredKinds(side snapshot.Side) []snapshot.Kind {
	return snapshot.Kinds(side, snapshot.Write|snapshot.WriteStatus|snapshot.InClusters)
}

// wireScheme has the kinds of a side with the types of a full scheme. What the management plane writes is decoded for the mirror.
func wireScheme(full *runtime.Scheme, side snapshot.Side) *runtime.Scheme {
	out := runtime.NewScheme()
	metav1.AddToGroupVersion(out, schema.GroupVersion{Version: "v1"})
	for _, kind := range snapshot.Kinds(side, snapshot.Watch|snapshot.Write|snapshot.WriteStatus|snapshot.InClusters) {
		gvk := kind.Info().GroupVersionKind
		metav1.AddToGroupVersion(out, gvk.GroupVersion())
		if kind.Info().Access&^snapshot.Watch != 0 {
			mirror.AddTo(out, kind)
			continue
		}
		for _, name := range []string{gvk.Kind, gvk.Kind + "List"} {
			named := gvk.GroupVersion().WithKind(name)
			if example, err := full.New(named); err == nil { // what is no part of it is not read
				out.AddKnownTypeWithName(named, example)
			}
		}
	}
	return out
}

// lenient makes decoders that put a brokenObject in the place of an object that
// cannot be decoded, such as one of a newer Istio with a value that this program
// does not know. It would make the whole list unreadable.
type lenient struct{ runtime.NegotiatedSerializer }

// DecoderToVersion implements runtime.NegotiatedSerializer.
func (l lenient) DecoderToVersion(d runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	return lenientDecoder{l.NegotiatedSerializer.DecoderToVersion(d, gv)}
}

type lenientDecoder struct{ runtime.Decoder }

// Decode implements runtime.Decoder.
func (d lenientDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (out runtime.Object, gvk *schema.GroupVersionKind, err error) {
	caught := kube.Catch(func() { out, gvk, err = d.Decoder.Decode(data, defaults, into) })
	if err = cmp.Or(caught, err); err == nil || into != nil {
		return out, gvk, err
	}
	if partial := d.partial(data, err); partial != nil {
		return partial, gvk, nil
	}
	return nil, gvk, err
}

// partial decodes what failed as a whole: a list item by item, an object by its
// name. It returns nil if the data is neither.
func (d lenientDecoder) partial(data []byte, why error) runtime.Object {
	var raw struct {
		metav1.TypeMeta
		Metadata struct {
			Namespace          string `json:"namespace"`
			Name               string `json:"name"`
			ResourceVersion    string `json:"resourceVersion"`
			Continue           string `json:"continue"`
			RemainingItemCount *int64 `json:"remainingItemCount"`
		} `json:"metadata"`
		Items []json.RawMessage `json:"items"`
	}
	if json.Unmarshal(data, &raw) != nil { // such as Protobuf
		return nil
	}
	m := raw.Metadata
	if raw.Items == nil {
		if m.Name == "" {
			return nil
		}
		return &brokenObject{err: why, ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, ResourceVersion: m.ResourceVersion}}
	}
	kind := schema.FromAPIVersionAndKind(raw.APIVersion, strings.TrimSuffix(raw.Kind, "List"))
	list := &internalversion.List{ListMeta: metav1.ListMeta{
		ResourceVersion: m.ResourceVersion, Continue: m.Continue, RemainingItemCount: m.RemainingItemCount,
	}}
	for _, item := range raw.Items {
		object, _, err := d.Decode(item, &kind, nil)
		if err != nil {
			return nil
		}
		list.Items = append(list.Items, object)
	}
	return list
}
