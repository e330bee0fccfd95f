package offline_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// result is one thing that follows from an input: an object, a status or an issue.
type result struct {
	// key tells what it is, and no other result of the input.
	key string
	// file is where it belongs, separator what stands before it there, unless
	// it is the first one.
	file, separator, text string
}

const issuesFile = "issues.yaml"

// plainIssue is an issue without the command that explains its code: that follows from the code.
type plainIssue snapshot.Issue

// translate gives all that follows from a folder, in the order of the golden files.
func translate(t *testing.T, in fs.FS) []result {
	t.Helper()
	input, issues, err := offline.Load(in)
	require.NoError(t, err)
	return resultsOf(t, input, issues)
}

// resultsOf also lists the issues that were found while the input was read.
func resultsOf(t *testing.T, in *snapshot.Input, issues []snapshot.Issue) []result {
	t.Helper()
	var results []result
	add := func(r result, text []byte, err error) {
		require.NoError(t, err)
		r.text = compact(t, text)
		results = append(results, r)
	}
	output := engine.Translate(in).Output
	byCluster := output.ByCluster()
	for _, cluster := range slices.Sorted(maps.Keys(byCluster)) {
		for _, o := range byCluster[cluster] {
			folder := cmp.Or(cluster, offline.ManagementFolder)
			file := path.Join("out", folder, strings.ToLower(o.Ref.Kind.String())+".yaml")
			text, err := o.YAML()
			add(result{key: o.Ref.String(), file: file, separator: "---\n"}, text, err)
		}
	}
	for s := range output.Statuses.All() {
		text, err := snapshot.YAML(map[string]any{s.Ref.String(): abridged(t, s.Value, in.Management)})
		add(result{key: "status of " + s.Ref.String(), file: "statuses.yaml"}, text, err)
	}
	issues = append(issues, output.Issues...)
	slices.SortFunc(issues, snapshot.Issue.Compare)
	for _, issue := range issues {
		text, err := snapshot.YAML([]plainIssue{plainIssue(issue)})
		key := fmt.Sprintf("issue %s of %s: %s", issue.Code, issue.Ref, issue.Text())
		if issue.Target != (snapshot.Ref{}) {
			key += " (" + issue.Target.String() + ")"
		}
		add(result{key: key, file: issuesFile}, text, err)
	}
	keys := map[string]bool{}
	for _, r := range results {
		require.False(t, keys[r.key], "twice: %s", r.key)
		keys[r.key] = true
	}
	return results
}

// asWritten stands in a status for a spec that is that of the policy in the input.
const asWritten = "as written"

// abridged is a status with asWritten for every spec that says nothing new.
func abridged(t *testing.T, value any, in *snapshot.Management) map[string]any {
	t.Helper()
	status, _ := generic(t, value).(map[string]any)
	abridge(t, status["appliedTrafficPolicies"], in.TrafficPolicies)
	abridge(t, status["appliedAccessPolicies"], in.AccessPolicies)
	abridge(t, []any{status["appliedVirtualMesh"]}, in.VirtualMeshes)
	if list, some := status["conditions"].([]any); some {
		status["conditions"] = conditionTexts(list, status["observedGeneration"])
	}
	return status
}

// conditionTexts are conditions by type: "True" for the usual reason, else with the reason and the message.
func conditionTexts(conditions []any, generation any) map[string]string {
	out := map[string]string{}
	for _, element := range conditions {
		c, _ := element.(map[string]any)
		name, text := fmt.Sprint(c["type"]), fmt.Sprint(c["status"])
		if reason := fmt.Sprint(c["reason"]); reason != name {
			text += " " + reason
		}
		if message := fmt.Sprint(c["message"]); message != "" {
			text += ": " + message
		}
		if !reflect.DeepEqual(c["observedGeneration"], generation) {
			text += fmt.Sprintf(" (generation %v)", c["observedGeneration"])
		}
		out[name] = text
	}
	return out
}

func abridge[T interface {
	GetNamespace() string
	GetName() string
}](t *testing.T, applied any, policies []T,
) {
	t.Helper()
	entries, _ := applied.([]any)
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		for _, p := range policies {
			policy, _ := generic(t, p).(map[string]any)
			ref := map[string]any{"namespace": p.GetNamespace(), "name": p.GetName()}
			if reflect.DeepEqual(entry["ref"], ref) && reflect.DeepEqual(entry["spec"], policy["spec"]) {
				entry["spec"] = asWritten
			}
		}
	}
}

// generic is a value as JSON has it.
func generic(t *testing.T, value any) any {
	t.Helper()
	data, err := json.Marshal(value)
	require.NoError(t, err)
	var out any
	require.NoError(t, json.Unmarshal(data, &out))
	return out
}

// Limits of what is written on one line: columns, and collections in one another.
const (
	maxWidth = 120
	maxDepth = 2
)

// compact writes small mappings and lists of a YAML document on one line.
func compact(t *testing.T, document []byte) string {
	t.Helper()
	var root yamlv3.Node
	require.NoError(t, yamlv3.Unmarshal(document, &root))
	compactItems(root.Content[0], 0)
	var out bytes.Buffer
	encoder := yamlv3.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	require.NoError(t, encoder.Encode(&root))
	return out.String()
}

// compactItems compacts what is in a collection that begins in this column.
func compactItems(n *yamlv3.Node, column int) {
	isMap := n.Kind == yamlv3.MappingNode
	for i, item := range n.Content {
		begin, inner := column+len("- "), column+len("- ")
		if isMap {
			if i%2 == 0 {
				continue // a key
			}
			begin = column + len(n.Content[i-1].Value) + len(": ")
			if item.Kind == yamlv3.SequenceNode {
				inner = column
			}
		}
		width, depth := oneLine(item)
		if depth > 0 && depth <= maxDepth && begin+width <= maxWidth {
			item.Style = yamlv3.FlowStyle
			continue
		}
		if item.Kind != yamlv3.ScalarNode {
			compactItems(item, inner)
		}
	}
}

// oneLine is how wide a node is on one line, and how many collections are in
// one another; those that must not be on one line are too deep.
func oneLine(n *yamlv3.Node) (width, depth int) {
	if n.Kind == yamlv3.ScalarNode {
		if strings.Contains(n.Value, "\n") {
			return 0, maxDepth + 1
		}
		if n.Style&(yamlv3.SingleQuotedStyle|yamlv3.DoubleQuotedStyle) != 0 {
			return len(n.Value) + len("''"), 0
		}
		return len(n.Value), 0
	}
	for _, item := range n.Content {
		w, d := oneLine(item)
		width, depth = width+w+len(", "), max(depth, d)
	}
	return max(width, len("{}")), depth + 1
}
