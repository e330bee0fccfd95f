package restart

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	"github.com/meshctl/meshctl/engine/kube"
)

// Class of a pod in its mesh. Lower ones restart first.
type Class int

// The classes.
const (
	// ControlPlane: what it signs with is what others get when they restart.
	ControlPlane Class = iota
	// Gateway takes requests from elsewhere.
	Gateway
	// Workload is every other pod.
	Workload
)

// Pod is one that has to restart.
type Pod struct {
	// Namespace and Name of the pod.
	Namespace, Name string
	// Class of the pod.
	Class Class
}

// Kinds of controllers that are restarted.
const (
	deployment  = "Deployment"
	daemonSet   = "DaemonSet"
	statefulSet = "StatefulSet"
	replicaSet  = "ReplicaSet"
)

// Controller is one to restart.
type Controller struct {
	// Kind is Deployment, DaemonSet or StatefulSet.
	Kind, Namespace, Name string
	// Class is the first class of its pods.
	Class Class
	// Entry is the index of the entry that selects it; 0 if there are none.
	Entry int
	// Pods are the names of those that have to restart, ascending.
	Pods []string
}

// String is Kind namespace/name.
func (c *Controller) String() string { return c.Kind + " " + c.Namespace + "/" + c.Name }

func (c *Controller) wave() string { return fmt.Sprintf("%d.%d", c.Entry, c.Class) }

// Untouched are pods that have to restart, and are not restarted.
type Untouched struct {
	// Owner is what owns the pods, or the pod itself: Kind namespace/name.
	Owner string `json:"owner"`
	// Namespace of both.
	Namespace string `json:"namespace"`
	// Reason says why, and what the user can do.
	Reason string `json:"reason"`
	// Pods is how many.
	Pods int `json:"pods"`
}

// Plan is what to restart, in order.
type Plan struct {
	// Controllers in the order in which they restart.
	Controllers []Controller
	// Untouched ascend by owner.
	Untouched []Untouched
}

// NewPlan finds the controllers of pods. With entries, only what they select is restarted, in their order. Pods that are
// gone are left out.
func NewPlan(ctx context.Context, client kube.Clientset, pods []Pod, entries []certificatesv1.PodSelector) (Plan, error) {
	p := planner{client: client, controllers: map[string]*Controller{}, untouched: map[string]*Untouched{}, sets: map[string]*metav1.OwnerReference{}}
	for _, pod := range pods {
		if err := p.add(ctx, pod, entries); err != nil {
			return Plan{}, err
		}
	}
	var plan Plan
	for _, c := range p.controllers {
		slices.Sort(c.Pods)
		plan.Controllers = append(plan.Controllers, *c)
	}
	slices.SortFunc(plan.Controllers, func(a, b Controller) int {
		return cmp.Or(cmp.Compare(a.Entry, b.Entry), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	for _, u := range p.untouched {
		plan.Untouched = append(plan.Untouched, *u)
	}
	slices.SortFunc(plan.Untouched, func(a, b Untouched) int { return cmp.Compare(a.Owner, b.Owner) })
	return plan, nil
}

type planner struct {
	client      kube.Clientset
	controllers map[string]*Controller
	untouched   map[string]*Untouched
	// sets are the owners of ReplicaSets, each read once; nil if it has none.
	sets map[string]*metav1.OwnerReference
}

func (p *planner) add(ctx context.Context, pod Pod, entries []certificatesv1.PodSelector) error {
	found, err := p.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && found.DeletionTimestamp != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	owner, err := p.owner(ctx, found)
	if err != nil {
		return err
	}
	self := "Pod " + pod.Namespace + "/" + pod.Name
	if owner == nil {
		p.leave(pod.Namespace, self, "nothing would make it again; delete it and create it again yourself")
		return nil
	}
	c := Controller{Kind: owner.Kind, Namespace: pod.Namespace, Name: owner.Name, Class: pod.Class}
	if reason := notOurs(owner); reason != "" {
		p.leave(pod.Namespace, c.String(), reason)
		return nil
	}
	if c.Entry = selecting(entries, found); c.Entry < 0 {
		p.leave(pod.Namespace, c.String(), "no entry of the PodBounceDirective selects it; add one, or restart it yourself")
		return nil
	}
	known := p.controllers[c.String()]
	if known == nil {
		known = &c
		p.controllers[c.String()] = known
	}
	known.Class, known.Entry = min(known.Class, c.Class), min(known.Entry, c.Entry)
	known.Pods = append(known.Pods, pod.Name)
	return nil
}

func (p *planner) leave(namespace, owner, reason string) {
	if p.untouched[owner] == nil {
		p.untouched[owner] = &Untouched{Owner: owner, Namespace: namespace, Reason: reason}
	}
	p.untouched[owner].Pods++
}

// owner is the controller of a pod: of a ReplicaSet, its Deployment or what else it has.
func (p *planner) owner(ctx context.Context, pod metav1.Object) (*metav1.OwnerReference, error) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != replicaSet || !isApps(owner) {
		return owner, nil
	}
	id := pod.GetNamespace() + "/" + owner.Name
	if above, ok := p.sets[id]; ok {
		return cmp.Or(above, owner), nil
	}
	set, err := p.client.AppsV1().ReplicaSets(pod.GetNamespace()).Get(ctx, owner.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return owner, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ReplicaSet %s: %w", id, err)
	}
	p.sets[id] = metav1.GetControllerOf(set)
	return cmp.Or(p.sets[id], owner), nil
}

func isApps(owner *metav1.OwnerReference) bool {
	return owner.APIVersion == appsv1.SchemeGroupVersion.String()
}

// notOurs says why the pods of an owner are not restarted; empty if they are.
func notOurs(owner *metav1.OwnerReference) string {
	switch {
	case isApps(owner) && slices.Contains([]string{deployment, daemonSet, statefulSet}, owner.Kind):
		return ""
	case isApps(owner) && owner.Kind == replicaSet:
		return "a ReplicaSet without a Deployment does not replace its pods; delete them yourself, one after the other"
	case owner.Kind == "Rollout":
		return "Argo Rollouts restarts it: kubectl argo rollouts restart " + owner.Name
	case owner.Kind == "Job":
		return "a Job is not restarted; its pods end by themselves, or delete it and create it again"
	}
	return "pods of a " + owner.Kind + " (" + owner.APIVersion + ") are restarted by what makes them; restart them there"
}
