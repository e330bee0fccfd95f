package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// IDs of checks on which others depend. Those of clusters end in / and its name.
const (
	checkManagement = "management-answers"
	checkServe      = "serve-leads"
	checkCluster    = "cluster-answers"
	checkCredential = "cluster-credential"
)

// managementAnswers is what the first check says.
const managementAnswers = "the management cluster answers"

const (
	// credentialSoon is how long before its end a credential should have been renewed: serve
	// renews a token after 80 % of its life, which is a day at most.
	credentialSoon = time.Hour
	// maxListed bounds the problems of one category that are listed one by one.
	maxListed = 25
)

// Checkup checks everything that can be. Without an Index (nil), the management cluster could not be
// read, and the facts say why.
func (x *Index) Checkup(facts *CheckFacts) *Checkup {
	k := &checks{index: x, CheckFacts: facts, taken: map[int]bool{}}
	if x == nil {
		management := CheckCategory{Title: "Management plane"}
		management.fail(checkManagement, managementAnswers, facts.Unread, facts.UnreadHint)
		for _, other := range []string{"serve", "clusters", "meshes", "gateways", "trust", "policies", "drift"} {
			management.skip(other, other, checkManagement)
		}
		return NewCheckupOf(management)
	}
	k.issues = IssuesAt(x, facts.Now)
	if facts.Offline {
		return k.checkup(k.clusters(), k.meshes(), k.gateways(), k.federation(), k.trust(), trafficCheck(k), k.policies(), k.drift(), k.others())
	}
	categories := []CheckCategory{k.management()}
	for i := range facts.Clusters {
		switch c := &facts.Clusters[i]; {
		case c.Health.Registered():
			categories = append(categories, k.cluster(c))
		case c.Health == snapshot.HealthPending:
			categories = append(categories, pending(c))
		}
	}
	return k.checkup(append(categories, k.meshes(), k.gateways(), k.federation(), k.trust(), trafficCheck(k), k.policies(), k.drift(), k.proxies(), k.leftovers(), k.others())...)
}

// checkup counts what categories have, and the issues behind them.
func (k *checks) checkup(categories ...CheckCategory) *Checkup {
	out := NewCheckupOf(categories...)
	out.Problems = Count(k.issues)
	return out
}

// Input is what the answers follow from.
func (x *Index) Input() *snapshot.Input { return x.state.Input }

// MeshPlans are all that were discovered.
func (x *Index) MeshPlans() []*snapshot.MeshPlan { return x.state.Plan.Meshes }

// checks are one run.
type checks struct {
	*CheckFacts
	index  *Index
	issues []snapshot.Issue
	// taken are the issues, by their place, that a category lists.
	taken map[int]bool
	// away are the clusters that do not answer, with the check that says so.
	away map[string]string
}

// take lists the issues that a category is about, as checks. One about a cluster that does not
// answer is skipped: its cause is known.
func (k *checks) take(to *CheckCategory, about func(*snapshot.Issue) bool) (problems int) {
	listed, more := map[CheckResult]int{}, map[CheckResult]int{}
	for i := range k.issues {
		issue := &k.issues[i]
		if k.taken[i] || !about(issue) {
			continue
		}
		k.taken[i] = true
		result := CheckFailure
		switch issue.Severity {
		case snapshot.Info:
			continue
		case snapshot.Warning:
			result = CheckWarning
		}
		check := Check{
			ID: strings.ToLower(string(issue.Code)) + "/" + strings.ReplaceAll(issue.Object(), " ", "/"), Description: issue.Object(), Result: result, Message: issue.Message, Hint: issue.Hint,
			Code: issue.Code, Help: issue.Code.Help(), InForce: inForceText(k.index, issue.Ref),
		}
		if issue.Ref != (snapshot.Ref{}) {
			check.Object = &issue.Ref
		}
		if issue.Target != (snapshot.Ref{}) && issue.Target != issue.Ref {
			check.Target = &issue.Target
		}
		if ref := k.index.nearest(*issue); ref != (snapshot.Ref{}) {
			check.On = &ref
		}
		if because := k.away[k.index.clusterOfIssue(*issue)]; because != "" {
			check.Result, check.Because = CheckSkipped, because
			to.add(check)
			continue
		}
		problems++
		if listed[result]++; listed[result] > maxListed {
			more[result]++
			continue
		}
		to.add(check)
	}
	for _, result := range []CheckResult{CheckFailure, CheckWarning} {
		if n := more[result]; n > 0 {
			to.add(Check{
				ID: "more/" + to.Title + "/" + string(result), Description: "others", Result: result,
				Message: fmt.Sprintf("%d more of the same kind", n), Hint: "list them all with: meshctl describe problems", Count: n,
			})
		}
	}
	return problems
}

