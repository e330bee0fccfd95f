package watch

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// List lists the cluster now, beside what is watched, with the same rules of what is kept of objects. Of ConfigMaps only those are read that
// others name, so that they are not listed. Unlisted are kinds that cannot be, with the reason. A kind that the API server does not serve
// has no objects.
func (l *Local) List(ctx context.Context) (listed *snapshot.Cluster, unlisted map[snapshot.Kind]string, err error) {
	s := l.member.settings
	seed := &snapshot.Cluster{Name: l.member.next.Name}
	cache, err := newManagedCache(l.config, &mirror.Link{}, s.scheme, s.plane, seed, s.keep, kube.NewBudget(s.bounds), func() {})
	if err != nil {
		return nil, nil, err
	}
	defer cache.stop()
	unlisted = map[snapshot.Kind]string{snapshot.ConfigMap: "only those are read that others name"}
	for _, f := range cache.feeds {
		switch err := f.read(ctx); {
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case err == nil, kube.IsAbsent(err):
		case apierrors.IsForbidden(err):
			unlisted[f.kind()] = "the agent's account may not list it"
		default:
			unlisted[f.kind()] = kube.Reason(l.config.Host, err)
		}
	}
	listed = &snapshot.Cluster{Name: seed.Name}
	cache.copyTo(listed)
	return listed, unlisted, nil
}
