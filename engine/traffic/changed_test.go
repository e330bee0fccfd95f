package traffic_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// TestVersions: a policy is as it is since it was created, edited, or came in force; what was there before anybody looked is not new.
func TestVersions(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	var versions traffic.Versions
	look := func(minute int, policies ...*networkingv1.TrafficPolicy) []traffic.Changed {
		input := enginetest.World(enginetest.Size{Services: 2, Clusters: 1})
		input.Management.TrafficPolicies = policies
		versions.Note(engine.Translate(input), at.Add(time.Duration(minute)*time.Minute))
		return versions.After(at)
	}
	since := func(minute int, p *networkingv1.TrafficPolicy) traffic.Changed {
		return traffic.Changed{On: snapshot.RefOf(snapshot.TrafficPolicy, p), Since: at.Add(time.Duration(minute) * time.Minute)}
	}
	first, second := enginetest.TrafficPolicy(1, 0, 0, time.Second), enginetest.TrafficPolicy(2, 1, 0, time.Second)
	assert.Empty(t, look(0, first), "it was there")
	assert.Equal(t, []traffic.Changed{since(1, second)}, look(1, first, second), "it was created")
	assert.Equal(t, []traffic.Changed{since(1, second)}, look(2, first, second), "nothing changed")
	edited := first.DeepCopy()
	edited.Generation++
	assert.Equal(t, []traffic.Changed{since(3, edited), since(1, second)}, look(3, edited, second), "it was edited")
	inForce := edited.DeepCopy()
	inForce.Status.Conditions = []metav1.Condition{{Type: commonv1.ConditionInForce, Status: metav1.ConditionTrue}}
	assert.Equal(t, []traffic.Changed{since(4, inForce), since(1, second)}, look(4, inForce, second), "it is in force")
	told := inForce.DeepCopy()
	told.Status.Conditions = append(told.Status.Conditions, metav1.Condition{Type: commonv1.ConditionReady, Status: metav1.ConditionTrue})
	assert.Equal(t, []traffic.Changed{since(4, told), since(1, second)}, look(5, told, second), "only its status changed")
	assert.Equal(t, []traffic.Changed{since(4, told)}, look(6, told), "the other one is gone")
	assert.Empty(t, versions.After(at.Add(4*time.Minute)), "that was before")
}