func (k *checks) management() CheckCategory {
	c := CheckCategory{Title: "Management plane"}
	c.ok(checkManagement, managementAnswers, k.Kubernetes)
	switch {
	case len(k.TypesMissing) > 0:
		c.fail("types", "the custom resource types are installed", "missing: "+firstOf(k.TypesMissing), "run `meshctl install` or `meshctl upgrade`")
	case len(k.TypesOther) > 0:
		c.warn("types", "the custom resource types are those of this version", "of another version: "+firstOf(k.TypesOther), "run `meshctl upgrade` of the newer version")
	default:
		c.ok("types", "the custom resource types are those of this version", strconv.Itoa(k.TypesCurrent))
	}
	k.serve(&c)
	for i, skew := range k.Skew {
		c.warn("versions/"+strconv.Itoa(i+1), "all parts are of one version", skew.What, skew.Hint)
	}
	if len(k.Skew) == 0 {
		c.ok("versions", "all parts are of one version", "")
	}
	k.take(&c, func(i *snapshot.Issue) bool { return i.Ref.Kind == snapshot.Settings })
	return c
}

// serve checks that a process of meshctl serve leads, and has processed the latest edits.
func (k *checks) serve(c *CheckCategory) {
	const leads, processed = "meshctl serve has a leader", "meshctl serve has processed all edits"
	if k.Installed {
		const id, ready, hint = "serve-ready", "the pods of meshctl serve are ready", "see why: kubectl describe pods -l app.kubernetes.io/name=meshctl"
		pods := fmt.Sprintf("%d of %d", k.Ready, k.Replicas)
		switch {
		case k.Ready == 0:
			c.fail(id, ready, pods, hint)
		case k.Ready < k.Replicas:
			c.warn(id, ready, pods, hint)
		default:
			c.ok(id, ready, pods)
		}
	}
	leading, since := k.Serving.At(k.Now)
	switch {
	case !k.Serving.Known:
		c.warn(checkServe, leads, "not known: "+k.Serving.Reason, "run `meshctl serve --leader-elect`: it holds a Lease while it leads")
	case !leading:
		issue := notServed(&k.Serving)
		c.fail(checkServe, leads, issue.Message, issue.Hint)
		c.skip("edits", processed, checkServe)
	default:
		c.ok(checkServe, leads, "for "+duration.HumanDuration(max(k.Now.Sub(since), 0)))
	}
	for i := range k.issues {
		if k.issues[i].Code == snapshot.NotServed {
			k.taken[i] = true // it is said here
		}
	}
	if !leading && k.Serving.Known {
		return
	}
	if n := len(k.index.pending); n > 0 {
		names := make([]string, 0, n)
		for _, ref := range sortedRefs(k.index.pending) {
			names = append(names, ref.String())
		}
		c.warn("edits", processed, "not processed yet: "+firstOf(names), "this takes milliseconds; if it does not end, see the log of `meshctl serve`")
		return
	}
	c.ok("edits", processed, "")
}

