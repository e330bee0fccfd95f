package restart

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	"github.com/meshctl/meshctl/engine/kube"
)

const (
	// RestartedAt is kubectl's annotation in a template.
	RestartedAt = "kubectl.kubernetes.io/restartedAt"
	// CauseAnnotation is beside it, and says what for. Who edits the controller can write it: it decides only whether that
	// one controller restarts.
	CauseAnnotation = "certificates.mesh.gloo.solo.io/restart-cause"
)

const (
	// minRolling and rollingPercent are how many controllers roll at once, whichever is more, and maxRolling is the most.
	minRolling     = 2
	rollingPercent = 10
	maxRolling     = 100
	// stopAt is in how many namespaces rollouts do not progress before no other restarts either: that is no fault of one
	// namespace any more.
	stopAt = 3
	// defaultDeadline is that of Deployments. maxDeadline bounds what they say themselves.
	defaultDeadline = 10 * time.Minute
	maxDeadline     = time.Hour
)

// Roller restarts controllers for one cause.
type Roller struct {
	// Client of the cluster.
	Client kube.Clientset
	// Cause is why; see Cause.
	Cause string
	// ControlPlane is the namespace of the mesh's control plane: a rollout that does not progress there stops all others.
	ControlPlane string
	// Most is how many controllers roll at once; 0 for 2, or 10 % if that is more, but no more than 100.
	Most int
	// Deadline is how long a rollout may take without progress; 0 for 10 minutes. A Deployment that says more may have up to
	// an hour.
	Deadline time.Duration
	// Rolling are the controllers that were restarted, for this cause or another one, and are not complete. Step keeps it;
	// it is for the caller to store, so that others can go on.
	Rolling []certificatesv1.RollingController
	// Before is called before a controller restarts, when it is in Rolling; if it fails, the restart is not made. It may be
	// nil.
	Before func(context.Context, Controller) error
	// Now is the clock; nil for time.Now.
	Now func() time.Time

	// progress is when a controller last progressed, by its UID.
	progress map[types.UID]progress
}

// Progress is how far the controllers of a plan are.
type Progress struct {
	// Restarted are those that this step restarted.
	Restarted []Controller
	// Rolling are those under way, Kind namespace/name and counts.
	Rolling []string
	// Stuck says which of them do not progress, and why. Others in their namespaces wait.
	Stuck []string
	// Complete and Pending count those of the plan that are restarted, and that have to be. Held are those of Pending that
	// wait for what is stuck in their namespace.
	Complete, Pending, Held int
	// Stopped says why nothing is restarted any more; it is empty while something may.
	Stopped string
	// Untouched are further controllers of the plan for which a restart would do nothing.
	Untouched []Untouched
}

// Done reports whether nothing is left to do or to wait for.
func (p *Progress) Done() bool { return p.Stopped == "" && p.Pending == 0 && len(p.Rolling) == 0 }

// Stalled says what all that is left waits for; empty if some of it progresses.
func (p *Progress) Stalled() string {
	switch {
	case p.Stopped != "":
		return p.Stopped
	case len(p.Stuck) > 0 && len(p.Restarted) == 0 && len(p.Rolling) == len(p.Stuck) && p.Pending == p.Held:
		return p.Stuck[0]
	}
	return ""
}

// Step does the next safe thing, and does not wait. Call it again until it is Done; a Plan made anew each time is right, too.
func (r *Roller) Step(ctx context.Context, plan Plan) (Progress, error) {
	var p Progress
	under, err := r.look(ctx, &p)
	if err != nil {
		return p, err
	}
	pending, err := r.pending(ctx, plan, &p)
	if err != nil {
		return p, err
	}
	p.Pending = len(pending)
	pending = slices.DeleteFunc(pending, func(one pendingOne) bool { return under.stuck[one.Namespace] != "" })
	p.Held = p.Pending - len(pending)
	if p.Stopped != "" || len(pending) == 0 {
		return p, nil
	}
	return p, r.start(ctx, pending, under, r.most(plan), &p)
}

