package engine_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/accesslog"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// localRecord is an AccessLogRecord of the namespace.
func localRecord(name string, workloads []commonv1.WorkloadSelector) *observabilityv1.AccessLogRecord {
	return &observabilityv1.AccessLogRecord{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: reachNamespace, Generation: 1}, Spec: observabilityv1.AccessLogRecordSpec{WorkloadSelectors: workloads},
	}
}

// hubRecord is one of the management cluster.
func hubRecord(name string, workloads []commonv1.WorkloadSelector) *observabilityv1.AccessLogRecord {
	r := localRecord(name, workloads)
	r.Namespace = snapshot.DefaultNamespace
	return r
}

// loggedWorld is reachWorld with a record of the management cluster for all workloads.
func loggedWorld() *snapshot.Input {
	in := reachWorld()
	in.Management.AccessLogRecords = []*observabilityv1.AccessLogRecord{hubRecord("everything", nil)}
	return in
}

func recordOf(t *testing.T, state *snapshot.State, cluster, name string) *snapshot.AccessLogPlan {
	t.Helper()
	at := slices.IndexFunc(state.AccessLogs, func(p *snapshot.AccessLogPlan) bool { return p.Ref.Cluster == cluster && p.Ref.Name == name })
	require.GreaterOrEqual(t, at, 0, "there is a verdict on the record")
	return state.AccessLogs[at]
}

func codesOf(p *snapshot.AccessLogPlan) (out []snapshot.Code) {
	for _, issue := range p.Issues {
		out = append(out, issue.Code)
	}
	return out
}

// recordsOutside are what is written and said of others than the namespace of the record, as bytes.
func recordsOutside(t *testing.T, state *snapshot.State) map[string]string {
	t.Helper()
	out := outside(t, state.Output)
	for s := range state.Output.Statuses.All() {
		if s.Ref.Cluster == reachCluster || s.Ref.Kind == snapshot.Workload && strings.Contains(s.Ref.Name, "-"+reachNamespace+"-"+reachCluster) {
			continue
		}
		text, err := json.Marshal(s.Value)
		require.NoError(t, err)
		out["status of "+s.Ref.String()] = string(text)
	}
	return out
}