// clusters are those of manifests.
func (k *checks) clusters() CheckCategory {
	c := CheckCategory{Title: "Clusters"}
	if k.take(&c, func(i *snapshot.Issue) bool { return i.Ref.Kind == snapshot.KubernetesCluster }) == 0 {
		c.ok("clusters", "clusters were read", strconv.Itoa(len(k.index.clusters)))
	}
	return c
}

func (k *checks) cluster(found *CheckedCluster) CheckCategory {
	if found.Connection != nil {
		return k.relayed(found)
	}
	c := CheckCategory{Title: "Cluster " + found.Name}
	id := func(what string) string { return what + "/" + found.Name }
	const answers, credential, usable, served = "its API server answers", "it accepts the credential", "it can be read and written", "meshctl serve reaches it"
	skip := func(because string, checks ...[2]string) {
		for _, check := range checks {
			c.skip(id(check[0]), check[1], id(because))
		}
	}
	if k.away == nil {
		k.away = map[string]string{}
	}
	version := found.Version
	if found.Latency > 0 {
		version = strings.TrimSpace(version + " in " + found.Latency.Round(time.Millisecond).String())
	}
	what, hint := found.Reasons.Advice()
	switch found.Health {
	case snapshot.HealthUnreachable:
		if found.Served {
			c.warn(id(checkCluster), answers, found.Reasons.String(), "register it with an --api-server-address that this machine reaches, or run the command where meshctl serve runs")
			return c
		}
		c.fail(id(checkCluster), answers, what, snapshot.NewOutage(found.Name, causeOf(found.Reasons), what).Hint())
		skip(checkCluster, [2]string{checkCredential, credential}, [2]string{"cluster-usable", usable}, [2]string{"cluster-served", served})
		k.away[found.Name] = id(checkCluster)
	case snapshot.HealthDenied, snapshot.HealthInvalid:
		if found.Health == snapshot.HealthDenied {
			c.ok(id(checkCluster), answers, version)
		}
		c.fail(id(checkCredential), credential, what, snapshot.NewOutage(found.Name, causeOf(found.Reasons), what).Hint())
		skip(checkCredential, [2]string{"cluster-usable", usable}, [2]string{"cluster-served", served})
		k.away[found.Name] = id(checkCredential)
	default:
		c.ok(id(checkCluster), answers, version)
		k.credential(&c, id, found)
		hint = cmp.Or(hint, "see `meshctl cluster list`")
		switch noted := found.Reasons.Of(snapshot.AnotherPlane, snapshot.ObjectsWait, snapshot.VersionSkew); {
		case found.Health == snapshot.Healthy && noted != nil:
			c.warn(id("cluster-usable"), usable, noted.What, noted.Hint)
		case found.Health != snapshot.HealthDegraded || found.Reasons.Of(snapshot.NotReachedByServe) != nil:
			c.ok(id("cluster-usable"), usable, "")
		case found.NotServed, found.Reasons.Of(snapshot.PermissionsMissing) != nil:
			c.fail(id("cluster-usable"), usable, what, hint)
			skip("cluster-usable", [2]string{"cluster-served", served})
			k.away[found.Name] = id("cluster-usable")
		default:
			c.warn(id("cluster-usable"), usable, what, hint)
		}
		switch {
		case k.away[found.Name] != "":
		case found.NotServed:
			c.fail(id("cluster-served"), served, found.ServeMessage, "make the stored address reachable for meshctl serve: see `meshctl cluster list -o json`")
			k.away[found.Name] = id("cluster-served")
		case found.Served:
			message := found.ServeMessage
			if message == found.Reasons.String() {
				message = "" // it is told above
			}
			c.ok(id("cluster-served"), served, message)
		}
	}
	k.take(&c, func(i *snapshot.Issue) bool {
		return i.Ref.Kind == snapshot.KubernetesCluster && i.Ref.Name == found.Name
	})
	return c
}

