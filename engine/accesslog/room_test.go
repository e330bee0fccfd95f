package accesslog

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestRoom: namespaces of a cluster share the places that the management cluster leaves, in turn.
func TestRoom(t *testing.T) {
	t.Parallel()
	plan := func(cluster, namespace, name string, age int) *Plan {
		o := &observabilityv1.AccessLogRecord{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, CreationTimestamp: metav1.NewTime(time.Unix(int64(age), 0))}, InCluster: cluster}
		return &Plan{Ref: snapshot.RefOf(snapshot.AccessLogRecord, o), Record: o, State: commonv1.ApprovalStatePending}
	}
	for _, c := range []struct {
		hub int
		// records are NAMESPACE/NAME@AGE of one cluster; want are those that have a place.
		records, want string
	}{
		{0, "a/1@1 a/2@2 b/1@3", "a/1 a/2 b/1"},
		{MaxRecords - 2, "a/1@1 a/2@2 b/1@3", "a/1 b/1"},
		{MaxRecords - 2, "b/1@3 a/2@1 a/1@2", "a/2 b/1"},
		{MaxRecords - 1, "a/1@2 b/1@1", "b/1"},
		{MaxRecords - 3, "a/1@1 a/2@2 a/3@3 a/4@4 b/1@8 b/2@9", "a/1 a/2 b/1"},
		{MaxRecords, "a/1@1", ""},
		{MaxRecords + 1, "a/1@1", ""},
	} {
		var plans []*Plan
		for i := range c.hub {
			plans = append(plans, plan("", "gloo-mesh", fmt.Sprint("hub-", i), 100))
		}
		wrong := plan("west", "a", "0", 0)
		wrong.State = commonv1.ApprovalStateInvalid // it takes no place
		plans = append(plans, wrong, plan("east", "a", "1", 0))
		for _, text := range strings.Fields(c.records) {
			id, age, _ := strings.Cut(text, "@")
			namespace, name, _ := strings.Cut(id, "/")
			plans = append(plans, plan("west", namespace, name, int(age[0]-'0')))
		}
		rand.New(rand.NewSource(1)).Shuffle(len(plans)-c.hub, func(i, j int) { plans[c.hub+i], plans[c.hub+j] = plans[c.hub+j], plans[c.hub+i] })
		bound(plans)
		kept, hub := map[string]bool{}, 0
		for _, p := range plans {
			switch {
			case p.State == commonv1.ApprovalStateInvalid:
				assert.Equal(t, p != wrong, len(p.Issues) == 1, p.Ref)
			case p.Ref.Cluster == "west":
				kept[p.Ref.Namespace+"/"+p.Ref.Name] = true
			case p.Ref.Cluster == "":
				hub++
			}
		}
		want := map[string]bool{}
		for _, name := range strings.Fields(c.want) {
			want[name] = true
		}
		assert.Equal(t, want, kept, "%d of the management cluster, and %s", c.hub, c.records)
		assert.Equal(t, min(c.hub, MaxRecords), hub)
	}
}
