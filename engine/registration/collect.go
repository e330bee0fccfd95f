package registration

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	pageSize         = 500
	parallelDeletes  = 16
	collectTimeout   = time.Minute
	collectPause     = 200 * time.Millisecond
	quietWhileServed = 2 * time.Second
)

// translatedSelectors select what a management plane wrote to a cluster: with its identity,
// and what versions before wrote without one.
func translatedSelectors(plane snapshot.Plane, cluster string) []string {
	set := labels.Set{snapshot.NetworkingOwnerLabel: plane.Namespace, snapshot.ClusterLabel: cluster}.String()
	return []string{set + "," + snapshot.PlaneLabel + "=" + plane.ID, set + ",!" + snapshot.PlaneLabel}
}

// discoveredSelector selects what was discovered in a cluster.
func discoveredSelector(mgmtNamespace, cluster string) string {
	return labels.Set{snapshot.DiscoveryOwnerLabel: mgmtNamespace, snapshot.DiscoveryClusterLabel: cluster}.String()
}

// translatedKinds are written to registered clusters, in the order of collection.
func translatedKinds() []snapshot.Kind {
	return reversed(snapshot.Kinds(snapshot.ManagedSide, snapshot.Write))
}

// discoveredKinds are written to the management cluster, in the order of collection.
func discoveredKinds() []snapshot.Kind {
	return reversed(snapshot.Kinds(snapshot.ManagementSide, snapshot.Write))
}

func reversed(kinds []snapshot.Kind) []snapshot.Kind {
	out := make([]snapshot.Kind, 0, len(kinds))
	for i := len(kinds) - 1; i >= 0; i-- {
		out = append(out, kinds[i])
	}
	return out
}

// collector deletes objects of a server by their labels.
type collector struct{ *server }

func collecting(s *server) collector { return collector{s} }

// each calls yield for every object of the type that the selector selects, page
// by page. A type that the server does not have has no objects.
func (s collector) each(ctx context.Context, r resource, selector string, yield func(*metav1.PartialObjectMetadata)) error {
	options := metav1.ListOptions{LabelSelector: selector, Limit: pageSize}
	for {
		list, err := s.meta.Resource(r.GroupVersionResource).List(ctx, options)
		if kube.IsAbsent(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: listing %s: %w", s.label, r.Resource, err)
		}
		for i := range list.Items {
			yield(&list.Items[i])
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}

// collect deletes what the selector selects of the kinds, until nothing of it
// is found any more, and for as long as quiet says after that: a serve that has
// not seen the deregistration yet may still write.
func (s collector) collect(ctx context.Context, kinds []snapshot.Kind, selector string, quiet time.Duration) ([]Change, error) {
	ctx, cancel := context.WithTimeout(ctx, collectTimeout)
	defer cancel()
	counts := make([]int, len(kinds))
	last := time.Now()
	for {
		found := 0
		for i, k := range kinds {
			seen, deleted, err := s.collectKind(ctx, kindResource(k), selector)
			counts[i] += deleted
			found += seen
			if err != nil {
				return s.collected(kinds, counts), err
			}
		}
		if found > 0 {
			last = time.Now()
		} else if time.Since(last) >= quiet {
			return s.collected(kinds, counts), nil
		}
		select {
		case <-ctx.Done():
			return s.collected(kinds, counts), fmt.Errorf("%s: objects with labels %s keep coming back or do not go: %w", s.label, selector, ctx.Err())
		case <-time.After(collectPause):
		}
	}
}

func (s collector) collected(kinds []snapshot.Kind, counts []int) []Change {
	var out []Change
	for i, k := range kinds {
		if counts[i] > 0 {
			out = append(out, Change{Action: Deleted, Server: s.side, Kind: k.String(), Count: counts[i]})
		}
	}
	return out
}

// collectKind makes one pass over one type: it returns how many objects it saw,
// those on their way out included, and how many it deleted.
func (s collector) collectKind(ctx context.Context, r resource, selector string) (seen, deleted int, err error) {
	var done atomic.Int64
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallelDeletes)
	err = s.each(ctx, r, selector, func(o *metav1.PartialObjectMetadata) {
		seen++
		if o.DeletionTimestamp != nil {
			return
		}
		group.Go(func() error {
			err := s.deleteExactly(groupCtx, r, o)
			if err == nil {
				done.Add(1)
			}
			return err
		})
	})
	if waited := group.Wait(); err == nil {
		err = waited
	}
	return seen, int(done.Load()), err
}

// deleteExactly deletes the object that was seen, not one that has taken its
// place since.
func (s collector) deleteExactly(ctx context.Context, r resource, o *metav1.PartialObjectMetadata) error {
	uid := o.UID
	err := s.meta.Resource(r.GroupVersionResource).Namespace(o.Namespace).Delete(ctx, o.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !kube.IsAbsent(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("%s: deleting %s %s/%s: %w", s.label, r.kind, o.Namespace, o.Name, err)
	}
	return nil
}

// delete removes one object; no change if it is not there.
func (s *server) delete(ctx context.Context, r resource, namespace, name string) ([]Change, error) {
	err := s.client(r, namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if kube.IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: deleting %s %s: %w", s.label, r.kind, name, err)
	}
	o := object{resource: r, namespace: namespace, name: name}
	return []Change{o.change(s, Deleted)}, nil
}
