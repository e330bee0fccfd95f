package offline_test

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestConditionsSayWhatTheStateSays: for every object of every case, kstatus, by which Flux and others wait, and the health check for
// Argo CD make of the conditions what the state says; and the cases have each kind of object in each of these states.
func TestConditionsSayWhatTheStateSays(t *testing.T) {
	t.Parallel()
	inputs, err := filepath.Glob("../../testdata/*/*/in")
	require.NoError(t, err)
	seen := map[string]bool{}
	check := argoCheck(t)
	for _, in := range inputs {
		input, _, err := offline.Load(offline.Dir(in))
		require.NoError(t, err)
		statuses := engine.Translate(input).Output.Statuses.Slice()
		statuses = append(slices.Clip(statuses), engine.Translate(half(input, statuses)).Output.Statuses.Slice()...)
		for _, s := range statuses {
			value, _ := generic(t, s.Value).(map[string]any)
			if value["conditions"] == nil {
				assert.Contains(t, []snapshot.Kind{snapshot.Mesh, snapshot.Workload, snapshot.Destination}, s.Ref.Kind)
				continue
			}
			name := fmt.Sprintf("%s: %s", in, s.Ref)
			verdict := kstatusOf(t, s.Ref.Kind, value, 0)
			health, message := check.of(t, s.Ref.Kind, value, 0)
			assert.Equal(t, healthFor[verdict], health, "%s: %s", name, message)
			if verdict == kstatus.FailedStatus {
				assert.NotEmpty(t, message, name)
			}
			state, ready := stateIn(value), conditionIn(value, "Ready")
			seen[fmt.Sprint(s.Ref.Kind, " ", state, " ", verdict)] = true
			switch state {
			case "ACCEPTED":
				if s.Ref.Kind == snapshot.Settings && conditionIn(value, "InForce") == metav1.ConditionFalse {
					assert.Equal(t, kstatus.FailedStatus, verdict, name) // other Settings are in force
					continue
				}
				if conditionIn(value, "InForce") == metav1.ConditionFalse {
					assert.Equal(t, kstatus.InProgressStatus, verdict, name) // it waits for what it relies on
					assert.Equal(t, metav1.ConditionTrue, conditionIn(value, "Accepted"), name)
					continue
				}
				assert.Equal(t, kstatus.CurrentStatus, verdict, name)
				assert.Equal(t, metav1.ConditionTrue, ready, name)
			case "INVALID":
				assert.Equal(t, kstatus.FailedStatus, verdict, name)
				assert.Equal(t, metav1.ConditionFalse, conditionIn(value, "Accepted"), name)
			case "FAILED":
				assert.Contains(t, []kstatus.Status{kstatus.FailedStatus, kstatus.InProgressStatus}, verdict, name)
				assert.Equal(t, metav1.ConditionFalse, ready, name)
			case "PENDING", "PROCESSING":
				assert.Equal(t, kstatus.InProgressStatus, verdict, name)
				assert.Equal(t, metav1.ConditionFalse, ready, name)
			default:
				assert.Fail(t, "unknown state", "%s: %s", name, state)
			}
			assert.Equal(t, kstatus.InProgressStatus, kstatusOf(t, s.Ref.Kind, value, 1), "%s: after an edit", name)
			health, _ = check.of(t, s.Ref.Kind, value, 1)
			assert.Equal(t, "Progressing", health, "%s: after an edit", name)
		}
	}
	for _, want := range []string{
		"TrafficPolicy ACCEPTED Current", "TrafficPolicy INVALID Failed", "TrafficPolicy FAILED Failed",
		"AccessPolicy ACCEPTED Current", "AccessPolicy INVALID Failed",
		"VirtualMesh ACCEPTED Current", "VirtualMesh ACCEPTED InProgress", "VirtualMesh INVALID Failed",
		"VirtualDestination ACCEPTED Current", "VirtualDestination INVALID Failed",
		"ServiceDependency ACCEPTED Current", "ServiceDependency INVALID Failed",
		"Settings ACCEPTED Current", "Settings ACCEPTED Failed",
		"AccessLogRecord ACCEPTED Current", "AccessLogRecord INVALID Failed", "AccessLogRecord PENDING InProgress",
		"KubernetesCluster ACCEPTED Current", "KubernetesCluster FAILED InProgress",
		// What is not written in a cluster that does not answer is written when it does.
		"TrafficPolicy FAILED InProgress", "AccessPolicy FAILED InProgress", "VirtualMesh FAILED InProgress",
		"VirtualDestination FAILED InProgress", "ServiceDependency FAILED InProgress",
	} {
		assert.True(t, seen[want], "no case has %s", want)
	}
}

// TestWhichKindsHaveConditions: each kind of ours whose status has conditions is in the states above, and the others are named: for them,
// kubectl wait has nothing to wait for.
func TestWhichKindsHaveConditions(t *testing.T) {
	t.Parallel()
	var with, without []string
	for _, k := range snapshot.Kinds(snapshot.ManagementSide, ^snapshot.Access(0)) {
		status, has := reflect.TypeOf(k.New()).Elem().FieldByName("Status")
		if !has || !strings.HasSuffix(k.Info().Group, "solo.io") {
			continue
		}
		if _, conditions := status.Type.FieldByName("Conditions"); conditions {
			with = append(with, k.String())
		} else {
			without = append(without, k.String())
		}
	}
	assert.ElementsMatch(t, []string{"TrafficPolicy", "AccessPolicy", "VirtualMesh", "VirtualDestination", "ServiceDependency", "AccessLogRecord", "Settings", "KubernetesCluster"}, with)
	// What was discovered, what is not translated, what decides at admission only, and requests between agents and serve.
	assert.ElementsMatch(t, []string{"Mesh", "Workload", "Destination", "WasmDeployment", "Role", "RoleBinding"}, without)
}

// half is an input in which a cluster does not answer in which something of each object with a status is to be written.
func half(in *snapshot.Input, statuses []*snapshot.Status) *snapshot.Input {
	out := *in
	failure := snapshot.Failure{
		Ref:    snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: in.Management.Namespace, Name: "silent"},
		Reason: snapshot.Reason{Code: snapshot.ClusterAwaited, What: "the cluster cannot be written to now"},
	}
	for _, s := range statuses {
		failure.Parents = append(failure.Parents, s.Ref)
	}
	out.Failures = []snapshot.Failure{failure}
	return &out
}

// kstatusOf is what kstatus makes of an object with a status, so many edits after the one that the status is about.
func kstatusOf(t *testing.T, kind snapshot.Kind, status map[string]any, edits int64) kstatus.Status {
	t.Helper()
	observed, _ := status["observedGeneration"].(float64)
	status["observedGeneration"] = int64(observed)
	defer func() { status["observedGeneration"] = observed }()
	o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a", "generation": int64(observed) + edits}, "status": status}}
	o.SetGroupVersionKind(kind.Info().GroupVersionKind)
	result, err := kstatus.Compute(o)
	require.NoError(t, err)
	return result.Status
}

func stateIn(status map[string]any) string {
	state, _, _ := unstructured.NestedString(status, "state")
	if parts, _ := status["status"].([]any); len(parts) > 0 {
		part, _ := parts[0].(map[string]any)
		state, _ = part["state"].(string)
	}
	return state
}

func conditionIn(status map[string]any, name string) metav1.ConditionStatus {
	list, _ := status["conditions"].([]any)
	for _, element := range list {
		if c, _ := element.(map[string]any); c["type"] == name {
			is, _ := c["status"].(string)
			return metav1.ConditionStatus(is)
		}
	}
	return ""
}