// TestRecordsOfClustersStayInTheirNamespace: whatever a user asks to be logged, it is of workloads of that namespace in that cluster; no
// other agent hears of it, and nothing else is said of others.
func TestRecordsOfClustersStayInTheirNamespace(t *testing.T) {
	t.Parallel()
	labelled := func(labels map[string]string, namespaces ...string) []commonv1.WorkloadSelector {
		return []commonv1.WorkloadSelector{{KubeWorkloadMatcher: &commonv1.KubeWorkloadMatcher{Labels: labels, Namespaces: namespaces}}}
	}
	with := func(change func(*observabilityv1.AccessLogRecordSpec)) *observabilityv1.AccessLogRecord {
		r := localRecord("way-out", nil)
		change(&r.Spec)
		return r
	}
	const outside, secret = snapshot.OutsideNamespace, snapshot.HeaderSecret
	for _, way := range []struct {
		name   string
		record *observabilityv1.AccessLogRecord
		// says are the codes of what is said of it; logs is whether anything is logged.
		says []snapshot.Code
		logs bool
	}{
		{"no selectors", localRecord("way-out", nil), nil, true},
		{"an empty selector", localRecord("way-out", []commonv1.WorkloadSelector{{}}), nil, true},
		{"an empty matcher", localRecord("way-out", callersIn(nil, nil)), nil, true},
		{"its own namespace", localRecord("way-out", callersIn([]string{reachCluster}, []string{reachNamespace})), nil, true},
		{"labels that workloads elsewhere have", localRecord("way-out", labelled(map[string]string{"app": enginetest.Service(101)})), []snapshot.Code{snapshot.SelectsNothing}, false},
		{"labels of its own", localRecord("way-out", labelled(map[string]string{"app": enginetest.Service(1)})), nil, true},
		{"labels of a namespace elsewhere", localRecord("way-out", labelled(map[string]string{"app": enginetest.Service(101)}, "team-001")), []snapshot.Code{outside, outside}, false},
		{"another namespace", localRecord("way-out", callersIn(nil, []string{"team-001"})), []snapshot.Code{outside, outside}, false},
		{"its own namespace and another", localRecord("way-out", callersIn(nil, []string{reachNamespace, "team-001"})), []snapshot.Code{outside}, true},
		{"its own selector and one for others", localRecord("way-out", append(callersIn(nil, nil), callersIn(nil, []string{"team-001"})...)), []snapshot.Code{outside}, true},
		{"another cluster", localRecord("way-out", callersIn([]string{"cluster-02"}, nil)), []snapshot.Code{outside, outside}, false},
		{"the same namespace of another cluster", localRecord("way-out", callersIn([]string{"cluster-02"}, []string{reachNamespace})), []snapshot.Code{outside, outside}, false},
		{"two clusters", localRecord("way-out", callersIn([]string{reachCluster, "cluster-02"}, nil)), []snapshot.Code{outside}, true},
		{"all clusters by a star", localRecord("way-out", callersIn([]string{"*"}, []string{"*"})), []snapshot.Code{outside, outside}, false},
		{"the control plane", localRecord("way-out", callersIn(nil, []string{"istio-system"})), []snapshot.Code{outside, outside}, false},
		{"the management plane", localRecord("way-out", callersIn([]string{""}, []string{snapshot.DefaultNamespace})), []snapshot.Code{outside, outside}, false},
		{"a namespace with the cluster in it", localRecord("way-out", callersIn(nil, []string{"team-001." + reachCluster})), []snapshot.Code{outside, outside}, false},
		{"a found cluster that is another one", func() *observabilityv1.AccessLogRecord {
			r := localRecord("way-out", nil)
			r.InCluster = "cluster-02"
			return r
		}(), nil, true},
		{"the name of one of the management cluster", localRecord("everything", callersIn(nil, []string{"team-001"})), []snapshot.Code{outside, outside}, false},
		{"a secret header", with(func(s *observabilityv1.AccessLogRecordSpec) { s.IncludedRequestHeaders = []string{"x-user", "Cookie"} }), []snapshot.Code{secret}, false},
		{"a secret header of responses", with(func(s *observabilityv1.AccessLogRecordSpec) { s.IncludedResponseHeaders = []string{"set-cookie"} }), []snapshot.Code{secret}, false},
		{"a filter that guesses a secret", with(func(s *observabilityv1.AccessLogRecordSpec) {
			s.Filters = []observabilityv1.AccessLogFilter{{HeaderMatcher: &networkingv1.HeaderMatcher{Name: "authorization", Value: "Bearer a.*", Regex: true}}}
		}), []snapshot.Code{secret}, false},
		{"very many words", with(func(s *observabilityv1.AccessLogRecordSpec) {
			s.WorkloadSelectors = labelled(map[string]string{"app": strings.Repeat("a", 1<<20)})
		}), []snapshot.Code{snapshot.BudgetExceeded}, false},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			before, after := engine.Translate(loggedWorld()), engine.Translate(withLocal(t, loggedWorld(), way.record))
			was, is := recordOf(t, before, "", "everything"), recordOf(t, after, "", "everything")
			assert.Equal(t, was, is, "that of the management cluster is as it was")
			others, othersNow := recordsOutside(t, before), recordsOutside(t, after)
			assert.Len(t, othersNow, len(others))
			for name, text := range others {
				assert.Equal(t, text, othersNow[name], name)
			}
			p := recordOf(t, after, reachCluster, way.record.Name)
			assert.Equal(t, way.says, codesOf(p), "%v", p.Issues)
			assert.Equal(t, way.logs, len(p.Workloads) > 0, "%v", p.Issues)
			for _, ref := range p.Workloads {
				assert.Contains(t, ref.Name, "-"+reachNamespace+"-"+reachCluster)
			}
			assert.Nil(t, accesslog.ForCluster(p, "cluster-02"), "its agent does not hear of it")
			spec := accesslog.ForCluster(p, reachCluster)
			if p.State == commonv1.ApprovalStateInvalid {
				assert.Nil(t, spec)
				return
			}
			told, err := accesslog.NewRecord(p.Ref.Identity(), spec)
			require.NoError(t, err)
			assert.Equal(t, way.record.Name+"."+reachNamespace+"."+reachCluster, told.Name)
			for _, namespace := range []string{"team-001", "istio-system", snapshot.DefaultNamespace, ""} {
				for _, app := range []string{enginetest.Service(1), enginetest.Service(101), ""} {
					assert.False(t, told.Selects(namespace, map[string]string{"app": app}), "%s in %q", app, namespace)
				}
			}
		})
	}
}

