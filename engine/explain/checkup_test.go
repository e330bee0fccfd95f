package explain_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// checksOf are the checks of a checkup by ID; each ID is there once.
func checksOf(t *testing.T, c *explain.Checkup) map[string]explain.Check {
	t.Helper()
	out := map[string]explain.Check{}
	total := 0
	for _, category := range c.Categories {
		assert.NotEmpty(t, category.Checks)
		for _, check := range category.Checks {
			require.NotContains(t, out, check.ID)
			out[check.ID] = check
			total++
			if check.Result == explain.CheckFailure || check.Result == explain.CheckWarning {
				assert.NotEmpty(t, check.Message, check.ID)
				assert.NotEmpty(t, check.Hint, check.ID)
			}
			assert.Equal(t, check.Result == explain.CheckSkipped, check.Because != "", check.ID)
		}
	}
	for id, check := range out {
		if check.Because != "" {
			assert.Contains(t, out, check.Because, id)
		}
	}
	assert.Equal(t, total, c.OK+c.Infos+c.Skipped+c.Warnings+c.Failures)
	return out
}

var checkedAt = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// leading is a serve that leads for a minute.
func leading() snapshot.Serving {
	return snapshot.Serving{Known: true, Holder: "pod-1", Since: checkedAt.Add(-time.Minute), Until: checkedAt.Add(15 * time.Second)}
}

// checkupFacts are those of a fleet that is well.
func checkupFacts() *explain.CheckFacts {
	return &explain.CheckFacts{Now: checkedAt, Kubernetes: "v1", Serving: leading(), TypesCurrent: 18, Clusters: []explain.CheckedCluster{
		{Name: "cluster-1", Health: snapshot.Healthy, Served: true, Expires: checkedAt.Add(20 * time.Hour)},
		{Name: "cluster-2", Health: snapshot.Healthy, Served: true},
	}, Gateways: []explain.CheckedGateway{{Mesh: snapshot.Ref{Kind: snapshot.Mesh, Name: "m"}, Cluster: "cluster-2", Address: "192.0.2.1:15443"}}}
}

