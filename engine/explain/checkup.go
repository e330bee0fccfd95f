package explain

import (
	"fmt"
	"strings"
	"time"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// CheckResult is what came of a check.
type CheckResult string

// The results, from best to worst. Info is what could not be checked from here, and is no reason to doubt. Skipped ones depend on
// one that failed.
const (
	CheckOK      CheckResult = "ok"
	CheckInfo    CheckResult = "info"
	CheckSkipped CheckResult = "skipped"
	CheckWarning CheckResult = "warning"
	CheckFailure CheckResult = "failure"
)

// Checkup is the health of a management plane and of all that it manages.
type Checkup struct {
	// Result is the worst of all.
	Result CheckResult `json:"result"`
	// Failures, Warnings, Skipped, Infos and OK count the checks.
	Failures int `json:"failures"`
	Warnings int `json:"warnings"`
	Skipped  int `json:"skipped"`
	Infos    int `json:"infos"`
	OK       int `json:"ok"`
	// Problems counts the issues of all objects. Checks may find more than these, such as that no serve leads; and an issue
	// about a cluster that does not answer is a check that was skipped.
	Problems   Tally           `json:"problems"`
	Categories []CheckCategory `json:"categories"`
}

// CheckCategory is the checks of one subject.
type CheckCategory struct {
	Title  string  `json:"category"`
	Checks []Check `json:"checks"`
}

// Check is one thing that was looked at.
type Check struct {
	// ID names it for scripts, such as cluster-answers/cluster-2: it stays the same from
	// version to version.
	ID string `json:"id"`
	// Description is what was checked, as a statement: "the cluster answers".
	Description string      `json:"check"`
	Result      CheckResult `json:"result"`
	// Message says what is wrong or, where nothing is, what was seen.
	Message string `json:"message,omitempty"`
	// Hint is the next step.
	Hint string `json:"hint,omitempty"`
	// Code is that of the issue that it is about, and On its object; if it is about one.
	Code snapshot.Code `json:"code,omitempty"`
	// Help is the command that explains the code.
	Help string        `json:"help,omitempty"`
	On   *snapshot.Ref `json:"on,omitempty"`
	// Object is the one to fix, Target the one on which it matters, if that is another, and InForce says on
	// how many of its targets the object is in force: "in force on 0 of 2".
	Object  *snapshot.Ref `json:"object,omitempty"`
	Target  *snapshot.Ref `json:"target,omitempty"`
	InForce string        `json:"inForce,omitempty"`
	// Count is how many checks it stands for, if these are more than one: so many of one kind are not listed one by one.
	Count int `json:"count,omitempty"`
	// Because is the ID of the check because of whose failure it was skipped.
	Because string `json:"because,omitempty"`
}

// CheckFacts are what a Checkup follows from and is in no object that is watched.
type CheckFacts struct {
	Now time.Time
	// Offline: nothing was asked, only manifests were read; the facts below are not known.
	Offline bool
	// Unread says why the management cluster cannot be read, and UnreadHint the next step;
	// empty if it can.
	Unread, UnreadHint string
	// Kubernetes is the version of its API server.
	Kubernetes string
	Serving    snapshot.Serving
	// Ready of Replicas pods of serve run, if it is Installed in the cluster.
	Installed       bool
	Ready, Replicas int
	// TypesCurrent counts the custom resource types that are as in this version; the others
	// are TypesOther and TypesMissing.
	TypesCurrent             int
	TypesOther, TypesMissing []string
	// Skew says what to do so that all that is installed is of one version.
	Skew     []snapshot.Reason
	Clusters []CheckedCluster
	Gateways []CheckedGateway
	// Relay is the address at which agents find serve, as it was found from here; nil if that was not tried.
	Relay *CheckedRelay
	// Translate translates an Input with another mode of federation, to compare sizes; nil leaves that out.
	Translate func(*snapshot.Input) *snapshot.State
	// Proxies is a sample of what proxies hold; nil if none was taken.
	Proxies *CheckedProxies
}

// CheckedCluster is a registered cluster as it was found from here.
type CheckedCluster struct {
	Name   string
	Health snapshot.Health
	// Reasons say why it is not healthy.
	Reasons snapshot.Reasons
	// Version of its API server, and its address.
	Version, Server string
	Latency         time.Duration
	// Expires is when its credential does; zero if never, or if that is not known.
	Expires time.Time
	// Served is what the serve that runs says: that it reaches the cluster, that it does not
	// or, if both are false, nothing.
	Served, NotServed bool
	ServeMessage      string
	// Connection is that of its agent, as serve stored it; nil if the cluster is dialled directly.
	Connection *multiclusterv1alpha1.Connection
}

// CheckedGateway is an address of an east-west gateway.
type CheckedGateway struct {
	Mesh    snapshot.Ref
	Cluster string
	Address string
	// Unanswered says why no connection could be made from here; empty if one could.
	Unanswered string
	// ByProxies is what proxies of other clusters found; nil if none was asked.
	ByProxies *GatewayByProxies
}

// GatewayByProxies is how a gateway is for the proxies of other clusters, which is what matters.
type GatewayByProxies struct {
	// Asked are their pods, as CLUSTER/NAMESPACE/NAME.
	Asked []string
	// Connections were made to it by those, as far back as they count, of which Failed failed.
	Connections, Failed uint64
	// Excluded: a proxy sends nothing there at present, because it did not answer.
	Excluded bool
}

// add adds a check.
func (c *CheckCategory) add(check Check) { c.Checks = append(c.Checks, check) }

func (c *CheckCategory) ok(id, description, message string) {
	c.add(Check{ID: id, Description: description, Result: CheckOK, Message: message})
}

func (c *CheckCategory) info(id, description, message, hint string) {
	c.add(Check{ID: id, Description: description, Result: CheckInfo, Message: message, Hint: hint})
}

func (c *CheckCategory) warn(id, description, message, hint string) {
	c.add(Check{ID: id, Description: description, Result: CheckWarning, Message: message, Hint: hint})
}

func (c *CheckCategory) fail(id, description, message, hint string) {
	c.add(Check{ID: id, Description: description, Result: CheckFailure, Message: message, Hint: hint})
}

func (c *CheckCategory) skip(id, description, because string) {
	c.add(Check{ID: id, Description: description, Result: CheckSkipped, Because: because})
}

// NewCheckupOf counts what categories have, without those that have no checks.
func NewCheckupOf(categories ...CheckCategory) *Checkup {
	out := &Checkup{Result: CheckOK, Categories: []CheckCategory{}}
	for _, c := range categories {
		if len(c.Checks) == 0 {
			continue
		}
		out.Categories = append(out.Categories, c)
		for i := range c.Checks {
			n := max(c.Checks[i].Count, 1)
			switch c.Checks[i].Result {
			case CheckOK:
				out.OK += n
			case CheckInfo:
				out.Infos += n
			case CheckSkipped:
				out.Skipped += n
			case CheckWarning:
				out.Warnings += n
			case CheckFailure:
				out.Failures += n
			}
		}
	}
	switch {
	case out.Failures > 0:
		out.Result = CheckFailure
	case out.Warnings > 0:
		out.Result = CheckWarning
	}
	return out
}

// Summary counts the results in words, and the issues, too, if there are more or fewer of them.
func (c *Checkup) Summary() string {
	var parts []string
	for _, part := range []struct {
		n    int
		word string
	}{{c.Failures, "failure"}, {c.Warnings, "warning"}} {
		if part.n > 0 {
			parts = append(parts, snapshot.Count(part.n, part.word))
		}
	}
	if c.Infos > 0 {
		parts = append(parts, fmt.Sprintf("%d info", c.Infos))
	}
	if c.Skipped > 0 {
		parts = append(parts, fmt.Sprintf("%d not made", c.Skipped))
	}
	text := strings.Join(append(parts, fmt.Sprintf("%d ok", c.OK)), ", ")
	if issues := (Tally{Errors: c.Problems.Errors, Warnings: c.Problems.Warnings}); issues.Wrong() > 0 && (issues.Errors != c.Failures || issues.Warnings != c.Warnings) {
		text += "; issues of objects: " + issues.String()
	}
	return text
}

// Dependents counts the checks that were skipped because of one.
func (c *Checkup) Dependents(id string) int {
	n := 0
	for i := range c.Categories {
		for j := range c.Categories[i].Checks {
			if c.Categories[i].Checks[j].Because == id {
				n++
			}
		}
	}
	return n
}

// Table lists the checks, the worst first, without those that were skipped.
func (c *Checkup) Table() Table {
	type item struct {
		Category string `json:"category"`
		Check
	}
	var items []item
	for _, result := range []CheckResult{CheckFailure, CheckWarning, CheckInfo, CheckOK} {
		for i := range c.Categories {
			for _, check := range c.Categories[i].Checks {
				if check.Result == result {
					items = append(items, item{c.Categories[i].Title, check})
				}
			}
		}
	}
	columns := []column[item]{
		text("RESULT", 0, func(i *item) string { return string(i.Result) }),
		text("ABOUT", 0, func(i *item) string { return i.Category }),
		sentence("CHECK", func(i *item) string {
			text := i.Description
			if i.Message != "" {
				text += ": " + i.Message
			}
			if n := c.Dependents(i.ID); n > 0 {
				text += " (because of this, " + snapshot.Count(n, "check") + " could not be made)"
			}
			return text
		}),
		text("ID", 4, func(i *item) string { return i.ID }),
	}
	levels := map[CheckResult]Level{CheckInfo: Info, CheckWarning: Warning, CheckFailure: Error}
	return newTable("Nothing was checked yet.", columns, items, func(i *item) Row {
		row := Row{Key: i.ID, Level: levels[i.Result], Note: i.Message, Next: i.Hint}
		if i.On != nil {
			row.Ref = *i.On
		}
		return row
	})
}
