package serve

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// home is where the users' objects live: the management namespace and our
// CustomResourceDefinitions.
type home interface {
	// begin notes what there is, as far as it can be read.
	begin(ctx context.Context)
	// ending returns an error if objects may have vanished because the namespace or a
	// CustomResourceDefinition was deleted, and not one by one by users. They are given
	// by their kinds, with the time at which the oldest one was created.
	ending(ctx context.Context, gone map[snapshot.Kind]time.Time) error
}

// freezeRetry is the time between two looks at what froze the management plane.
const freezeRetry = time.Second

// freeze reports whether an Input must not be translated: what is missing in it was not
// deleted by a user. It returns a channel that says when to look again; nil if the Input
// may be translated.
func (l *loop) freeze(ctx context.Context, input *snapshot.Input) <-chan time.Time {
	before := l.state.Load()
	if l.home == nil || before == nil {
		return nil
	}
	gone := vanished(before.Input, input)
	var err error
	if len(gone) > 0 {
		err = l.home.ending(ctx, gone)
	}
	was := l.frozen.Load()
	if err == nil {
		l.frozen.Store(nil)
		if was != nil {
			l.home.begin(ctx) // what was created again is what there is now
			l.log.Info("changes are carried out again")
		}
		return nil
	}
	reason := err.Error()
	if was == nil || *was != reason {
		l.log.Error("nothing is changed in any cluster", "reason", reason)
	}
	l.frozen.Store(&reason)
	return time.After(freezeRetry)
}

// vanished are the kinds of users' objects of which one is gone, each with the time at which
// the oldest of these was created; zero if it is not known.
func vanished(before, now *snapshot.Input) map[snapshot.Kind]time.Time {
	out := map[snapshot.Kind]time.Time{}
	for kind, list := range now.Management.Lists {
		if isDerived(kind) {
			continue
		}
		eachChange(before.Management.List(kind), list, func(was, is snapshot.APIObject) {
			if is != nil {
				return
			}
			created := was.GetCreationTimestamp().Time
			if oldest, known := out[kind]; !known || created.Before(oldest) {
				out[kind] = created
			}
		})
	}
	if _, known := out[snapshot.KubernetesCluster]; !known && len(goneClusters(before, now)) > 0 {
		out[snapshot.KubernetesCluster] = time.Time{}
	}
	return out
}

// managementHome is a home on an API server.
type managementHome struct {
	client    metadata.Interface
	namespace string
	// known are the UIDs of the namespace and the CustomResourceDefinitions, by name.
	known map[string]types.UID
}

var (
	namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")
	crds       = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
)

func newHome(config *rest.Config, namespace string) (*managementHome, error) {
	client, err := metadata.NewForConfig(kube.Unlimited(config))
	if err != nil {
		return nil, fmt.Errorf("management cluster: building a client: %w", err)
	}
	return &managementHome{client: client, namespace: namespace, known: map[string]types.UID{}}, nil
}

// begin implements home.
func (s *managementHome) begin(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, homeTimeout)
	defer cancel()
	clear(s.known)
	_ = s.checkExists(ctx, namespaces, s.namespace, "", time.Time{})
	for kind := range (&snapshot.Management{}).Lists {
		if !isDerived(kind) {
			_ = s.checkExists(ctx, crds, crdName(kind), "", time.Time{})
		}
	}
}

// ending implements home.
func (s *managementHome) ending(ctx context.Context, gone map[snapshot.Kind]time.Time) error {
	oldest := slices.MinFunc(slices.Collect(maps.Values(gone)), time.Time.Compare)
	err := s.checkExists(ctx, namespaces, s.namespace, "namespace "+s.namespace, oldest)
	for _, kind := range slices.Sorted(maps.Keys(gone)) {
		if err == nil {
			err = s.checkExists(ctx, crds, crdName(kind), "CustomResourceDefinition "+crdName(kind), gone[kind])
		}
	}
	return err
}

// homeTimeout bounds one request.
const homeTimeout = 10 * time.Second

// checkExists returns an error unless an object exists, is not being deleted, and is the one that
// was there when what is gone was created. If nothing was missed when it was made again,
// what was created in it since and is gone was deleted by users.
func (s *managementHome) checkExists(ctx context.Context, resource schema.GroupVersionResource, name, title string, created time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, homeTimeout)
	defer cancel()
	o, err := s.client.Resource(resource).Get(ctx, name, metav1.GetOptions{})
	known := s.known[name]
	switch {
	case apierrors.IsForbidden(err):
		return nil // who may not ask goes on without an answer
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s was deleted, with what users asked for; create it again with those objects, or deregister the clusters", title)
	case err != nil:
		return fmt.Errorf("%s: objects of users are gone, and it is not known why: %w", title, err)
	case o.DeletionTimestamp != nil:
		return fmt.Errorf("%s is being deleted, with what users asked for; create it again with those objects, or deregister the clusters", title)
	case known != "" && known != o.UID && created.Before(o.CreationTimestamp.Time):
		return fmt.Errorf("%s was deleted and created again, and objects of users are missing since; create those again or, if they are to stay away, restart meshctl serve", title)
	}
	s.known[name] = o.UID
	return nil
}

func crdName(kind snapshot.Kind) string { return kind.Info().Resource + "." + kind.Info().Group }
