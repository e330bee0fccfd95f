package enginetest

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	endpointv1 "k8s.io/api/discovery/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Reordered returns an Input in which the lists inside of objects that have no
// order, because controllers write them from sets, are shuffled. The lists of an
// Input itself are ascending by contract, and the order in other objects is the
// user's. Shuffle is that of a rand.Rand.
func Reordered(in *snapshot.Input, shuffle func(n int, swap func(i, j int))) (*snapshot.Input, error) {
	out := in
	for ref, object := range in.Objects {
		reordered := object.DeepCopyObject().(snapshot.APIObject)
		lists := []any{reordered.GetOwnerReferences()}
		switch o := reordered.(type) {
		case *endpointv1.EndpointSlice:
			lists = append(lists, o.Endpoints, o.Ports)
		case *corev1.Service:
			lists = append(lists, o.Status.LoadBalancer.Ingress)
		case *corev1.Node:
			lists = append(lists, o.Status.Addresses)
		}
		for _, list := range lists {
			shuffle(reflect.ValueOf(list).Len(), reflect.Swapper(list))
		}
		var err error
		if out, err = out.With(ref.Cluster, reordered); err != nil {
			return nil, err
		}
	}
	return out, nil
}
