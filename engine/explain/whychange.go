package explain

import (
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Changed returns an input with all that would have to be added to AccessPolicies so that the
// request is allowed; nil if that is nothing, or a change of something else.
func (w *Why) Changed(in *snapshot.Input) (*snapshot.Input, error) {
	if w == nil {
		return nil, nil //nolint:nilnil // there is nothing to change
	}
	var out *snapshot.Input
	for i := range w.Outcomes {
		policy := w.Outcomes[i].changedPolicy(in)
		if policy == nil {
			continue
		}
		if out == nil {
			out = in
		}
		var err error
		if out, err = out.With("", policy); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// changedPolicy is the policy with what the outcome asks for; nil if it asks for nothing.
func (o *Outcome) changedPolicy(in *snapshot.Input) *networkingv1.AccessPolicy {
	if o.Change == nil {
		return nil
	}
	policy := &networkingv1.AccessPolicy{}
	switch ref := o.Change.Policy; ref.Kind {
	case snapshot.AccessPolicy:
		stored, ok := in.Find(ref).(*networkingv1.AccessPolicy)
		if !ok {
			return nil
		}
		policy = stored.DeepCopy()
		policy.Generation++
	case snapshot.NoKind:
		k := o.service
		if k == nil {
			return nil
		}
		ref = addedPolicy(in)
		policy.Namespace, policy.Name, policy.Generation = ref.Namespace, ref.Name, 1
		policy.Spec.DestinationSelector = []commonv1.DestinationSelector{{KubeServiceRefs: &commonv1.KubeServiceRefs{Services: []commonv1.ClusterObjectRef{*k}}}}
	default:
		return nil
	}
	spec := &policy.Spec
	if o.Change.Removes {
		if !o.Change.removeFrom(spec) {
			return nil
		}
		return policy
	}
	if o.Change.Caller != (commonv1.ClusterObjectRef{}) {
		spec.SourceSelector = append(spec.SourceSelector, commonv1.IdentitySelector{
			KubeServiceAccountRefs: &commonv1.KubeServiceAccountRefs{ServiceAccounts: []commonv1.ClusterObjectRef{o.Change.Caller}},
		})
	}
	if o.Change.Method != "" {
		spec.AllowedMethods = append(spec.AllowedMethods, o.Change.Method)
	}
	if o.Change.Path != "" {
		spec.AllowedPaths = append(spec.AllowedPaths, o.Change.Path)
	}
	if o.Change.Port != 0 {
		spec.AllowedPorts = append(spec.AllowedPorts, o.Change.Port)
	}
	return policy
}

// addedPolicy is the name of a policy that is tried where there is none to change.
func addedPolicy(in *snapshot.Input) snapshot.Ref {
	return snapshot.Ref{Kind: snapshot.AccessPolicy, Namespace: in.Management.Namespace, Name: "meshctl-why"}
}

// Verify asks again with an Index of what Changed returns, and says of each change why it is not
// enough.
func (w *Why) Verify(after *Index) {
	again := after.Why(w.From, w.To, w.Request)
	if again == nil {
		return
	}
	for i := range w.Outcomes {
		o := &w.Outcomes[i]
		if o.Change == nil {
			continue
		}
		for _, now := range again.Outcomes {
			if now.Destination != o.Destination || now.Subset != o.Subset || now.Verdict != Refused {
				continue
			}
			o.Change.NotEnough = now.Reason
			ref := o.Change.Policy
			if ref.Kind == snapshot.NoKind {
				ref = addedPolicy(after.state.Input)
			}
			if issues := after.issues.about(ref, o.Destination); len(issues) > 0 {
				o.Change.NotEnough = issues[0].Message
			}
		}
	}
}
