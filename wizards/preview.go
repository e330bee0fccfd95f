package wizards

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	rbacv1 "github.com/meshctl/meshctl/engine/api/rbac/v1"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Catalog is what was discovered, and what follows from it.
type Catalog struct {
	*snapshot.State

	translator *engine.Translator
	now        time.Time
	index      *explain.Index
}

// Index answers questions about what was discovered.
func (c *Catalog) Index() *explain.Index {
	if c.index == nil {
		c.index = explain.New(c.State)
	}
	return c.index
}

// NewCatalog translates an input. Now is the creation time of the new object,
// which decides its precedence.
func NewCatalog(in *snapshot.Input, now time.Time) *Catalog {
	translator := engine.New(engine.Options{})
	return &Catalog{State: translator.Translate(in), translator: translator, now: now}
}

// Preview is what an object would change.
type Preview struct {
	*explain.Planned

	ref snapshot.Ref
	// state of the object, by its status.
	state commonv1.ApprovalState
	notes []string
	// unread are clusters that were not read, although hand-written objects in
	// them could make the management plane reject the object.
	unread []string
}

// Exists reports whether an object of that kind and name already exists.
func (c *Catalog) Exists(kind snapshot.Kind, namespace, name string) bool {
	return c.Input.Find(snapshot.Ref{Kind: kind, Namespace: namespace, Name: name}) != nil
}

// Preview translates again, with the object.
func (c *Catalog) Preview(object *unstructured.Unstructured) (*Preview, error) {
	kind, _ := snapshot.KindOf(object.GroupVersionKind().GroupKind())
	typed := kind.New()
	if typed == nil || kind.Info().Side != snapshot.ManagementSide {
		return nil, fmt.Errorf("%s cannot be previewed", object.GetKind())
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
	}
	ref := snapshot.RefOf(kind, typed)
	planned, after, err := c.Index().Plan(c.translator.Translate, []explain.Edit{{Ref: ref, Object: typed}}, c.now)
	if err != nil {
		return nil, err
	}
	p := &Preview{Planned: planned, ref: ref, state: stateOf(after, ref), notes: notesOn(typed)}
	for _, cluster := range c.Input.Clusters {
		if c.Input.RefuseIntersecting && cluster.Sync == snapshot.Unsynced {
			p.unread = append(p.unread, cluster.Name)
		}
	}
	return p, nil
}

// Issues are the new issues: those of the object itself, and those of others.
func (p *Preview) Issues() (own, others []snapshot.Issue) {
	for _, issue := range p.NewIssues {
		if issue.Ref == p.ref {
			own = append(own, issue)
		} else {
			others = append(others, issue)
		}
	}
	return own, others
}

// maxObjects bounds the objects of a cluster that a summary lists, and maxEffects what it says
// about traffic.
const (
	maxObjects = 8
	maxEffects = 12
)

// Line is a line of text and how bad what it says is.
type Line struct {
	Level explain.Level
	Text  string
}

// lines collects lines, cleaned.
type lines []Line

func (l *lines) add(level explain.Level, format string, args ...any) {
	*l = append(*l, Line{level, clean(fmt.Sprintf(format, args...))})
}

// Text is lines without their levels.
func Text(lines []Line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.Text + "\n")
	}
	return b.String()
}

// Summary says in a few lines what the object would do to traffic, what it would change in each
// cluster, and which issues would appear and disappear.
func (p *Preview) Summary() []Line {
	var out lines
	p.addEffects(&out)
	if len(p.Clusters) == 0 {
		out.add(explain.OK, "No object would change in any cluster.")
	}
	for _, c := range p.Clusters {
		name := c.Cluster
		if name == "" {
			name = "the management plane"
		}
		out.add(explain.OK, "In %s: %s", name, snapshot.Count(len(c.Objects), "object"))
		for i := range c.Objects {
			if i == maxObjects {
				out.add(explain.OK, "  … and %d more", len(c.Objects)-i)
				break
			}
			o := &c.Objects[i]
			out.add(explain.OK, "  %s %s %s/%s", o.Verb(), o.Ref.Kind, o.Ref.Namespace, o.Ref.Name)
		}
	}
	if len(p.unread) > 0 {
		out.add(explain.Info, "The management plane rejects policies that intersect with hand-written objects. Those in %s were not read.", strings.Join(p.unread, ", "))
	}
	out = append(out, p.Warnings()...)
	out.addIssues("Issues that this fixes:", p.FixedIssues)
	return out
}

// Warnings are the notes and the new issues of the Summary.
func (p *Preview) Warnings() []Line {
	var out lines
	for _, note := range p.notes {
		out.add(explain.Warning, "Note: %s", note)
	}
	own, others := p.Issues()
	title := "Issues of this object:"
	if p.state != "" && p.state != commonv1.ApprovalStateAccepted && p.state != commonv1.ApprovalStatePending {
		title = fmt.Sprintf("This object would be %s:", p.state)
	}
	out.addIssues(title, own)
	out.addIssues("New issues of other objects:", others)
	return out
}

// HasErrors reports whether something would not be in force because of the object.
func (p *Preview) HasErrors() bool { return snapshot.HasErrors(p.NewIssues) }

func (p *Preview) addEffects(out *lines) {
	for i := range p.Effects {
		switch {
		case i == 0:
			out.add(explain.OK, "What it does to traffic:")
		case i == maxEffects:
			out.add(explain.OK, "  … and %d more", len(p.Effects)-i)
			return
		}
		out.add(p.Effects[i].Level(), "  %s %s", p.Effects[i].Mark(), p.Effects[i].Text())
	}
}

func (l *lines) addIssues(title string, issues []snapshot.Issue) {
	if len(issues) == 0 {
		return
	}
	l.add(explain.OK, "%s", title)
	for i, issue := range issues {
		if i == maxObjects {
			l.add(explain.OK, "  … and %d more", len(issues)-i)
			break
		}
		l.add(explain.LevelOf(issue.Severity), "  %s  %s", issue.Severity, issue.Summary())
		if issue.Hint != "" {
			l.add(explain.OK, "         → %s", issue.Hint)
		}
	}
}

// stateOf is the state of an object as its status says it; empty if it has none.
func stateOf(x *explain.Index, ref snapshot.Ref) commonv1.ApprovalState {
	switch o := x.Describe(ref).(type) {
	case *explain.Policy:
		return o.State
	case *explain.VirtualMesh:
		return o.State
	}
	return ""
}

// notesOn are sentences about settings that do not do what one might expect of them.
func notesOn(o snapshot.APIObject) []string {
	if role, ok := o.(*rbacv1.Role); ok {
		return notesOnRole(role)
	}
	policy, ok := o.(*networkingv1.TrafficPolicy)
	if !ok || policy.Spec.Policy == nil || policy.Spec.Policy.TrafficShift == nil {
		return nil
	}
	if targets := policy.Spec.Policy.TrafficShift.Destinations; len(targets) == 1 && targets[0].Weight != 0 && targets[0].Weight != wholeShare {
		return []string{singleTarget}
	}
	return nil
}

// Full shows every difference, object by object.
func (p *Preview) Full() string { return p.Text() }
