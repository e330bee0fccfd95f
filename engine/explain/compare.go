package explain

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

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
	Ref snapshot.Ref `json:"ref"`
	// By are the objects of users from which it follows or, if it is removed, followed.
	By     []snapshot.Ref `json:"by,omitempty"`
	Before string         `json:"before,omitempty"`
	After  string         `json:"after,omitempty"`
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
	for o := range before.Written {
		old[o.Ref] = o
	}
	clusters := map[string]*ClusterComparison{}
	add := func(was, is *snapshot.Object) error {
		c := ObjectComparison{}
		for _, side := range []struct {
			object *snapshot.Object
			text   *string
		}{{was, &c.Before}, {is, &c.After}} {
			if side.object == nil {
				continue
			}
			data, err := side.object.YAML()
			if err != nil {
				return fmt.Errorf("compare: %w", err)
			}
			c.Ref, c.By, *side.text = side.object.Ref, side.object.Content.Parents, string(data)
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
	for o := range after.Written {
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

// Text is all that differs, as what a difference would show: lines that come (+) and lines that go (-), without
// what only meshctl needs in them.
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
		before, after := withoutMarks(o.Before), withoutMarks(o.After)
		fmt.Fprintf(&b, "# will be %s: %s%s\n", o.Verb(), o.Ref, o.by())
		switch {
		case o.Before == "":
			marked(&b, '+', after)
		case o.After == "":
			marked(&b, '-', before)
		case before == after:
			b.WriteString("# only the names of the objects from which it follows, in its annotation\n")
		default:
			b.Write(hunks(diff.Diff("before", []byte(before), "after", []byte(after))))
		}
	}
	return b.String()
}

// marked writes a text with a mark before each line.
func marked(b *bytes.Buffer, mark byte, text string) {
	for line := range strings.Lines(text) {
		b.WriteByte(mark)
		b.WriteString(line)
	}
}

// by says from which objects of users it follows.
func (o *ObjectComparison) by() string {
	if len(o.By) == 0 {
		return ""
	}
	names := make([]string, len(o.By))
	for i, ref := range o.By {
		names[i] = ref.String()
	}
	return " (by " + firstOf(names) + ")"
}

// marks are the labels by which meshctl finds what it has written.
var marks = []string{snapshot.ClusterLabel, snapshot.NetworkingOwnerLabel, snapshot.PlaneLabel}

// withoutMarks is a generated object in YAML without what marks it as one: that is the same in all of
// them, or named beside it. Other texts stay as they are.
func withoutMarks(text string) string {
	if !strings.Contains(text, snapshot.ClusterLabel) {
		return text
	}
	var object map[string]any
	if yaml.Unmarshal([]byte(text), &object) != nil {
		return text
	}
	unstructured.RemoveNestedField(object, "metadata", "annotations", snapshot.ParentsAnnotation)
	for _, label := range marks {
		unstructured.RemoveNestedField(object, "metadata", "labels", label)
	}
	for _, field := range []string{"annotations", "labels"} {
		if left, found, _ := unstructured.NestedMap(object, "metadata", field); found && len(left) == 0 {
			unstructured.RemoveNestedField(object, "metadata", field)
		}
	}
	short, err := snapshot.YAML(object)
	if err != nil {
		return text
	}
	return string(short)
}

// hunks leaves out the names at the beginning of a difference.
func hunks(text []byte) []byte {
	if i := bytes.Index(text, []byte("\n@@")); i >= 0 {
		return text[i+1:]
	}
	return text
}
