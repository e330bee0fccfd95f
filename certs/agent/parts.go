package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/certs/restart"
	"github.com/meshctl/meshctl/certs/verify"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	"github.com/meshctl/meshctl/engine/kube"
)

// Parts are the Verifier and the Restarter of a cluster: they see what its control planes sign and its workloads hold, and
// restart them.
type Parts struct {
	// Client of the cluster.
	Client kube.Clientset
	// Address of a control plane that its pods cannot be asked for, because it runs elsewhere; empty to ask the pods.
	Address string
	// TokenFile has the token for the CA of istiod, and ClusterID is the name by which istiod knows the cluster.
	TokenFile, ClusterID string

	mu     sync.Mutex
	meshes map[string]*seen
}

// seen is a mesh with what was seen of it last.
type seen struct {
	looker *verify.Looker
	labels map[string]string
	last   verify.Result
	roller restart.Roller
}

// mesh returns what is known of a mesh.
func (p *Parts) mesh(target *MeshTarget) *seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.meshes[target.Name]
	if m == nil || m.looker.Namespace != target.Namespace || !maps.Equal(m.labels, target.Labels) {
		m = &seen{labels: target.Labels, looker: verify.NewLooker(verify.Options{
			Client: p.Client, Namespace: target.Namespace, ControlPlane: target.Labels,
			Address: p.Address, TokenFile: p.TokenFile, ClusterID: p.ClusterID,
		}), roller: restart.Roller{Client: p.Client, ControlPlane: target.Namespace}}
		if p.meshes == nil {
			p.meshes = map[string]*seen{}
		}
		p.meshes[target.Name] = m
	}
	return m
}

// Look implements Verifier.
func (p *Parts) Look(ctx context.Context, target MeshTarget) (MeshState, error) {
	m := p.mesh(&target)
	request := verify.Request{
		Root: target.Root, Bundle: target.Requested, SecretRoots: target.Data[pki.RootCertKey], SecretWritten: target.Written,
		Earlier: target.Earlier, Skew: target.Skew, Namespace: target.Namespace, Timeout: target.NamespaceTimeout, LeaveOut: target.LeaveOut,
	}
	if len(target.Data) > 0 {
		// One that cannot be read is reported by the decision, and istiod does not start with it.
		request.Secret, _ = pki.ReadCACerts(target.Data)
	}
	result, err := m.looker.Look(ctx, request)
	if err != nil {
		return MeshState{}, err
	}
	if result.Blind {
		return MeshState{}, fmt.Errorf("the control plane in namespace %s could not be asked: %s", target.Namespace, strings.Join(result.Problems, "; "))
	}
	m.last = result
	return MeshState{
		ControlPlane: result.ControlPlane, Namespaces: result.Namespaces, Trusting: result.Trusting, Presenting: result.Presenting,
		Trusted: result.Trusted, Presented: result.Presented, Signing: result.Signing, HandedOut: result.HandedOut,
		Known: result.Known, MultiRoot: result.MultiRoot, Behind: result.Behind,
		NeedsControlPlane: result.NeedsControlPlane != "",
		NeedsWorkloads:    slices.ContainsFunc(result.NeedsWorkloads, func(p verify.Pod) bool { return !verify.LeftOut(result.Behind, p.Namespace) }),
	}, nil
}

// Restart implements Restarter: the control plane, if it has to take up the Secret, and else the workloads that hold
// things up.
func (p *Parts) Restart(ctx context.Context, directive *certificatesv1.PodBounceDirective, target MeshTarget, _ MeshState,
	save func(context.Context, *certificatesv1.PodBounceDirectiveStatus) error,
) (waiting string, err error) {
	m := p.mesh(&target)
	pods, err := m.toRestart(ctx)
	if err != nil {
		return "", err
	}
	plan, err := restart.NewPlan(ctx, p.Client, pods, directive.Spec.PodsToBounce)
	if err != nil {
		return "", err
	}
	m.roller.Cause = restart.Cause(target.UID, target.Data)
	step, err := m.roller.Follow(ctx, directive, plan, save)
	for _, untouched := range []*[]restart.Untouched{&plan.Untouched, &step.Untouched} {
		*untouched = slices.DeleteFunc(*untouched, func(u restart.Untouched) bool { return verify.LeftOut(m.last.Behind, u.Namespace) })
	}
	return waitingFor(&step, plan), err
}

// toRestart are the pods that hold things up.
func (m *seen) toRestart(ctx context.Context) ([]restart.Pod, error) {
	var out []restart.Pod
	if m.last.NeedsControlPlane != "" {
		controlPlane, _, err := m.looker.Pods(ctx)
		if err != nil {
			return nil, err
		}
		for _, pod := range controlPlane {
			out = append(out, restart.Pod{Namespace: pod.Namespace, Name: pod.Name, Class: restart.ControlPlane})
		}
	}
	for _, pod := range m.last.NeedsWorkloads {
		class := restart.Workload
		if pod.Gateway {
			class = restart.Gateway
		}
		out = append(out, restart.Pod{Namespace: pod.Namespace, Name: pod.Name, Class: class})
	}
	return out, nil
}

// waitingFor says what restarts are under way; empty if none are.
func waitingFor(step *restart.Progress, plan restart.Plan) string {
	untouched := slices.Concat(plan.Untouched, step.Untouched)
	switch {
	case step.Stopped != "":
		return "restarts have stopped: " + step.Stopped
	case len(step.Stuck) > 0:
		return fmt.Sprintf("%s; nothing more is restarted in its namespace (others: %d rolling, %d to come)", step.Stuck[0], len(step.Rolling)-len(step.Stuck), step.Pending-step.Held)
	case len(step.Restarted)+len(step.Rolling) > 0:
		return fmt.Sprintf("restarts are under way: %d started or rolling, %d to come", len(step.Restarted)+len(step.Rolling), step.Pending)
	case len(untouched) > 0:
		return fmt.Sprintf("%s must be restarted by its owner: %s", untouched[0].Owner, untouched[0].Reason)
	}
	return ""
}