// causeOf is why a cluster cannot be used: the code of the first reason, or what is behind it.
func causeOf(reasons snapshot.Reasons) snapshot.Code {
	if len(reasons) == 0 {
		return ""
	}
	return cmp.Or(reasons[0].Cause, reasons[0].Code)
}

// credential checks how long the credential of a cluster lasts.
func (k *checks) credential(c *CheckCategory, id func(string) string, found *CheckedCluster) {
	const lasts = "it accepts the credential"
	left := found.Expires.Sub(k.Now)
	switch {
	case found.Expires.IsZero():
		c.ok(id(checkCredential), lasts, "does not expire")
	case left < credentialSoon:
		c.warn(id(checkCredential), lasts, "expires in "+duration.HumanDuration(max(left, 0))+"; it should have been renewed", "check that `meshctl serve` runs: it renews credentials")
	default:
		c.ok(id(checkCredential), lasts, "expires in "+duration.HumanDuration(left))
	}
}

func (k *checks) meshes() CheckCategory {
	c := CheckCategory{Title: "Meshes"}
	for _, m := range k.index.Tables(nil).meshItems() {
		if m.Type == "" {
			continue // a cluster without one
		}
		c.ok("mesh/"+m.Ref.Name, "mesh "+m.Ref.Name+" was discovered", strings.TrimSpace(m.Type+" "+m.Version)+prefixed("; not evaluated: ", strings.Join(unevaluatedIn(k.index, m.Ref), "; ")))
	}
	if len(c.Checks) == 0 {
		c.warn("mesh", "a mesh was discovered", "none in any cluster", "register a cluster that has one, or install Istio or Open Service Mesh")
	}
	k.take(&c, func(i *snapshot.Issue) bool {
		return i.Ref.Kind == snapshot.Mesh && !strings.HasPrefix(string(i.Code), "Gateway") && !slices.Contains(trustCodes, i.Code)
	})
	return c
}

func (k *checks) gateways() CheckCategory {
	c := CheckCategory{Title: "East-west gateways"}
	for _, g := range k.Gateways {
		id, what := "gateway/"+g.Mesh.Name+"/"+g.Address, "the gateway of "+g.Mesh.Name+" answers at "+g.Address
		switch {
		case k.away[g.Cluster] != "":
			c.skip(id, what, k.away[g.Cluster])
		case g.ByProxies.fails():
			c.fail(id, what, g.ByProxies.text(), "proxies of other clusters use this address: check that they reach it, and that a pod of the gateway is ready")
		case g.ByProxies.connects():
			c.ok(id, what, g.ByProxies.text())
		case g.Unanswered != "":
			c.info(id, what, "not checked from here: "+g.Unanswered, "proxies of other clusters use this address; `meshctl check --proxies 10` asks some of them")
		default:
			c.ok(id, what, "")
		}
	}
	k.take(&c, func(i *snapshot.Issue) bool { return strings.HasPrefix(string(i.Code), "Gateway") })
	return c
}

// fails reports whether no proxy that was asked gets through.
func (g *GatewayByProxies) fails() bool {
	return g != nil && (g.Excluded || g.Connections > 0 && g.Failed == g.Connections)
}

// connects reports whether proxies get through.
func (g *GatewayByProxies) connects() bool { return g != nil && !g.fails() && g.Connections > 0 }

func (g *GatewayByProxies) text() string {
	text := fmt.Sprintf("for the proxy of %s, %d of %d connections failed", firstOf(g.Asked), g.Failed, g.Connections)
	if g.Excluded {
		text += ", and it sends nothing there at present"
	}
	return text
}

