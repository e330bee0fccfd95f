package relay

import (
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// writtenPrefix is before the names of kinds whose objects are Written.
const writtenPrefix = "written:"

// WrittenName is the name of what a mirror has of a kind that the hub writes.
func WrittenName(k snapshot.Kind) string { return writtenPrefix + KindName(k) }

// WrittenNamed is the kind of such a name; false if it is none.
func WrittenNamed(name string) (snapshot.Kind, bool) {
	rest, ok := strings.CutPrefix(name, writtenPrefix)
	if !ok {
		return snapshot.NoKind, false
	}
	return KindNamed(rest)
}

// Reported are the names of all that an agent tells its hub of a cluster: what there is of the kinds that are read of clusters, and what a
// mirror has of those that the hub writes. Both sides compare all of them at once, so that they have to have the same.
func Reported() (names []string) {
	for kind := range new(snapshot.Cluster).Lists {
		names = append(names, KindName(kind))
	}
	for _, kind := range snapshot.Kinds(snapshot.ManagedSide, snapshot.Write|snapshot.InClusters) {
		names = append(names, WrittenName(kind))
	}
	return names
}

// native are the types of Kubernetes' own groups, which have an encoding that is smaller and faster than JSON.
type native interface {
	Marshal() ([]byte, error)
	Unmarshal(raw []byte) error
}

// Encode is an object on the wire. The same object has the same bytes.
func Encode(o snapshot.APIObject) (raw []byte, err error) {
	caught := kube.Catch(func() {
		if n, ok := o.(native); ok {
			raw, err = n.Marshal()
			return
		}
		raw, err = json.Marshal(o)
	})
	if caught != nil {
		err = caught
	}
	return raw, err
}

// Decode reads an object of a kind that an Input has. An error is about the object.
func Decode(k snapshot.Kind, of Key, raw []byte) (o snapshot.APIObject, err error) {
	caught := kube.Catch(func() {
		o = k.New()
		if n, ok := o.(native); ok {
			err = n.Unmarshal(raw)
			return
		}
		err = json.Unmarshal(raw, o)
	})
	switch {
	case caught != nil:
		return nil, caught
	case err != nil:
		return nil, err
	case o.GetNamespace() != of.Namespace || o.GetName() != of.Name:
		return nil, fmt.Errorf("it was sent as %s/%s and is %s/%s", of.Namespace, of.Name, o.GetNamespace(), o.GetName())
	}
	return o, nil
}

// EncodeWritten is what a mirror has of an object, on the wire.
func EncodeWritten(o mirror.Object) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(&relayv1.Written{
		Version: o.Version, Spec: o.Spec[:], Status: o.Status[:], Created: o.Created, Source: o.Source,
		OtherNamespace: o.Other.Namespace, OtherId: o.Other.ID, Owner: relayv1.Written_Owner(o.Owner),
		Here: o.Here, Going: o.Going, Protects: o.Protects,
	})
}

// DecodeWritten reads what a mirror has of an object.
func DecodeWritten(raw []byte) (mirror.Object, error) {
	w := &relayv1.Written{}
	if err := proto.Unmarshal(raw, w); err != nil {
		return mirror.Object{}, err
	}
	spec, status := w.GetSpec(), w.GetStatus()
	owner := mirror.Owner(w.GetOwner())
	if len(spec) != len(mirror.Digest{}) || len(status) != len(mirror.Digest{}) || owner > mirror.Marked || w.GetOwner() < 0 {
		return mirror.Object{}, fmt.Errorf("digests of %d and %d bytes, and owner %d, are not those of an object", len(spec), len(status), w.GetOwner())
	}
	return mirror.Object{
		Version: w.GetVersion(), Spec: mirror.Digest(spec), Status: mirror.Digest(status), Created: w.GetCreated(), Source: w.GetSource(),
		Other: snapshot.Plane{Namespace: w.GetOtherNamespace(), ID: w.GetOtherId()}, Owner: owner,
		Here: w.GetHere(), Going: w.GetGoing(), Protects: w.GetProtects(),
	}, nil
}