func TestCheckup(t *testing.T) {
	t.Parallel()
	index := explain.New(engine.Translate(load(t, "gateways")))
	facts := checkupFacts
	for name, tt := range map[string]struct {
		change func(*explain.CheckFacts)
		want   map[string]explain.CheckResult
	}{
		"all is well": {func(*explain.CheckFacts) {}, map[string]explain.CheckResult{
			"management-answers": explain.CheckOK, "types": explain.CheckOK, "serve-leads": explain.CheckOK, "edits": explain.CheckOK, "versions": explain.CheckOK,
			"cluster-answers/cluster-1": explain.CheckOK, "cluster-credential/cluster-2": explain.CheckOK, "gateway/m/192.0.2.1:15443": explain.CheckOK,
		}},
		"types of another version": {func(f *explain.CheckFacts) { f.TypesOther = []string{"a"} }, map[string]explain.CheckResult{"types": explain.CheckWarning}},
		"types are missing":        {func(f *explain.CheckFacts) { f.TypesMissing = []string{"a"} }, map[string]explain.CheckResult{"types": explain.CheckFailure}},
		"another version": {func(f *explain.CheckFacts) { f.Skew = []snapshot.Reason{{What: "serve is old", Hint: "upgrade it"}} }, map[string]explain.CheckResult{
			"versions/1": explain.CheckWarning,
		}},
		"no pod is ready": {func(f *explain.CheckFacts) { f.Installed, f.Replicas = true, 2 }, map[string]explain.CheckResult{"serve-ready": explain.CheckFailure}},
		"one of two is ready": {func(f *explain.CheckFacts) { f.Installed, f.Ready, f.Replicas = true, 1, 2 }, map[string]explain.CheckResult{
			"serve-ready": explain.CheckWarning,
		}},
		"nothing serves": {func(f *explain.CheckFacts) { f.Serving.Until = checkedAt.Add(-time.Second) }, map[string]explain.CheckResult{
			"serve-leads": explain.CheckFailure, "edits": explain.CheckSkipped,
		}},
		"not known who serves": {func(f *explain.CheckFacts) { f.Serving = snapshot.Serving{Reason: "forbidden"} }, map[string]explain.CheckResult{
			"serve-leads": explain.CheckWarning, "edits": explain.CheckOK,
		}},
		"a cluster is away": {func(f *explain.CheckFacts) {
			f.Clusters[1] = explain.CheckedCluster{Name: "cluster-2", Health: snapshot.HealthUnreachable, Reasons: snapshot.Reasons{{What: "no answer"}}, NotServed: true}
			f.Gateways[0].Unanswered = "no answer"
		}, map[string]explain.CheckResult{
			"cluster-answers/cluster-1": explain.CheckOK, "cluster-answers/cluster-2": explain.CheckFailure, "cluster-credential/cluster-2": explain.CheckSkipped,
			"cluster-served/cluster-2": explain.CheckSkipped, "gateway/m/192.0.2.1:15443": explain.CheckSkipped,
		}},
		"away from here only": {func(f *explain.CheckFacts) {
			f.Clusters[1] = explain.CheckedCluster{Name: "cluster-2", Health: snapshot.HealthUnreachable, Reasons: snapshot.Reasons{{What: "no answer"}}, Served: true}
		}, map[string]explain.CheckResult{"cluster-answers/cluster-2": explain.CheckWarning}},
		"the credential has expired": {func(f *explain.CheckFacts) {
			f.Clusters[1] = explain.CheckedCluster{Name: "cluster-2", Health: snapshot.HealthDenied, Reasons: snapshot.Reasons{{What: "the token expired", Hint: "renew it"}}}
		}, map[string]explain.CheckResult{
			"cluster-answers/cluster-2": explain.CheckOK, "cluster-credential/cluster-2": explain.CheckFailure, "cluster-usable/cluster-2": explain.CheckSkipped,
		}},
		"it expires soon": {func(f *explain.CheckFacts) { f.Clusters[0].Expires = checkedAt.Add(time.Minute) }, map[string]explain.CheckResult{
			"cluster-credential/cluster-1": explain.CheckWarning,
		}},
		"objects wait there": {func(f *explain.CheckFacts) {
			f.Clusters[0].Reasons = snapshot.Reasons{{Code: snapshot.ObjectsWait, What: "not narrowed: Gateway a/b", Hint: "change the route"}}
		}, map[string]explain.CheckResult{"cluster-usable/cluster-1": explain.CheckWarning, "cluster-served/cluster-1": explain.CheckOK}},
		"its agent is old": {func(f *explain.CheckFacts) {
			f.Clusters[0].Reasons = snapshot.Reasons{{Code: snapshot.VersionSkew, What: "its agent does not send networkpolicies", Hint: "register the cluster again"}}
		}, map[string]explain.CheckResult{"cluster-usable/cluster-1": explain.CheckWarning, "cluster-served/cluster-1": explain.CheckOK}},
		"permissions are missing": {func(f *explain.CheckFacts) {
			f.Clusters[0].Health, f.Clusters[0].Served, f.Clusters[0].NotServed = snapshot.HealthDegraded, false, true
			f.Clusters[0].Reasons = snapshot.Reasons{{Code: snapshot.PermissionsMissing, What: "the credential may not list pods"}}
		}, map[string]explain.CheckResult{"cluster-usable/cluster-1": explain.CheckFailure, "cluster-served/cluster-1": explain.CheckSkipped}},
		"serve does not reach it": {func(f *explain.CheckFacts) {
			f.Clusters[0].Health, f.Clusters[0].Served, f.Clusters[0].NotServed = snapshot.HealthDegraded, false, true
			f.Clusters[0].Reasons = snapshot.Reasons{{Code: snapshot.NotReachedByServe, What: "meshctl serve does not reach it: no route"}}
			f.Clusters[0].ServeMessage = "no route"
		}, map[string]explain.CheckResult{"cluster-usable/cluster-1": explain.CheckOK, "cluster-served/cluster-1": explain.CheckFailure}},
		"leftovers": {func(f *explain.CheckFacts) {
			f.Clusters = append(f.Clusters, explain.CheckedCluster{Name: "old", Health: snapshot.HealthLeftover, Reasons: snapshot.Reasons{{What: "not cleaned", Hint: "run this"}}})
		}, map[string]explain.CheckResult{"leftovers/old": explain.CheckWarning}},
		"an agent waits for approval": {func(f *explain.CheckFacts) {
			f.Clusters = append(f.Clusters, explain.CheckedCluster{Name: "new", Health: snapshot.HealthPending, Reasons: snapshot.Reasons{{Code: snapshot.RelayNotApproved, What: "it waits", Hint: "approve it"}}})
		}, map[string]explain.CheckResult{"relay-approved/new": explain.CheckWarning, "cluster-answers/new": ""}},
		"a gateway does not answer": {func(f *explain.CheckFacts) { f.Gateways[0].Unanswered = "no answer" }, map[string]explain.CheckResult{
			"gateway/m/192.0.2.1:15443": explain.CheckInfo,
		}},
		"it answers proxies": {func(f *explain.CheckFacts) {
			f.Gateways[0].Unanswered, f.Gateways[0].ByProxies = "no answer", &explain.GatewayByProxies{Asked: []string{"cluster-1/a/b"}, Connections: 2, Failed: 1}
		}, map[string]explain.CheckResult{"gateway/m/192.0.2.1:15443": explain.CheckOK}},
		"it does not answer proxies": {func(f *explain.CheckFacts) {
			f.Gateways[0].ByProxies = &explain.GatewayByProxies{Asked: []string{"cluster-1/a/b"}, Connections: 2, Failed: 2}
		}, map[string]explain.CheckResult{"gateway/m/192.0.2.1:15443": explain.CheckFailure}},
		"proxies exclude it": {func(f *explain.CheckFacts) {
			f.Gateways[0].ByProxies = &explain.GatewayByProxies{Asked: []string{"cluster-1/a/b"}, Connections: 2, Excluded: true}
		}, map[string]explain.CheckResult{"gateway/m/192.0.2.1:15443": explain.CheckFailure}},
		"no proxy has connected": {func(f *explain.CheckFacts) {
			f.Gateways[0].Unanswered, f.Gateways[0].ByProxies = "no answer", &explain.GatewayByProxies{Asked: []string{"cluster-1/a/b"}}
		}, map[string]explain.CheckResult{"gateway/m/192.0.2.1:15443": explain.CheckInfo}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given := facts()
			tt.change(given)
			checkup := index.Checkup(given)
			checks := checksOf(t, checkup)
			for id, want := range tt.want {
				assert.Equal(t, want, checks[id].Result, "%s: %+v", id, checks[id])
			}
			again := facts()
			tt.change(again)
			for id, check := range checksOf(t, index.Checkup(reworded(again))) {
				assert.Equal(t, checks[id].Result, check.Result, "%s: no words decide: %+v", id, check)
			}
			assert.Len(t, checkup.Table().Rows, checkup.OK+checkup.Infos+checkup.Warnings+checkup.Failures)
		})
	}
}

