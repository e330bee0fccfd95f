package wizards

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Catalog is what was discovered, and what follows from it.
type Catalog struct {
	*snapshot.State

	translator *engine.Translator
	now        time.Time
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
	typed.SetCreationTimestamp(metav1.NewTime(c.now))
	if before := c.Input.Find(ref); before != nil {
		typed.SetCreationTimestamp(before.GetCreationTimestamp())
	}
	in, err := c.Input.With("", typed)
	if err != nil {
		return nil, err
	}
	planned, err := explain.Plan(explain.New(c.State), explain.New(c.translator.Translate(in)), nil)
	if err != nil {
		return nil, err
	}
	p := &Preview{Planned: planned, ref: ref}
	for _, c := range in.Clusters {
		if in.RefuseIntersecting && c.Sync == snapshot.Unsynced {
			p.unread = append(p.unread, c.Name)
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

// Summary says in a few lines what the object would do to traffic, what it would change in each
// cluster, and which issues would appear and disappear.
func (p *Preview) Summary() string {
	var b strings.Builder
	p.writeEffects(&b)
	if len(p.Clusters) == 0 {
		b.WriteString("No object would change in any cluster.\n")
	}
	for _, c := range p.Clusters {
		name := c.Cluster
		if name == "" {
			name = "the management plane"
		}
		fmt.Fprintf(&b, "In %s: %s\n", name, snapshot.Count(len(c.Objects), "object"))
		for i := range c.Objects {
			if i == maxObjects {
				fmt.Fprintf(&b, "  … and %d more\n", len(c.Objects)-i)
				break
			}
			o := &c.Objects[i]
			fmt.Fprintf(&b, "  %s %s %s/%s\n", o.Verb(), o.Ref.Kind, o.Ref.Namespace, o.Ref.Name)
		}
	}
	if len(p.unread) > 0 {
		fmt.Fprintf(&b, "The management plane rejects policies that intersect with hand-written objects. Those in %s were not read.\n", strings.Join(p.unread, ", "))
	}
	own, others := p.Issues()
	writeIssues(&b, "Issues of this object:", own)
	writeIssues(&b, "New issues of other objects:", others)
	writeIssues(&b, "Issues that this fixes:", p.FixedIssues)
	return clean(b.String())
}

func (p *Preview) writeEffects(b *strings.Builder) {
	for i := range p.Effects {
		switch {
		case i == 0:
			b.WriteString("What it does to traffic:\n")
		case i == maxEffects:
			fmt.Fprintf(b, "  … and %d more\n", len(p.Effects)-i)
			return
		}
		fmt.Fprintf(b, "  %s %s\n", p.Effects[i].Mark(), p.Effects[i].Text())
	}
}

func writeIssues(b *strings.Builder, title string, issues []snapshot.Issue) {
	if len(issues) == 0 {
		return
	}
	b.WriteString(title + "\n")
	for i, issue := range issues {
		if i == maxObjects {
			fmt.Fprintf(b, "  … and %d more\n", len(issues)-i)
			break
		}
		fmt.Fprintf(b, "  %s  %s\n", issue.Severity, issue.Summary())
		if issue.Hint != "" {
			fmt.Fprintf(b, "         → %s\n", issue.Hint)
		}
	}
}

// Full shows every difference, object by object.
func (p *Preview) Full() string { return p.Text() }
