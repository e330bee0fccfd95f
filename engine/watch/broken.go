package watch

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// brokenObject stands for an object that cannot be processed. Of its metadata
// it has namespace and name.
type brokenObject struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	err error
}

// DeepCopyObject returns o: nobody changes a broken object.
func (o *brokenObject) DeepCopyObject() runtime.Object { return o }

// brokenObjects implements feeder.
func (f *feed[T]) brokenObjects(cluster string) []snapshot.Failure {
	return f.unprocessed(f.lister.Kind, cluster)
}

// unprocessed lists the objects that cannot be processed, in no order. The store is that of a kind in a cluster.
func (s *store[T]) unprocessed(kind snapshot.Kind, cluster string) []snapshot.Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []snapshot.Failure
	for k, why := range s.broken {
		message := "meshctl cannot process this object (" + why + ")"
		if _, known := s.latest(k); !isNone(known) {
			message += "; it is used as it was before"
		} else {
			message += "; it is ignored"
		}
		ref := snapshot.Ref{Kind: kind, Cluster: cluster, Namespace: k.namespace, Name: k.name}
		out = append(out, snapshot.Failure{Ref: ref, Reason: snapshot.Reason{Code: snapshot.ObjectUnreadable, What: message}, Parents: []snapshot.Ref{ref}})
	}
	return out
}

// failures lists the objects of all kinds that cannot be processed, in no order.
func (c *clusterCache[V]) failures(cluster string) []snapshot.Failure {
	var out []snapshot.Failure
	for _, f := range c.allFeeds() {
		out = append(out, f.brokenObjects(cluster)...)
	}
	return out
}

// onRejected logs that an object cannot be processed.
func (c *clusterCache[V]) onRejected(kind snapshot.Kind, k key, err error) {
	log := c.log.With("kind", kind.String(), "object", k.namespace+"/"+k.name, "error", err)
	var panicked *kube.PanicError
	if errors.As(err, &panicked) {
		log.Error("object cannot be processed; it is used as it was before, if at all. This is a bug in meshctl, please report it", "stack", string(panicked.Stack))
		return
	}
	log.Error("object cannot be decoded; it is used as it was before, if at all")
}