func (r *Roller) most(plan Plan) int {
	if r.Most > 0 {
		return r.Most
	}
	return min(max(minRolling, len(plan.Controllers)*rollingPercent/100), maxRolling)
}

func (r *Roller) now() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}

// pendingOne is a controller of the plan that was not restarted yet.
type pendingOne struct {
	Controller
	uid     types.UID
	version string
}

// pending are the controllers of the plan that were not restarted for this cause, in order.
func (r *Roller) pending(ctx context.Context, plan Plan, p *Progress) ([]pendingOne, error) {
	var out []pendingOne
	for _, c := range plan.Controllers {
		found, err := r.get(ctx, c.Kind, c.Namespace, c.Name)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("%s: %w", c.String(), err)
		}
		switch {
		case r.rolls(found.meta.UID):
		case found.template.Annotations[CauseAnnotation] == r.Cause:
			p.Complete++
		case found.refuses != "":
			p.Untouched = append(p.Untouched, Untouched{Owner: c.String(), Namespace: c.Namespace, Reason: found.refuses, Pods: len(c.Pods)})
		default:
			out = append(out, pendingOne{c, found.meta.UID, found.meta.ResourceVersion})
		}
	}
	return out, nil
}

// start restarts as many of the first wave as may roll.
func (r *Roller) start(ctx context.Context, pending []pendingOne, under underway, most int, p *Progress) error {
	wave := pending[0].wave()
	if slices.ContainsFunc(under.waves, func(other string) bool { return other != wave }) {
		return nil // the wave before is not complete
	}
	rolling := len(under.waves)
	for _, one := range pending {
		if rolling >= most || one.wave() != wave {
			return nil
		}
		r.Rolling = append(r.Rolling, certificatesv1.RollingController{
			Kind: one.Kind, Namespace: one.Namespace, Name: one.Name, UID: one.uid, Wave: wave, Cause: r.Cause,
		})
		if r.Before != nil {
			if err := r.Before(ctx, one.Controller); err != nil {
				return fmt.Errorf("%s: is not restarted: %w", one.String(), err)
			}
		}
		err := r.restart(ctx, &one)
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			continue // it changed meanwhile: the next step sees how
		}
		if err != nil {
			return fmt.Errorf("%s: cannot be restarted: %w", one.String(), err)
		}
		rolling++
		p.Restarted = append(p.Restarted, one.Controller)
		p.Rolling = append(p.Rolling, one.String()+": begins")
		p.Pending--
	}
	return nil
}

// restart writes the annotations at once, and only if the controller is as it was read: whoever else restarted it has
// changed it.
func (r *Roller) restart(ctx context.Context, one *pendingOne) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": one.version},
		"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": map[string]string{
			RestartedAt: r.now().UTC().Format(time.RFC3339), CauseAnnotation: r.Cause,
		}}}},
	})
	if err != nil {
		return err
	}
	apps, options := r.Client.AppsV1(), metav1.PatchOptions{FieldManager: "meshctl-restart"}
	switch one.Kind {
	case deployment:
		_, err = apps.Deployments(one.Namespace).Patch(ctx, one.Name, types.StrategicMergePatchType, patch, options)
	case daemonSet:
		_, err = apps.DaemonSets(one.Namespace).Patch(ctx, one.Name, types.StrategicMergePatchType, patch, options)
	case statefulSet:
		_, err = apps.StatefulSets(one.Namespace).Patch(ctx, one.Name, types.StrategicMergePatchType, patch, options)
	}
	return err
}

func (r *Roller) get(ctx context.Context, kind, namespace, name string) (*rollout, error) {
	apps := r.Client.AppsV1()
	switch kind {
	case daemonSet:
		found, err := apps.DaemonSets(namespace).Get(ctx, name, metav1.GetOptions{})
		return ofDaemonSet(found), err
	case statefulSet:
		found, err := apps.StatefulSets(namespace).Get(ctx, name, metav1.GetOptions{})
		return ofStatefulSet(found), err
	}
	found, err := apps.Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
	return ofDeployment(found), err
}
