package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/api/scheme"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// notRead is the reason of clusters of which only the name was read.
const notRead = "only the management cluster was read"

// ReadOnce reads the management cluster once and watches nothing. Registered
// clusters are listed as Unsynced: only the discovered objects say what is in
// them. An empty namespace means snapshot.DefaultNamespace.
func ReadOnce(ctx context.Context, config *rest.Config, namespace string) (*snapshot.Input, error) {
	namespace = cmp.Or(namespace, snapshot.DefaultNamespace)
	cache, err := newManagementCache(config, &mirror.Link{}, scheme.New(), snapshot.Plane{Namespace: namespace}, withStatuses, func() {})
	if err != nil {
		return nil, err
	}
	defer cache.stop()
	group, bounded := errgroup.WithContext(ctx)
	for _, f := range cache.feeds {
		group.Go(func() error { return f.read(bounded) })
	}
	if err := group.Wait(); err != nil {
		return nil, onceError(ctx, config.Host, cache.client, err)
	}
	management := &snapshot.Management{Namespace: namespace}
	cache.copyTo(management)
	return &snapshot.Input{
		Management: management, Clusters: namedClusters(management), Failures: sortedFailures(cache.failures("")),
		RefuseIntersecting: management.Server().DisallowIntersectingConfig,
	}, nil
}

// onceError says what to do about a management cluster that cannot be read.
func onceError(ctx context.Context, host string, c *kube.Client, err error) error {
	if apierrors.IsNotFound(err) {
		if missing, asked := missingCRDs(ctx, c); asked == nil && len(missing) > 0 {
			return &MissingCRDsError{Host: host, Names: missing}
		}
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	return UnreadError(host, err)
}

// UnreadError says that a management cluster cannot be read, and what to do.
func UnreadError(host string, err error) error {
	return fmt.Errorf("management cluster %s: %w", host, kube.WithNextStep(err))
}

// namedClusters lists the clusters that registrations and discovered objects name.
func namedClusters(m *snapshot.Management) []*snapshot.Cluster {
	domains := map[string]string{}
	name := func(labels map[string]string) {
		if cluster := labels[snapshot.DiscoveryClusterLabel]; cluster != "" {
			domains[cluster] = ""
		}
	}
	for _, o := range m.Meshes {
		name(o.Labels)
	}
	for _, o := range m.Workloads {
		name(o.Labels)
	}
	for _, o := range m.Destinations {
		name(o.Labels)
	}
	for _, o := range m.KubernetesClusters {
		domains[o.Name] = o.Spec.ClusterDomain
	}
	clusters := make([]*snapshot.Cluster, 0, len(domains))
	for cluster, domain := range domains {
		clusters = append(clusters, &snapshot.Cluster{Name: cluster, Domain: domain, Reason: notRead})
	}
	slices.SortFunc(clusters, func(a, b *snapshot.Cluster) int { return strings.Compare(a.Name, b.Name) })
	return clusters
}
