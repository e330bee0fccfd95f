package explain

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Comparison is what differs between two translations.
type Comparison struct {
	// Clusters are those in which something differs, ascending by name.
	Clusters []ClusterComparison `json:"clusters"`
	// NewIssues are only in the second one, and FixedIssues only in the first one,
	// worst first.
	NewIssues   []snapshot.Issue `json:"newIssues"`
	FixedIssues []snapshot.Issue `json:"fixedIssues"`
}

// ClusterComparison is what differs in one cluster; the empty name is the
// management plane.
type ClusterComparison struct {
	Cluster string `json:"cluster"`
	// Objects are ascending by Ref.
	Objects []ObjectComparison `json:"objects"`
}

// ObjectComparison is an object before and after, as YAML; Before is empty for
// one that is created, and After for one that is removed.
type ObjectComparison struct {
	Ref    snapshot.Ref `json:"ref"`
	Before string       `json:"before,omitempty"`
	After  string       `json:"after,omitempty"`
}

// Verb is created, changed or removed.
func (o *ObjectComparison) Verb() string {
	switch {
	case o.Before == "":
		return "created"
	case o.After == "":
		return "removed"
	}
	return "changed"
}

// Compare says what another translation would change.
func Compare(before, after *snapshot.Output) (*Comparison, error) {
	out := &Comparison{
		NewIssues:   without(after.Issues, before.Issues),
		FixedIssues: without(before.Issues, after.Issues),
	}
	old := map[snapshot.Ref]*snapshot.Object{}
	for o := range before.Objects {
		old[o.Ref] = o
	}
	clusters := map[string]*ClusterComparison{}
	add := func(was, is *snapshot.Object) error {
		c := ObjectComparison{}
		for object, text := range map[*snapshot.Object]*string{was: &c.Before, is: &c.After} {
			if object == nil {
				continue
			}
			data, err := object.YAML()
			if err != nil {
				return fmt.Errorf("compare: %w", err)
			}
			c.Ref, *text = object.Ref, string(data)
		}
		if c.Before == c.After {
			return nil
		}
		if clusters[c.Ref.Cluster] == nil {
			clusters[c.Ref.Cluster] = &ClusterComparison{Cluster: c.Ref.Cluster}
		}
		clusters[c.Ref.Cluster].Objects = append(clusters[c.Ref.Cluster].Objects, c)
		return nil
	}
	for o := range after.Objects {
		was := old[o.Ref]
		delete(old, o.Ref)
		// Objects share their content where it is the same.
		if was == o || was != nil && was.Content == o.Content {
			continue
		}
		if err := add(was, o); err != nil {
			return nil, err
		}
	}
	for _, o := range old {
		if err := add(o, nil); err != nil {
			return nil, err
		}
	}
	for _, c := range clusters {
		slices.SortFunc(c.Objects, func(a, b ObjectComparison) int { return a.Ref.Compare(b.Ref) })
		out.Clusters = append(out.Clusters, *c)
	}
	slices.SortFunc(out.Clusters, func(a, b ClusterComparison) int { return strings.Compare(a.Cluster, b.Cluster) })
	return out, nil
}

// without lists what is in one list of issues and not in the other; both are sorted.
func without(issues, others []snapshot.Issue) []snapshot.Issue {
	out := []snapshot.Issue{}
	for _, issue := range issues {
		if _, found := slices.BinarySearchFunc(others, issue, snapshot.Issue.Compare); !found {
			out = append(out, issue)
		}
	}
	return out
}

// Text is all that differs, in full: what is created as YAML, what is changed
// as its lines before (-) and after (+).
func (c *Comparison) Text() string {
	var b strings.Builder
	for i := range c.Clusters {
		b.WriteString(c.Clusters[i].Text())
	}
	return b.String()
}

// Text is all that differs in the cluster, as of Comparison.Text.
func (c *ClusterComparison) Text() string {
	var b bytes.Buffer
	for i := range c.Objects {
		o := &c.Objects[i]
		fmt.Fprintf(&b, "# %s: %s\n", o.Verb(), o.Ref)
		if o.Verb() == "changed" {
			b.Write(hunks(diff.Diff("before", []byte(o.Before), "after", []byte(o.After))))
			continue
		}
		b.WriteString(o.After + o.Before)
	}
	return b.String()
}

// hunks leaves out the names at the beginning of a difference.
func hunks(text []byte) []byte {
	if i := bytes.Index(text, []byte("\n@@")); i >= 0 {
		return text[i+1:]
	}
	return text
}
