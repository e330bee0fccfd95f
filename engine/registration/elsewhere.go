package registration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// serving reports whether a serve holds the lease and has renewed it lately.
func (d *deregistration) serving(ctx context.Context) bool {
	held, err := d.management.isHeld(ctx, d.MgmtNamespace, cluster.LeaseName)
	return err == nil && held
}

// elsewhere looks in the other clusters for objects that refer to this one. It
// waits until a running serve has deleted them; without one, it only reports them.
func (d *deregistration) elsewhere(ctx context.Context) {
	others, unreadable, err := d.others(ctx)
	if err != nil {
		d.report.note("other clusters may have objects that refer to this one, which `meshctl serve` deletes; the clusters could not be listed: " + kube.Text(err))
		return
	}
	serving := d.serving(ctx)
	left, failed := d.leading(ctx, others)
	for deadline := time.Now().Add(d.ServeWait); serving && left > 0 && time.Now().Before(deadline) && ctx.Err() == nil; {
		time.Sleep(collectPause)
		left, failed = d.leading(ctx, others)
	}
	unreadable = append(unreadable, failed...)
	slices.Sort(unreadable)
	if unreadable = slices.Compact(unreadable); len(unreadable) > 0 {
		d.report.note("these clusters could not be searched for objects that refer to this one: " + strings.Join(unreadable, ", "))
	}
	switch {
	case left > 0 && serving:
		d.report.note(fmt.Sprintf("objects in other clusters that still refer to this one after %s: %d; `meshctl serve` is deleting them", d.ServeWait, left))
	case left > 0:
		d.report.note(fmt.Sprintf("objects in other clusters that still refer to this one: %d; no `meshctl serve` holds the Lease %s/%s; the next one deletes them", left, d.MgmtNamespace, cluster.LeaseName))
	}
}

// leading counts the objects that lead to the cluster, and names the clusters
// of which that is not known.
func (d *deregistration) leading(ctx context.Context, others []other) (left int, failed []string) {
	for _, o := range others {
		n, err := o.leadingTo(ctx, d.plane, d.Name)
		if err != nil {
			failed = append(failed, o.name)
		}
		left += n
	}
	return left, failed
}

// other is another registered cluster.
type other struct {
	*server
	name string
}

// others connects to the other registered clusters with their stored credentials.
func (d *deregistration) others(ctx context.Context) (reached []other, unreadable []string, err error) {
	list, err := d.management.clientset.CoreV1().Secrets(d.MgmtNamespace).List(ctx, metav1.ListOptions{FieldSelector: "type=" + cluster.SecretType})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: listing kubeconfig Secrets: %w", d.management.label, err)
	}
	all := make([]other, len(list.Items))
	var group errgroup.Group
	group.SetLimit(parallelChecks)
	for i := range list.Items {
		group.Go(func() error {
			// One that cannot be reached is reported, and delays nothing.
			s, err := d.management.stored(ctx, &list.Items[i], d.UserAgent, d.Timeout)
			if err != nil {
				s = nil
			}
			all[i] = other{s, list.Items[i].Name}
			return nil
		})
	}
	_ = group.Wait() // the functions above return nil
	for _, o := range all {
		switch {
		case o.name == d.Name:
		case o.server == nil:
			unreadable = append(unreadable, o.name)
		default:
			reached = append(reached, o)
		}
	}
	return reached, unreadable, nil
}

// leadingTo counts the objects that federate services of a cluster.
func (o other) leadingTo(ctx context.Context, plane snapshot.Plane, cluster string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	n := 0
	for _, k := range translatedKinds() {
		selector := labels.Set{snapshot.NetworkingOwnerLabel: plane.Namespace, snapshot.ClusterLabel: o.name}.String()
		err := collecting(o.server).each(ctx, kindResource(k), selector, func(m *metav1.PartialObjectMetadata) {
			if plane.Owns(m.Labels) && strings.HasSuffix(m.Annotations[snapshot.FederationAnnotation], "."+cluster) {
				n++
			}
		})
		if err != nil && !apierrors.IsForbidden(err) {
			return n, err
		}
	}
	return n, nil
}
