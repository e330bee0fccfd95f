package registration

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// debt is what a deregistration leaves in a cluster whose agent is away: the agent removes it when it comes back, and serve then drops
// what it knows of the agent, with which the record of the debt goes.
type debt struct{ *deregistration }

// owe has the agent clean the cluster when it comes back, if it has a certificate with which it can.
func (d debt) owe(ctx context.Context) (err error) {
	if d.Store == nil || !d.Force || d.remote != nil || d.secret != nil {
		return nil
	}
	d.owes, err = d.Store(d.management.clientset, d.plane).Owe(ctx, d.Name)
	return err
}

// owner is what the record of the debt goes with; nil if no agent is to pay it. Paid: one has come back already, and nothing is left.
func (d debt) owner(ctx context.Context) (owner *metav1.OwnerReference, paid bool, err error) {
	if !d.owes {
		return nil, false, nil
	}
	secret, err := d.management.get(ctx, secrets, d.MgmtNamespace, snapshot.RelayRecordPrefix+d.Name)
	switch {
	case err != nil:
		return nil, false, err
	case secret == nil:
		d.report.note(fmt.Sprintf("its agent was connected, and has removed what was on the cluster; run `meshctl cluster register %s --relay` if it is to come back", d.Name))
		return nil, true, nil
	}
	return &metav1.OwnerReference{APIVersion: "v1", Kind: secrets.kind, Name: secret.GetName(), UID: secret.GetUID()}, false, nil
}
