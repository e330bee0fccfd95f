package status

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestConditions: what follows from the state of a resource, its issues, and what could not be written.
func TestConditions(t *testing.T) {
	t.Parallel()
	conflict := snapshot.Errorf(snapshot.FieldConflict, "change one", "the older one sets it")
	unmet := snapshot.Errorf(snapshot.GatewayNotReady, "start it", "the gateway has no ready pod")
	on := func(cluster string, code snapshot.Code) snapshot.Failure {
		return snapshot.Failure{Ref: snapshot.Ref{Kind: snapshot.VirtualService, Cluster: cluster, Name: "a"}, Reason: snapshot.Reason{Code: code, What: "it is so"}}
	}
	awaited := func(cluster string) snapshot.Failure {
		return snapshot.Failure{Ref: snapshot.Ref{Kind: snapshot.KubernetesCluster, Name: cluster}, Reason: snapshot.Reason{Code: snapshot.ClusterAwaited, What: "it is away"}}
	}
	const notWritten = "not in force as written in "
	for name, c := range map[string]struct {
		causes causes
		state  commonv1.ApprovalState
		want   []string
	}{
		"accepted": {causes{nouns: "destinations", accepted: 2, targets: 2}, commonv1.ApprovalStateAccepted, []string{
			"Accepted True Accepted", "InForce True InForce", "Ready True Ready",
		}},
		"selects nothing": {causes{nouns: "destinations"}, commonv1.ApprovalStateAccepted, []string{
			"Accepted True Accepted", "InForce True SelectsNothing it applies to no destination", "Ready True Ready",
		}},
		"lost a conflict on one of two": {
			causes{rejection: &conflict, conflict: &conflict, nouns: "destinations", accepted: 1, targets: 2}, commonv1.ApprovalStateInvalid, []string{
				"Accepted False FieldConflict the older one sets it; change one", "Conflicted True FieldConflict the older one sets it; change one",
				"InForce False NotAccepted accepted on 1 of 2 destinations", "Ready False FieldConflict the older one sets it; change one",
				"Stalled True FieldConflict the older one sets it; change one",
			},
		},
		"a gateway is down": {causes{unmet: &unmet, nouns: "members", accepted: 2, targets: 2}, commonv1.ApprovalStateAccepted, []string{
			"Accepted True Accepted", "InForce False GatewayNotReady the gateway has no ready pod; start it",
			"Ready False GatewayNotReady the gateway has no ready pod; start it", "Reconciling True GatewayNotReady the gateway has no ready pod; start it",
		}},
		"a gateway is down, and an edit is wrong": {causes{rejection: &conflict, unmet: &unmet, nouns: "members", accepted: 1, targets: 2}, commonv1.ApprovalStateInvalid, []string{
			"Accepted False FieldConflict the older one sets it; change one", "InForce False NotAccepted accepted on 1 of 2 members",
			"Ready False FieldConflict the older one sets it; change one", "Stalled True FieldConflict the older one sets it; change one",
		}},
		"clusters are away": {causes{failures: []snapshot.Failure{awaited("b"), awaited("a"), awaited("b")}, nouns: "destinations", accepted: 1, targets: 1}, commonv1.ApprovalStateFailed, []string{
			"Accepted True Accepted", "InForce False ClusterAwaited " + notWritten + "a, b: it is away",
			"Ready False ClusterAwaited " + notWritten + "a, b: it is away", "Reconciling True ClusterAwaited " + notWritten + "a, b: it is away",
		}},
		"refused": {causes{failures: []snapshot.Failure{on("a", snapshot.WriteFailed), awaited("b")}}, commonv1.ApprovalStateFailed, []string{
			"Accepted True Accepted", "InForce False WriteFailed " + notWritten + "a, b: it is so",
			"Ready False WriteFailed " + notWritten + "a, b: it is so", "Stalled True WriteFailed " + notWritten + "a, b: it is so",
		}},
		"somebody else's object": {causes{failures: []snapshot.Failure{on("", snapshot.ForeignObject)}}, commonv1.ApprovalStateFailed, []string{
			"Accepted True Accepted", "Conflicted True ForeignObject VirtualService a: it is so", "InForce False ForeignObject " + notWritten + "the management cluster: it is so",
			"Ready False ForeignObject " + notWritten + "the management cluster: it is so", "Stalled True ForeignObject " + notWritten + "the management cluster: it is so",
		}},
		"trust is pending": {causes{nouns: "members", accepted: 2, targets: 2}, commonv1.ApprovalStatePending, []string{
			"Accepted True Accepted", "InForce False TrustPending members do not trust each other yet",
			"Ready False TrustPending members do not trust each other yet", "Reconciling True TrustPending members do not trust each other yet",
		}},
	} {
		var got []string
		for _, condition := range c.causes.conditions(7, c.state) {
			assert.EqualValues(t, 7, condition.ObservedGeneration)
			assert.True(t, condition.LastTransitionTime.IsZero(), "who writes it sets the time")
			got = append(got, strings.TrimSpace(fmt.Sprint(condition.Type, " ", condition.Status, " ", condition.Reason, " ", condition.Message)))
		}
		assert.Equal(t, c.want, got, name)
	}
}

// TestConditionsAreBounded: a condition names a few clusters, and counts the others.
func TestConditionsAreBounded(t *testing.T) {
	t.Parallel()
	var failures []snapshot.Failure
	for n := range 1000 {
		failures = append(failures, snapshot.Failure{Ref: snapshot.Ref{Kind: snapshot.ServiceEntry, Cluster: fmt.Sprintf("cluster-%04d", n)}})
	}
	assert.Equal(t, "cluster-0000, cluster-0001, cluster-0002, cluster-0003, cluster-0004 and 995 more clusters", clustersText(failures))
	long := snapshot.Errorf(snapshot.FieldInvalid, "", "%s", strings.Repeat("x", 100_000))
	size := 0
	for _, c := range (&causes{rejection: &long, conflict: &long, failures: failures}).conditions(1, commonv1.ApprovalStateInvalid) {
		size += len(c.Message)
	}
	assert.Less(t, size, 4_000)
}

// TestAVirtualMeshWaitsForTrust: it is not ready before its members trust each other.
func TestAVirtualMeshWaitsForTrust(t *testing.T) {
	t.Parallel()
	vm := &snapshot.VirtualMeshPlan{
		VirtualMesh: &networkingv1.VirtualMesh{}, Issues: []snapshot.Issue{snapshot.Warnf(snapshot.TrustPending, "wait", "a member does not trust the new root yet")},
	}
	status, ok := virtualMeshStatus(vm, nil, nil).Value.(*networkingv1.VirtualMeshStatus)
	require.True(t, ok)
	assert.Equal(t, commonv1.ApprovalStatePending, status.State)
	last := status.Conditions[len(status.Conditions)-1]
	assert.Equal(t, []any{commonv1.ConditionReconciling, metav1.ConditionTrue}, []any{last.Type, last.Status})
}