func (k *checks) trust() CheckCategory {
	c := CheckCategory{Title: "Trust"}
	for _, ref := range sortedRefs(k.index.virtualMeshes) {
		trust := k.index.Trust(ref, k.Now)
		worst := CheckOK
		for _, issue := range trust.Issues {
			if issue.Severity > snapshot.Info {
				worst = CheckWarning
			}
		}
		if worst == CheckOK {
			c.ok("trust/"+ref.Name, "the trust of VirtualMesh "+ref.Name+" has no issues", trust.Model)
		}
	}
	k.take(&c, func(i *snapshot.Issue) bool {
		return slices.Contains(trustCodes, i.Code) || i.Code == snapshot.RootExpires || i.Code == snapshot.CertificateOverdue || i.Code == snapshot.AgentSilent
	})
	return c
}

// written are the kinds that users write.
var written = []snapshot.Kind{
	snapshot.VirtualMesh, snapshot.TrafficPolicy, snapshot.AccessPolicy, snapshot.VirtualDestination, snapshot.ServiceDependency,
}

func (k *checks) policies() CheckCategory {
	c := CheckCategory{Title: "Policies"}
	problems := k.take(&c, func(i *snapshot.Issue) bool {
		return i.Code != snapshot.Drifted && (slices.Contains(written, i.Ref.Kind) || i.Ref.Kind == snapshot.AccessLogRecord)
	})
	n := len(k.index.state.AccessLogs)
	for _, kind := range written {
		n += len(k.index.Refs(kind))
	}
	switch {
	case n == 0:
		c.ok("policies", "policies are in force", "there is none")
	case problems == 0:
		c.ok("policies", "policies are in force", strconv.Itoa(n))
	}
	return c
}

// drift checks that clusters have what was written there.
func (k *checks) drift() CheckCategory {
	c := CheckCategory{Title: "What was written"}
	before := len(c.Checks)
	k.take(&c, func(i *snapshot.Issue) bool {
		return i.Code == snapshot.Drifted && i.Severity == snapshot.Error
	})
	drifting := len(c.Checks) > before
	for _, name := range k.unobserved() {
		id, what := "written/"+name, "cluster "+name+" has the objects that meshctl wrote"
		switch {
		case k.away[name] != "":
			c.skip(id, what, k.away[name])
		case k.isRelayed(name): // serve compares what its agent reports, and the checks of the relay say whether that is all
		default:
			c.warn(id, what, "not known: "+k.index.unobserved[name], "see `meshctl cluster list`")
		}
	}
	if n := len(k.index.state.Output.Clusters) - len(k.index.unobserved); !drifting && n > 0 && k.index.drifts != nil {
		c.ok("written", "the clusters have the objects that meshctl wrote", snapshot.Count(n, "cluster"))
	}
	return c
}

// unobserved are the clusters of which it is not known what is in force.
func (k *checks) unobserved() []string {
	var names []string
	for _, name := range k.index.state.Output.Clusters {
		if k.index.unobserved[name] != "" {
			names = append(names, name)
		}
	}
	return names
}

func (k *checks) leftovers() CheckCategory {
	c := CheckCategory{Title: "Leftovers"}
	for i := range k.Clusters {
		found := &k.Clusters[i]
		what, hint := found.Reasons.Advice()
		switch found.Health {
		case snapshot.HealthLeftover:
			c.warn("leftovers/"+found.Name, "cluster "+found.Name+" was cleaned", what, hint)
		case snapshot.HealthUnregistered:
			c.warn("leftovers/secret/"+found.Name, "credential "+found.Name+" belongs to a registered cluster", what, hint)
		}
	}
	k.take(&c, func(i *snapshot.Issue) bool { return i.Code == snapshot.Drifted })
	if len(c.Checks) == 0 {
		c.ok("leftovers", "no unwanted objects are left", "")
	}
	return c
}

// others are the issues of services, workloads and objects that were written by hand.
func (k *checks) others() CheckCategory {
	c := CheckCategory{Title: "Services and workloads"}
	problems := k.take(&c, func(*snapshot.Issue) bool { return true })
	if problems == 0 {
		c.ok("services", "services and workloads can be used", fmt.Sprintf("%d and %d", len(k.index.destinations), len(k.index.workloads)))
	}
	return c
}
