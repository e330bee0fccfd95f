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

	"github.com/meshctl/meshctl/engine/kube"
)

const (
	// RestartedAt is kubectl's annotation in a template.
	RestartedAt = "kubectl.kubernetes.io/restartedAt"
	// CauseAnnotation is beside it, and says what for.
	CauseAnnotation = "certificates.mesh.gloo.solo.io/restart-cause"
	// CauseLabel is on the controller, so that those which roll are found.
	CauseLabel = CauseAnnotation
	// WaveAnnotation is on the controller: with which others it rolls.
	WaveAnnotation = "certificates.mesh.gloo.solo.io/restart-wave"
)

const (
	// minRolling and rollingPercent are how many controllers roll at once, whichever is more.
	minRolling     = 2
	rollingPercent = 10
	// defaultDeadline is that of Deployments.
	defaultDeadline = 10 * time.Minute
)

// Roller restarts controllers for one cause.
type Roller struct {
	// Client of the cluster.
	Client kube.Clientset
	// Cause is why; see Cause. It must be a label's value.
	Cause string
	// Most is how many controllers roll at once; 0 for 2, or 10 % if that is more.
	Most int
	// Deadline is how long a DaemonSet or StatefulSet may take without progress; 0 for 10 minutes. Deployments have their own.
	Deadline time.Duration
	// Before is called before a controller restarts; if it fails, the restart is not made. It may be nil.
	Before func(context.Context, Controller) error
	// Now is the clock; nil for time.Now.
	Now func() time.Time

	// progress is when the counts of a controller last changed, by its UID.
	progress map[types.UID]progress
}

type progress struct {
	counts string
	at     time.Time
}

// Progress is how far the controllers of a plan are.
type Progress struct {
	// Restarted are those that this step restarted.
	Restarted []Controller
	// Rolling are those under way for this cause, Kind namespace/name and counts.
	Rolling []string
	// Complete and Pending count those of the plan that are restarted, and that have to be.
	Complete, Pending int
	// Stopped says which rollout does not progress; nothing is restarted while it is set.
	Stopped string
	// Untouched are further controllers of the plan for which a restart would do nothing.
	Untouched []Untouched
}

// Done reports whether nothing is left to do or to wait for.
func (p *Progress) Done() bool { return p.Stopped == "" && p.Pending == 0 && len(p.Rolling) == 0 }

// Step does the next safe thing, and does not wait. Call it again until it is Done; a Plan made anew each time is right, too.
func (r *Roller) Step(ctx context.Context, plan Plan) (Progress, error) {
	var p Progress
	rolling, err := r.rolling(ctx)
	if err != nil {
		return p, err
	}
	under := map[string]string{} // wave by controller
	for _, one := range rolling {
		if one.complete() {
			continue
		}
		under[one.id()] = one.meta.Annotations[WaveAnnotation]
		p.Rolling = append(p.Rolling, one.id()+": "+one.counts())
		if why := r.stuck(one); why != "" && p.Stopped == "" {
			p.Stopped = why
		}
	}
	pending, err := r.pending(ctx, plan, under, &p)
	if err != nil {
		return p, err
	}
	p.Pending = len(pending)
	if p.Stopped != "" || len(pending) == 0 {
		return p, nil
	}
	return p, r.start(ctx, pending, under, r.most(plan), &p)
}

func (r *Roller) most(plan Plan) int {
	if r.Most > 0 {
		return r.Most
	}
	return max(minRolling, len(plan.Controllers)*rollingPercent/100)
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
	version string
}

// pending are the controllers of the plan that were not restarted for this cause, in order.
func (r *Roller) pending(ctx context.Context, plan Plan, under map[string]string, p *Progress) ([]pendingOne, error) {
	var out []pendingOne
	for _, c := range plan.Controllers {
		found, err := r.get(ctx, &c)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("%s: %w", c.String(), err)
		}
		_, rolls := under[found.id()]
		switch {
		case rolls:
		case found.template.Annotations[CauseAnnotation] == r.Cause, found.meta.Labels[CauseLabel] == r.Cause:
			p.Complete++
		case found.refuses != "":
			p.Untouched = append(p.Untouched, Untouched{Owner: c.String(), Reason: found.refuses, Pods: len(c.Pods)})
		default:
			out = append(out, pendingOne{c, found.meta.ResourceVersion})
		}
	}
	return out, nil
}

