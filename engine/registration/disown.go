package registration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file leaves on a cluster what its mesh uses, as if somebody had written it by hand.

// disown removes the labels of meshctl from what was written for the mesh of the cluster. Requests to the
// agent are not part of that.
func (d *deregistration) disown(ctx context.Context) error {
	labels, annotations := map[string]any{}, map[string]any{snapshot.ParentsAnnotation: nil}
	for _, label := range []string{snapshot.NetworkingOwnerLabel, snapshot.PlaneLabel, snapshot.ClusterLabel} {
		labels[label] = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels, "annotations": annotations}})
	if err != nil {
		return fmt.Errorf("patch of labels: encoding: %w", err)
	}
	for _, k := range translatedKinds() {
		if k.Info().Group == agentGroup {
			continue
		}
		count, err := d.disownKind(ctx, kindResource(k), patch)
		if count > 0 {
			d.report.add(Change{Action: Left, Server: d.remote.side, Kind: k.String(), Count: count})
		}
		if err != nil {
			return err
		}
	}
	d.report.note("what was written for the meshes of cluster " + d.Name + " stays there without an owner; nobody renews the certificates of meshes that have those of a VirtualMesh")
	return nil
}

func (d *deregistration) disownKind(ctx context.Context, r resource, patch []byte) (count int, err error) {
	var mu sync.Mutex
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallelDeletes)
	for _, selector := range translatedSelectors(d.plane, d.Name) {
		err = errors.Join(err, collecting(d.remote).each(ctx, r, selector, func(o *metav1.PartialObjectMetadata) {
			group.Go(func() error {
				_, err := d.remote.meta.Resource(r.GroupVersionResource).Namespace(o.Namespace).Patch(groupCtx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{})
				switch {
				case kube.IsAbsent(err):
					return nil
				case err != nil:
					return fmt.Errorf("%s: %s %s/%s: removing its labels: %w", d.remote.label, r.kind, o.Namespace, o.Name, err)
				}
				mu.Lock()
				defer mu.Unlock()
				count++
				return nil
			})
		}))
	}
	err = errors.Join(err, group.Wait())
	return count, err
}

// removeAgentState removes what an agent that did not let its meshes leave has in its namespace: its requests,
// and its keys, which are in the Secrets of the meshes, too.
func (d *deregistration) removeAgentState(ctx context.Context) error {
	changes, err := d.remote.removeAgentState(ctx, d.RemoteNamespace, func(string) bool { return true })
	d.report.add(changes...)
	return err
}

// removeAgentState removes the requests and keys of an agent in a namespace, of the names that are its.
func (s *server) removeAgentState(ctx context.Context, namespace string, its func(name string) bool) ([]Change, error) {
	names, err := s.namesIn(ctx, certificateRequests, namespace)
	if err != nil {
		return nil, err
	}
	var done []Change
	var failed []error
	remove := func(r resource, name string) {
		if !its(name) {
			return
		}
		changes, err := s.delete(ctx, r, namespace, name)
		done, failed = append(done, changes...), append(failed, err)
	}
	for _, name := range names {
		remove(certificateRequests, name)
	}
	list, err := s.clientset.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{FieldSelector: "type=" + snapshot.KeySecretType})
	if err != nil {
		return done, fmt.Errorf("%s: listing Secrets of namespace %s: %w", s.label, namespace, err)
	}
	for i := range list.Items {
		remove(secrets, list.Items[i].Name)
	}
	return done, errors.Join(failed...)
}