// reworded are facts in other words.
func reworded(f *explain.CheckFacts) *explain.CheckFacts {
	for i := range f.Clusters {
		reword(f.Clusters[i].Reasons)
	}
	reword(f.Skew)
	return f
}

// TestCheckupOfNothingRead: without an answer of the management cluster, that is the failure, and all else depends on it.
func TestCheckupOfNothingRead(t *testing.T) {
	t.Parallel()
	unread := (*explain.Index)(nil).Checkup(&explain.CheckFacts{Now: checkedAt, Unread: "no answer", UnreadHint: "start it"})
	assert.Equal(t, explain.CheckFailure, checksOf(t, unread)["management-answers"].Result)
	assert.Equal(t, unread.Skipped, unread.Dependents("management-answers"))
}

// reword changes what reasons say, but for what they mean.
func reword(reasons []snapshot.Reason) {
	for i := range reasons {
		reasons[i].What, reasons[i].Hint = "x; y: z", "w"
	}
}

// TestCheckupOfDrifts: what clusters have otherwise fails, and is about the object that differs.
func TestCheckupOfDrifts(t *testing.T) {
	t.Parallel()
	state := engine.Translate(load(t, "bookinfo"))
	var route snapshot.Ref
	for o := range state.Output.Objects {
		if o.Ref.Kind == snapshot.VirtualService && o.Ref.Name == "reviews" && o.Ref.Cluster == "cluster-1" {
			route = o.Ref
		}
	}
	require.NotZero(t, route)
	leftover := route
	leftover.Name = "old"
	bounced := snapshot.Ref{Kind: snapshot.PodBounceDirective, Cluster: route.Cluster, Namespace: "gloo-mesh", Name: "istiod"}
	observed := &snapshot.Observed{Drifts: []snapshot.Drift{
		{Ref: leftover, State: snapshot.DriftLeftover},
		{Ref: bounced, State: snapshot.DriftLeftover},
		{Ref: route, State: snapshot.DriftChanged, By: "kubectl-edit", At: checkedAt, Fields: []snapshot.DriftField{
			{Path: "spec.http[0].route[].weight", InForce: "75/15/10", Wanted: "75/60/10"}, {Path: "spec.http[0].timeout", InForce: "", Wanted: "1s"},
		}},
	}, Unread: map[string]string{}}
	serving := leading()
	index := explain.New(state)
	index.Observe(&serving, true, observed)
	checks := checksOf(t, index.Checkup(&explain.CheckFacts{Now: checkedAt, Serving: serving}))
	drifted := checks["drifted/VirtualService/"+route.Cluster+"/"+route.Namespace+"/reviews"]
	assert.Equal(t, explain.CheckFailure, drifted.Result)
	assert.Equal(t, "VirtualService "+route.Namespace+"/reviews in cluster "+route.Cluster+" is not as it should be: http[0].route[].weight: in force 75/15/10, wanted 75/60/10, and 1 more field; last changed by kubectl-edit at 2026-01-01T12:00:00Z", drifted.Message)
	assert.Contains(t, drifted.Hint, "stop kubectl-edit")
	assert.Equal(t, explain.CheckOK, checks["leftovers"].Result, "a serve that leads knows why it keeps it")

	index = explain.New(state)
	ended := snapshot.Serving{Known: true, Since: checkedAt.Add(-time.Minute)}
	index.Observe(&ended, false, observed)
	checks = checksOf(t, index.Checkup(&explain.CheckFacts{Now: checkedAt, Serving: ended}))
	assert.Equal(t, explain.CheckWarning, checks["drifted/VirtualService/"+route.Cluster+"/"+route.Namespace+"/old"].Result)
	policy, ok := index.Describe(snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "gloo-mesh", Name: "reviews-shift"}).(*explain.Policy)
	require.True(t, ok)
	assert.Equal(t, explain.StateDiffers, policy.State)
	assert.Equal(t, observed.Drifts[2:], policy.Drifts)
	at := slices.IndexFunc(index.Issues(), func(i snapshot.Issue) bool { return i.Ref == bounced })
	require.GreaterOrEqual(t, at, 0)
	assert.Equal(t, snapshot.Info, index.Issues()[at].Severity, "what was carried out decides about no request")
}