// TestRecordsOfClustersSayWhatIsLogged: the record and its Workloads have it in their statuses, with the cluster that it is in.
func TestRecordsOfClustersSayWhatIsLogged(t *testing.T) {
	t.Parallel()
	in := withLocal(t, loggedWorld(), localRecord("everything", nil))
	in.Logging = &snapshot.Logging{}
	state := engine.Translate(in)
	logged := recordOf(t, state, reachCluster, "everything").Workloads
	require.NotEmpty(t, logged)
	in.Logging = &snapshot.Logging{Workloads: logged[:1]}
	state = engine.Translate(in)
	own := snapshot.Ref{Kind: snapshot.AccessLogRecord, Cluster: reachCluster, Namespace: reachNamespace, Name: "everything"}
	found := 0
	for s := range state.Output.Statuses.All() {
		if status, ok := s.Value.(*observabilityv1.AccessLogRecordStatus); ok && s.Ref == own {
			found++
			assert.Equal(t, commonv1.ApprovalStateAccepted, status.State)
			assert.Equal(t, int32(len(logged)), status.Counts.Workloads)
		}
	}
	assert.Equal(t, 1, found)
	text := ""
	for s := range state.Output.Statuses.All() {
		if s.Ref == logged[0] {
			value, err := json.Marshal(s.Value)
			require.NoError(t, err)
			text = string(value)
		}
	}
	assert.Contains(t, text, `{"ref":{"name":"everything","namespace":"team-000"},"clusterName":"cluster-01","observedGeneration":1}`)
	assert.Contains(t, text, `{"ref":{"name":"everything","namespace":"gloo-mesh"},"observedGeneration":1}`)
}

// inForceIn are the records of which the agent of a cluster is told, by their names there.
func inForceIn(state *snapshot.State, cluster string) (out []string) {
	for _, p := range state.AccessLogs {
		if accesslog.ForCluster(p, cluster) != nil {
			out = append(out, p.Ref.Identity())
		}
	}
	return out
}

// TestRecordsOfClustersTakeOnlyTheirPlaces: whoever writes very many gets few, and takes no place of the management cluster, of another
// cluster, or of the first record of another namespace.
func TestRecordsOfClustersTakeOnlyTheirPlaces(t *testing.T) {
	t.Parallel()
	const most, local = accesslog.MaxRecords, 10
	in := reachWorld()
	in.Management.Settings[0].Spec.WorkloadClusterPolicies = []settingsv1.WorkloadClusterPolicies{{Clusters: []string{"*"}, Namespaces: []string{"*"}}}
	record := func(namespace, name string, age int) *observabilityv1.AccessLogRecord {
		r := localRecord(name, nil)
		r.Namespace, r.CreationTimestamp = namespace, metav1.NewTime(time.Unix(int64(age), 0))
		return r
	}
	var flood []*observabilityv1.AccessLogRecord
	for n := range 10_000 {
		flood = append(flood, record("team-000", fmt.Sprintf("r-%05d", n), n))
	}
	in.Clusters[0].AccessLogRecords = append(flood, record("team-001", "victim", 1_000_000), record("team-001", "victim-2", 1_000_001))
	in.Clusters[1].AccessLogRecords = []*observabilityv1.AccessLogRecord{record("team-000", "other", 1_000_000)}
	hub := func(n int, clusters ...string) *snapshot.Input {
		out := *in
		management := *in.Management
		management.AccessLogRecords = nil
		for i := range n {
			management.AccessLogRecords = append(management.AccessLogRecords, hubRecord(fmt.Sprintf("hub-%03d", i), callersIn(clusters, nil)))
		}
		out.Management = &management
		return &out
	}
	translator := engine.New(engine.Options{})
	for _, c := range []struct {
		hub      int
		clusters []string
		// tenant is how many of the flood are in force, victims those of the other namespace, and other those of the other cluster.
		tenant, victims, other int
	}{
		{0, nil, local, 2, 1},
		{most / 2, nil, local, 2, 1},
		{most - 5, nil, 3, 2, 1},
		{most - 2, nil, 1, 1, 1},
		{most - 1, nil, 1, 0, 1}, // the oldest
		{most, nil, 0, 0, 0},
		{most + 1, nil, 0, 0, 0},
		{most, []string{"cluster-02"}, local, 2, 0},
		{most, []string{"cluster-01"}, 0, 0, 1},
	} {
		state := translator.Translate(hub(c.hub, c.clusters...))
		in1, in2 := inForceIn(state, "cluster-01"), inForceIn(state, "cluster-02")
		assert.LessOrEqual(t, len(in1), most)
		assert.LessOrEqual(t, len(in2), most)
		counted := map[string]int{}
		for _, name := range append(in1, in2...) {
			parts := strings.SplitN(name, ".", 2)
			counted[parts[1]]++
		}
		each := 2
		if c.clusters != nil {
			each = 1
		}
		assert.Equal(t, each*min(c.hub, most), counted[snapshot.DefaultNamespace], "those of the management cluster: %+v", c)
		assert.Equal(t, c.tenant, counted["team-000.cluster-01"], "%+v", c)
		assert.Equal(t, c.victims, counted["team-001.cluster-01"], "%+v", c)
		assert.Equal(t, c.other, counted["team-000.cluster-02"], "%+v", c)
		last := recordOf(t, state, "cluster-01", "r-09999")
		assert.Equal(t, []snapshot.Code{snapshot.BudgetExceeded}, codesOf(last))
		assert.Contains(t, last.Issues[0].Message, "more than 10 policies of kind AccessLogRecord")
		if c.hub >= most && c.clusters == nil {
			assert.Equal(t, []snapshot.Code{snapshot.BudgetExceeded}, codesOf(recordOf(t, state, "cluster-02", "other")))
		}
		again := translator.Translate(hub(c.hub, c.clusters...))
		for i, p := range state.AccessLogs {
			if p.Ref.Cluster != "" {
				require.Same(t, p, again.AccessLogs[i], "what stays the same is not made again")
			}
		}
	}
}

