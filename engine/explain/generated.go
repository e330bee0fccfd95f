package explain

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Generated are the objects of one name that follow from an object, in all
// clusters where they do.
type Generated struct {
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Variants  []Variant `json:"variants"`
}

// Variant is what an object says in some of the clusters.
type Variant struct {
	Clusters []string `json:"clusters"`
	Lines    []Line   `json:"lines"`
}

// Line of YAML.
type Line struct {
	Text string `json:"text"`
	// Differs: not all variants have it.
	Differs bool `json:"differs,omitempty"`
}

// YAML is an object as its owner wrote it, or as it was discovered; nil if
// there is none. Secrets are no part of an Input.
func (x *Index) YAML(ref snapshot.Ref) ([]byte, error) {
	object := x.state.Find(ref)
	if object == nil {
		return nil, nil
	}
	return snapshot.Manifest(ref, object)
}

// Generated lists what follows from an object in the clusters: for a discovered
// object what was made for it, for one that a user wrote what has it among its
// parents. Objects of one kind and name are one entry.
func (x *Index) Generated(ref snapshot.Ref) ([]Generated, error) {
	var objects []*snapshot.Object
	for part := range x.state.Output.Parts.All() {
		own := slices.ContainsFunc(part.Objects, func(o *snapshot.Object) bool { return o.Ref == ref })
		for _, o := range part.Objects {
			if o.Ref.Cluster != "" && o.Ref.Kind != snapshot.Secret && (own || slices.Contains(o.Content.Parents, ref) || ofCluster(ref, o)) {
				objects = append(objects, o)
			}
		}
	}
	slices.SortFunc(objects, func(a, b *snapshot.Object) int { return a.Ref.Compare(b.Ref) })
	var out []Generated
	for len(objects) > 0 {
		n := 1
		for n < len(objects) && sameName(objects[0].Ref, objects[n].Ref) {
			n++
		}
		each, err := newGenerated(objects[:n])
		if err != nil {
			return nil, err
		}
		out = append(out, each)
		objects = objects[n:]
	}
	return out, nil
}

func ofCluster(ref snapshot.Ref, o *snapshot.Object) bool {
	return ref.Kind == snapshot.KubernetesCluster && o.Ref.Cluster == ref.Name
}

func sameName(a, b snapshot.Ref) bool {
	return a.Kind == b.Kind && a.Namespace == b.Namespace && a.Name == b.Name
}

// newGenerated makes one entry of objects of one kind and name.
func newGenerated(objects []*snapshot.Object) (Generated, error) {
	ref := objects[0].Ref
	out := Generated{Kind: ref.Kind.String(), Namespace: ref.Namespace, Name: ref.Name}
	var texts []string
	for _, o := range objects {
		data, err := o.YAML()
		if err != nil {
			return out, err
		}
		// The label that names the cluster differs by design.
		text := strings.ReplaceAll(strings.TrimSuffix(string(data), "\n"), snapshot.ClusterLabel+": "+o.Ref.Cluster, snapshot.ClusterLabel+": (its cluster)")
		if i := slices.Index(texts, text); i >= 0 {
			out.Variants[i].Clusters = append(out.Variants[i].Clusters, o.Ref.Cluster)
			continue
		}
		texts = append(texts, text)
		out.Variants = append(out.Variants, Variant{Clusters: []string{o.Ref.Cluster}, Lines: lines(text)})
	}
	for i := 1; i < len(out.Variants); i++ {
		markDifferences(out.Variants[0].Lines, out.Variants[i].Lines)
	}
	return out, nil
}

func lines(text string) []Line {
	parts := strings.Split(text, "\n")
	out := make([]Line, len(parts))
	for i, part := range parts {
		out[i].Text = part
	}
	return out
}

// markDifferences marks the lines that an anchored diff does not match: lines
// that occur once on each side hold the two together. It takes O(n log n) time
// and O(n) memory, however much differs.
func markDifferences(a, b []Line) {
	i, j := -1, -1 // before the first hunk
	for text := range strings.Lines(string(diff.Diff("a", joined(a), "b", joined(b)))) {
		var rest int
		if n, _ := fmt.Sscanf(text, "@@ -%d,%d +%d", &i, &rest, &j); n == 3 {
			i, j = i-1, j-1 // hunks count from 1
			continue
		}
		if i < 0 {
			continue
		}
		switch text[0] {
		case '-':
			a[i].Differs = true
			i++
		case '+':
			b[j].Differs = true
			j++
		default:
			i, j = i+1, j+1
		}
	}
}

func joined(lines []Line) []byte {
	var b bytes.Buffer
	for _, l := range lines {
		b.WriteString(l.Text + "\n")
	}
	return b.Bytes()
}