// start restarts as many of the first wave as may roll.
func (r *Roller) start(ctx context.Context, pending []pendingOne, under map[string]string, most int, p *Progress) error {
	wave := pending[0].wave()
	for _, other := range under {
		if other != wave {
			return nil // the wave before is not complete
		}
	}
	for _, one := range pending {
		if len(under) >= most || one.wave() != wave {
			return nil
		}
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
		under[one.String()] = wave
		p.Restarted = append(p.Restarted, one.Controller)
		p.Rolling = append(p.Rolling, one.String()+": begins")
		p.Pending--
	}
	return nil
}

// restart writes the annotations and the label at once, and only if the controller is as it was read: whoever else
// restarted it has changed it.
func (r *Roller) restart(ctx context.Context, one *pendingOne) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"resourceVersion": one.version, "labels": map[string]string{CauseLabel: r.Cause}, "annotations": map[string]string{WaveAnnotation: one.wave()},
		},
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

func (r *Roller) get(ctx context.Context, c *Controller) (*rollout, error) {
	apps := r.Client.AppsV1()
	switch c.Kind {
	case daemonSet:
		found, err := apps.DaemonSets(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
		return ofDaemonSet(found), err
	case statefulSet:
		found, err := apps.StatefulSets(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
		return ofStatefulSet(found), err
	}
	found, err := apps.Deployments(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
	return ofDeployment(found), err
}

// rolling are all controllers that were restarted for this cause, also those that no plan has any more because their pods
// are new already.
func (r *Roller) rolling(ctx context.Context) ([]*rollout, error) {
	apps, options := r.Client.AppsV1(), metav1.ListOptions{LabelSelector: CauseLabel + "=" + r.Cause}
	var out []*rollout
	deployments, err := apps.Deployments(metav1.NamespaceAll).List(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("Deployments: %w", err)
	}
	for i := range deployments.Items {
		out = append(out, ofDeployment(&deployments.Items[i]))
	}
	daemonSets, err := apps.DaemonSets(metav1.NamespaceAll).List(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("DaemonSets: %w", err)
	}
	for i := range daemonSets.Items {
		out = append(out, ofDaemonSet(&daemonSets.Items[i]))
	}
	statefulSets, err := apps.StatefulSets(metav1.NamespaceAll).List(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("StatefulSets: %w", err)
	}
	for i := range statefulSets.Items {
		out = append(out, ofStatefulSet(&statefulSets.Items[i]))
	}
	slices.SortFunc(out, func(a, b *rollout) int {
		if a.id() < b.id() {
			return -1
		}
		return 1
	})
	return out, nil
}

// stuck says that a rollout does not progress; empty if it does.
func (r *Roller) stuck(one *rollout) string {
	if one.exceeded {
		return fmt.Sprintf("%s exceeded its progress deadline: %s; find out why its new pods do not become available, nothing more is restarted until they are", one.id(), one.counts())
	}
	if one.kind == deployment && one.refuses == "" {
		return "" // its controller tells
	}
	if r.progress == nil {
		r.progress = map[types.UID]progress{}
	}
	deadline := r.Deadline
	if deadline == 0 {
		deadline = defaultDeadline
	}
	last, now := r.progress[one.meta.UID], r.now()
	if counts := one.counts(); last.counts != counts {
		r.progress[one.meta.UID] = progress{counts, now}
		return ""
	}
	if now.Sub(last.at) < deadline {
		return ""
	}
	return fmt.Sprintf("%s has not progressed for %s: %s; find out why, nothing more is restarted until it does", one.id(), deadline, one.counts())
}
