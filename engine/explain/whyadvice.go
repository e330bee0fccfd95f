package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/meshctl/meshctl/engine/access"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// adviser says why a call is refused, and what would have to be added to allow it.
type adviser struct{ *query }

// refusedByOthers blames the policies on another service with the same pods, where those on a service itself would allow a call. It
// reports whether that is so.
func (q adviser) refusedByOthers(out *Outcome, d *snapshot.DestinationPlan, port uint32, call *snapshot.Call) bool {
	own := access.Decide(d.Mesh, ownRules(d), call)
	if len(own.By) == 0 {
		return false
	}
	for _, ref := range d.Callers.SharedWith {
		other := q.destinations[ref]
		if other == nil {
			continue
		}
		decision := access.Decide(other.Mesh, ownRules(other), call)
		if len(decision.By) > 0 || decision.Nearest == nil {
			continue
		}
		reason, change := q.nearestRule(other, &decision, port, call.PodPort)
		out.Reason = policiesText(own.By) + verb(len(own.By), " allows it", " allow it") + ", but the pods of " + d.Ref.Name + " are also those of " + other.Ref.Name + ": " + reason
		out.Change = change
		return true
	}
	return false
}

// refusedInFront blames the policies on other services in front of the same pods, where none selects a service itself.
func (q adviser) refusedInFront(out *Outcome, d *snapshot.DestinationPlan, port uint32, group *podGroup, decision *access.Decision) {
	out.Reason = "no AccessPolicy selects " + d.Ref.Name + ", but " + othersText(group.others)
	for _, o := range group.others {
		if decision.Nearest == nil || !slices.ContainsFunc(access.RulesFor(o, q.mesh), func(r snapshot.EffectiveRule) bool { return r.Policy == decision.Nearest.Policy }) {
			continue
		}
		reason, change := q.nearestRule(o, decision, port, group.port)
		out.Reason, out.Change = out.Reason+": "+reason, change
		return
	}
	out.Reason += ", and the policies there allow nobody who comes from mesh " + q.mesh.Ref.Name
}

// nearestRule says why the rule that comes nearest to allowing the request does not, and what would
// have to be changed in it; nil if that is not an addition.
func (q adviser) nearestRule(d *snapshot.DestinationPlan, n *access.Decision, port, podPort uint32) (reason string, change *Addition) {
	name, text := kindAndName(n.Nearest.Policy), strconv.FormatUint(uint64(port), 10)
	if !isHTTPPort(d, port) && slices.ContainsFunc(n.Obstacles, func(o access.Obstacle) bool { return o == access.WrongMethod || o == access.WrongPath }) {
		return fmt.Sprintf("%s allows methods or paths only, and proxies see no requests on port %d; allow the port in a policy without allowedMethods and allowedPaths", name, port), nil
	}
	if slices.Contains(n.Obstacles, access.WrongPort) && slices.ContainsFunc(d.Access, func(r *snapshot.AccessRule) bool {
		return r.Origin.Ref == n.Nearest.Policy && slices.Contains(r.Ports, port)
	}) {
		return fmt.Sprintf("%s allows port %s, but not on pods that listen for it on %d: others listen there for a port that it does not allow", name, text, podPort), nil
	}
	change = &Addition{Policy: n.Nearest.Policy}
	var not, add []string
	for _, obstacle := range n.Obstacles {
		switch obstacle {
		case access.WrongCaller:
			change.Caller = q.account()
			not, add = append(not, q.caller()), append(add, "add "+q.caller()+" to spec.sourceSelector")
		case access.WrongMethod:
			change.Method = q.request.Method
			not, add = append(not, "method "+q.request.Method), append(add, "add "+q.request.Method+" to spec.allowedMethods")
		case access.WrongPath:
			change.Path = q.request.proxied().PathOnly()
			not, add = append(not, "path "+q.request.proxied().PathOnly()), append(add, "add "+q.request.proxied().PathOnly()+" to spec.allowedPaths")
		case access.WrongPort:
			change.Port = port
			not, add = append(not, "port "+text), append(add, "add "+text+" to spec.allowedPorts")
		}
	}
	change.Text = "in " + name + ", " + strings.Join(add, " and ") + q.alsoOpens(n.Nearest.Policy)
	if len(n.Nearest.With) > 0 {
		change.Text += "; the same pods are also behind other services, so allow it in " + policiesText(n.Nearest.With) + ", too"
	}
	return fmt.Sprintf("no AccessPolicy on %s allows it; the nearest is %s, which does not allow %s", d.Ref.Name, name, strings.Join(not, " and ")), change
}

// alsoOpens says how many other services an addition to a policy opens, too.
func (q adviser) alsoOpens(policy snapshot.Ref) string {
	p := q.policies[policy]
	if p == nil {
		return ""
	}
	others := -1 // the one that is asked for
	for i := range p.Verdicts {
		if p.Verdicts[i].Accepted {
			others++
		}
	}
	if others < 1 {
		return ""
	}
	return "; the policy is for " + snapshot.Count(others, "other service") + ", too, which that opens as well: for this one only, create another policy"
}

// account is the service account of the callers; zero if they have none.
func (q adviser) account() commonv1.ClusterObjectRef {
	k := q.workload.Spec.Kubernetes
	if k == nil {
		return commonv1.ClusterObjectRef{}
	}
	return commonv1.ClusterObjectRef{Name: account(q.workload), Namespace: k.Controller.Namespace, ClusterName: k.Controller.ClusterName}
}

// caller is the service account of the callers, in words.
func (q adviser) caller() string {
	k := q.workload.Spec.Kubernetes
	if k == nil {
		return q.workload.Name
	}
	return fmt.Sprintf("service account %s/%s of %s", k.Controller.Namespace, account(q.workload), k.Controller.ClusterName)
}

// command creates a policy that allows the callers on a Destination.
func (q adviser) command(d *snapshot.DestinationPlan) string {
	from, to := q.workload.Spec.Kubernetes, d.Destination.Spec.KubeService
	if from == nil || to == nil {
		return "meshctl create accesspolicy"
	}
	return fmt.Sprintf("meshctl create accesspolicy %s --source-account %s.%s.%s --destination %s.%s.%s",
		to.Ref.Name, account(q.workload), from.Controller.Namespace, from.Controller.ClusterName, to.Ref.Name, to.Ref.Namespace, to.Ref.ClusterName)
}