// TestWhoIsOlder of two objects for the same, the mesh uses.
func TestWhoIsOlder(t *testing.T) {
	t.Parallel()
	state := engine.Translate(load(t, "hand-written"))
	at := time.Unix(1_700_000_000, 0)
	ours := map[snapshot.Ref]time.Time{}
	for o := range state.Output.Objects {
		if o.Ref.Kind == snapshot.ServiceEntry || o.Ref.Kind == snapshot.Sidecar || o.Ref.Kind == snapshot.VirtualService {
			ours[o.Ref] = at
		}
	}
	for _, c := range state.Input.Clusters {
		for _, o := range c.OfMeshes[snapshot.ServiceEntry] {
			o.SetCreationTimestamp(metav1.NewTime(at.Add(map[string]time.Duration{"my-ratings": -time.Second, "my-legacy": time.Second}[o.GetName()])))
		}
		for _, o := range c.OfMeshes[snapshot.Sidecar] {
			o.SetCreationTimestamp(metav1.NewTime(at.Add(-time.Hour)))
		}
	}
	for _, c := range state.Input.Clusters {
		for _, o := range c.OfMeshes[snapshot.VirtualService] {
			o.SetCreationTimestamp(metav1.NewTime(at.Add(time.Minute)))
		}
	}
	index := explain.New(state)
	index.Observe(nil, true, &snapshot.Observed{Created: ours})
	var said []string
	for _, issue := range index.Issues() {
		_, after, found := strings.Cut(issue.Message, "uses the older of the two")
		if found {
			said = append(said, issue.Cause.Name+after)
		}
		assert.True(t, found || !strings.Contains(issue.Message, "and applies"), issue.Message)
	}
	slices.Sort(said)
	const byHand, generated = ": it is older than the generated one, and applies", ": the generated one is older, and applies"
	own := func(namespace string) string { return ", or this one for callers in namespace " + namespace } // those take it whatever its age
	assert.Equal(t, []string{
		"my-legacy" + own("shop") + generated, "my-page" + byHand, "my-ratings" + own("tenant") + byHand, "my-reviews" + generated, "my-virtual-entry" + own("shop") + byHand, "with-labels" + generated,
	}, slices.Compact(said))
}