// TestRecordsOfClustersHaveNamesOfTheirOwn: no name that a user chooses is that of a record of the management cluster in entries of the log.
func TestRecordsOfClustersHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	in := reachWorld()
	// A namespace of the management cluster may be called as a registered cluster is.
	in.Management.Settings[0].Spec.PolicyNamespaces = []string{reachCluster}
	hub := hubRecord("books."+reachNamespace, nil)
	hub.Namespace = reachCluster
	in.Management.AccessLogRecords = []*observabilityv1.AccessLogRecord{hub}
	state := engine.Translate(withLocal(t, in, localRecord("books", nil), localRecord("others", nil)))
	assert.Equal(t, "books.team-000.cluster-01", hubIdentity(t, state, hub.Name))
	assert.Equal(t, []snapshot.Code{snapshot.FieldConflict}, codesOf(recordOf(t, state, reachCluster, "books")))
	assert.Equal(t, []string{"books.team-000.cluster-01", "others.team-000.cluster-01"}, inForceIn(state, reachCluster))
}

func hubIdentity(t *testing.T, state *snapshot.State, name string) string {
	t.Helper()
	p := recordOf(t, state, "", name)
	assert.NotEqual(t, commonv1.ApprovalStateInvalid, p.State, "%v", p.Issues)
	return p.Ref.Identity()
}

// TestRecordsOfClustersNeedSettings: without Settings that name the namespace and the cluster, none counts, and it says so.
func TestRecordsOfClustersNeedSettings(t *testing.T) {
	t.Parallel()
	for _, named := range [][]settingsv1.WorkloadClusterPolicies{
		nil, {{Clusters: []string{"cluster-02"}, Namespaces: []string{"*"}}}, {{Clusters: []string{"*"}, Namespaces: []string{"team-001"}}},
	} {
		in := loggedWorld()
		in.Management.Settings[0].Spec.WorkloadClusterPolicies = named
		state := engine.Translate(withLocal(t, in, localRecord("unasked", nil)))
		p := recordOf(t, state, reachCluster, "unasked")
		assert.Equal(t, []snapshot.Code{snapshot.NamespaceNotNamed}, codesOf(p))
		assert.Empty(t, p.Workloads)
		assert.Equal(t, []string{"everything.gloo-mesh"}, inForceIn(state, reachCluster))
	}
}

// TestRecordsOfClustersReadTwice: where the management cluster is registered as well, its records are read twice, and are one.
func TestRecordsOfClustersReadTwice(t *testing.T) {
	t.Parallel()
	counts := []settingsv1.WorkloadClusterPolicies{{Clusters: []string{reachCluster}, Namespaces: []string{reachNamespace}}}
	for name, c := range map[string]struct {
		here    []string
		there   []settingsv1.WorkloadClusterPolicies
		cluster string
	}{
		"its namespace counts in the registered cluster": {nil, counts, reachCluster},
		"it counts in both":                   {[]string{reachNamespace}, counts, ""},
		"it counts in the management cluster": {[]string{reachNamespace}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := localRecord("twice", nil)
			r.UID = "one"
			in := withLocal(t, reachWorld(), r)
			in.Management.Settings[0].Spec.PolicyNamespaces, in.Management.Settings[0].Spec.WorkloadClusterPolicies = c.here, c.there
			in.Management.AccessLogRecords = []*observabilityv1.AccessLogRecord{r}
			state := engine.Translate(in)
			require.Len(t, state.AccessLogs, 1)
			assert.Equal(t, c.cluster, state.AccessLogs[0].Ref.Cluster)
			assert.NotEmpty(t, state.AccessLogs[0].Workloads)
		})
	}
}

