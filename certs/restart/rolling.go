package restart

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

// underway are the controllers that roll, as far as they decide what may restart next.
type underway struct {
	// waves are those of the controllers that progress.
	waves []string
	// stuck says by namespace which rollout does not progress there.
	stuck map[string]string
}

// progress is how far a rollout was when it last progressed.
type progress struct {
	left int32
	at   time.Time
}

// look finds out how far the controllers in Rolling are, and forgets those that need not be waited for any more: they are
// complete, gone, or were never restarted because whoever was about to ended before.
func (r *Roller) look(ctx context.Context, p *Progress) (underway, error) {
	under := underway{stuck: map[string]string{}}
	var left []certificatesv1.RollingController
	for _, c := range r.Rolling {
		one, err := r.get(ctx, c.Kind, c.Namespace, c.Name)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return under, fmt.Errorf("%s %s/%s: %w", c.Kind, c.Namespace, c.Name, err)
		case one.meta.UID != c.UID || one.template.Annotations[CauseAnnotation] != c.Cause || one.complete():
			continue
		}
		left = append(left, c)
		p.Rolling = append(p.Rolling, one.id()+": "+one.counts())
		if why := r.stuck(one); why != "" {
			p.Stuck = append(p.Stuck, why)
			under.stuck[c.Namespace] = why
			continue
		}
		under.waves = append(under.waves, c.Wave)
	}
	r.Rolling = left
	maps.DeleteFunc(r.progress, func(uid types.UID, _ progress) bool { return !r.rolls(uid) })
	p.Stopped = r.stopped(under.stuck)
	return under, nil
}

// rolls reports whether a controller is in Rolling.
func (r *Roller) rolls(uid types.UID) bool {
	return slices.ContainsFunc(r.Rolling, func(c certificatesv1.RollingController) bool { return c.UID == uid })
}

// stuck says that a rollout does not progress; empty if it does.
func (r *Roller) stuck(one *rollout) string {
	if one.exceeded {
		return fmt.Sprintf("%s exceeded its progress deadline: %s; find out why its new pods do not become available", one.id(), one.counts())
	}
	deadline := r.Deadline
	if deadline == 0 {
		deadline = max(defaultDeadline, min(one.patience, maxDeadline))
	}
	now := r.now()
	if last, known := r.progress[one.meta.UID]; !known || one.left() < last.left {
		if r.progress == nil {
			r.progress = map[types.UID]progress{}
		}
		r.progress[one.meta.UID] = progress{one.left(), now}
	} else if now.Sub(last.at) >= deadline {
		return fmt.Sprintf("%s has not progressed for %s: %s; find out why", one.id(), deadline, one.counts())
	}
	return ""
}

// stopped says why nothing may restart any more, from what is stuck by namespace; empty if something may.
func (r *Roller) stopped(stuck map[string]string) string {
	if why := stuck[r.ControlPlane]; why != "" {
		return why + "; nothing more is restarted, because that is the namespace of the control plane"
	}
	if len(stuck) < stopAt {
		return ""
	}
	names := slices.Sorted(maps.Keys(stuck))
	return fmt.Sprintf("%s; nothing more is restarted, because rollouts do not progress in %d namespaces (%s)", stuck[names[0]], len(names), strings.Join(names, ", "))
}

// Adopt adds the controllers of a plan to Rolling that their templates say to have been restarted for the cause, and that
// are not complete. It is for a user who goes on where nothing is stored. Whoever edits such a controller can say so.
func (r *Roller) Adopt(ctx context.Context, plan Plan) error {
	for _, c := range plan.Controllers {
		one, err := r.get(ctx, c.Kind, c.Namespace, c.Name)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.String(), err)
		}
		if one.template.Annotations[CauseAnnotation] == r.Cause && !one.complete() && !r.rolls(one.meta.UID) {
			r.Rolling = append(r.Rolling, certificatesv1.RollingController{
				Kind: c.Kind, Namespace: c.Namespace, Name: c.Name, UID: one.meta.UID, Wave: c.wave(), Cause: r.Cause,
			})
		}
	}
	return nil
}