// TestRecordsOfClustersLearnWhichClusterIsWhich: the lists of records stay the same when the UID of the management cluster becomes known.
func TestRecordsOfClustersLearnWhichClusterIsWhich(t *testing.T) {
	t.Parallel()
	r := localRecord("twice", nil)
	r.UID = "one"
	in := withLocal(t, reachWorld(), r)
	settings := &in.Management.Settings[0].Spec
	settings.PolicyNamespaces = []string{reachNamespace}
	settings.WorkloadClusterPolicies = []settingsv1.WorkloadClusterPolicies{{Clusters: []string{reachCluster}, Namespaces: []string{reachNamespace}}}
	in.Management.AccessLogRecords = []*observabilityv1.AccessLogRecord{r}
	register(in, "another")
	before := *in
	management := *in.Management
	management.ClusterUID = ""
	before.Management = &management
	translator := engine.New(engine.Options{})
	assert.Len(t, translator.Translate(&before).AccessLogs, 1, "by their UIDs")
	assert.Len(t, translator.Translate(in).AccessLogs, 2, "it is another cluster")
}

// TestRecordsOfClustersStay: those of a cluster that does not answer stay in force.
func TestRecordsOfClustersStay(t *testing.T) {
	t.Parallel()
	before := engine.Translate(withLocal(t, loggedWorld(), localRecord("stays", nil)))
	in := withLocal(t, loggedWorld(), localRecord("stays", nil))
	in.Cluster(reachCluster).Sync = snapshot.Stale
	after := engine.Translate(in)
	assert.Equal(t, inForceIn(before, reachCluster), inForceIn(after, reachCluster))
	assert.Contains(t, inForceIn(after, reachCluster), "stays."+reachNamespace+"."+reachCluster)
}

// TestRecordsOfClustersAreRemembered: what a Translator remembers of them changes nothing.
func TestRecordsOfClustersAreRemembered(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewSource(int64(waittest.Seed(t))))
	in, translator := loggedWorld(), engine.New(engine.Options{})
	for range 40 {
		r := localRecord(fmt.Sprintf("r-%d", random.Intn(13)), callersIn(nil, [][]string{nil, {reachNamespace}, {"team-001"}, {reachNamespace, "team-001"}}[random.Intn(4)]))
		r.CreationTimestamp = metav1.NewTime(time.Unix(int64(random.Intn(5)), 0))
		if random.Intn(3) == 0 {
			r.Annotations = map[string]string{snapshot.LogUntilAnnotation: fmt.Sprint(random.Intn(3))}
		}
		if random.Intn(3) == 0 {
			r.Spec.IncludedRequestHeaders = []string{[]string{"cookie", "x-user"}[random.Intn(2)]}
		}
		if random.Intn(3) == 0 {
			r.Status = observabilityv1.AccessLogRecordStatus{ObservedGeneration: 1, State: commonv1.ApprovalStateAccepted}
		}
		cluster := reachCluster
		if random.Intn(3) == 0 {
			cluster, r.Namespace = "", snapshot.DefaultNamespace
		}
		var err error
		switch random.Intn(6) {
		case 0:
			in = in.Without(snapshot.Ref{Kind: snapshot.AccessLogRecord, Cluster: cluster, Namespace: r.Namespace, Name: r.Name})
		case 1:
			settings := in.Management.Settings[0].DeepCopy()
			settings.Spec.WorkloadClusterPolicies[0].Namespaces = [][]string{{reachNamespace}, {"team-001"}}[random.Intn(2)]
			in, err = in.With("", settings)
		case 2, 3: // what a generation does not count
			list := in.Cluster(reachCluster).AccessLogRecords
			if len(list) == 0 {
				continue
			}
			edited := list[random.Intn(len(list))].DeepCopy()
			if edited.Status.State = ""; random.Intn(2) == 0 {
				edited.Annotations = map[string]string{snapshot.LogUntilAnnotation: fmt.Sprint("edit ", random.Intn(3))}
			}
			in, err = in.With(reachCluster, edited)
		default:
			in, err = in.With(cluster, r)
		}
		require.NoError(t, err)
		want, got := engine.Translate(in), translator.Translate(in)
		requireSameState(t, want, got, "what is remembered")
		assert.Equal(t, want.AccessLogs, got.AccessLogs)
	}
}
