package help

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
)

// printed is what a topic prints on a terminal of a width.
func printed(t *testing.T, topic string, width int, format cmdutil.Format, words ...string) string {
	t.Helper()
	streams, _, out, _ := cmdutil.TestStreams()
	streams.Width = width
	require.NoError(t, topicOf(topic).print(streams, words, format))
	return out.String()
}

// squeezed is a text without line breaks and alignment.
func squeezed(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestDifferencesAreComplete(t *testing.T) {
	t.Parallel()
	topics := map[string]bool{}
	texts := map[string]bool{}
	count := 0
	for _, area := range differences() {
		assert.NotEmpty(t, area.Title)
		assert.False(t, topics[area.Title], "%s: two areas of that title", area.Title)
		topics[area.Title] = true
		for _, d := range area.Rows {
			count++
			name := area.Title + ": " + d.Case
			assert.NotEmpty(t, d.Case, area.Title)
			assert.False(t, topics[name], "%s: two rows", name)
			topics[name] = true
			assert.NotEqual(t, d.GlooMesh, d.Meshctl, name)
			for _, text := range []string{d.GlooMesh, d.Meshctl} {
				assert.True(t, strings.HasSuffix(text, ".") || strings.HasSuffix(text, "`."), "%s: %q is no sentence", name, text)
				assert.Zero(t, strings.Count(text+d.Case, "`")%2, "%s: a backtick without its pair", name)
			}
			assert.False(t, texts[d.GlooMesh+d.Meshctl], "%s: another row says the same", name)
			texts[d.GlooMesh+d.Meshctl] = true
		}
	}
	assert.Greater(t, count, 60)
}

// TestTopicsPrintAllRows: whatever the width, and as Markdown.
func TestTopicsPrintAllRows(t *testing.T) {
	t.Parallel()
	for _, topic := range []string{"meshes", "gloo-mesh"} {
		markdown := printed(t, topic, 80, formatMarkdown)
		has := func(text, part string) {
			if !strings.Contains(text, part) { // assert.Contains would print the whole topic
				t.Errorf("%s has no %q", topic, part)
			}
		}
		for _, width := range []int{40, 80, 200} {
			text := printed(t, topic, width, formatText)
			for line := range strings.Lines(text) {
				if width >= 80 { // longer than the longest word
					assert.LessOrEqual(t, ansi.StringWidth(strings.TrimSuffix(line, "\n")), width, line)
				}
			}
			for _, s := range topicOf(topic).sections() {
				has(text, "\n"+s.title+"\n")
				has(markdown, "\n## "+s.title+"\n")
				for _, r := range s.rows {
					for _, part := range append([]string{r.about}, r.cells...) {
						has(squeezed(text), squeezed(plain(part)))
					}
					has(markdown, "| "+r.about+" | "+strings.Join(r.cells, " | ")+" |\n")
				}
			}
		}
	}
}

// TestMeshesHasEveryDeclaration: each field and case that a renderer declares is
// in a row, with its note.
func TestMeshesHasEveryDeclaration(t *testing.T) {
	t.Parallel()
	for _, of := range explain.DeclaredFields() {
		rows := explain.SupportTable(of, engine.Dialects())
		find := func(path, of string) *explain.SupportRow {
			for i, r := range rows {
				if r.Case == of && (r.Field == path || of == "" && strings.HasPrefix(path, r.Field+".")) {
					return &rows[i]
				}
			}
			return nil
		}
		for i, d := range engine.Dialects() {
			for _, path := range of.Fields {
				declared, _ := d.Of(of.Kind, path, "")
				if row := find(path, ""); assert.NotNil(t, row, "%s.%s", of.Kind, path) {
					assert.True(t, strings.HasPrefix(row.Cells[i], declared.String()), "%s.%s: %s", of.Kind, path, row.Cells[i])
					assert.True(t, strings.HasSuffix(row.Cells[i], declared.Note), "%s.%s: %s", of.Kind, path, row.Cells[i])
				}
			}
			for _, f := range d.Fields {
				if f.Kind != of.Kind || f.Case == "" {
					continue
				}
				if row := find(f.Path, f.Case); assert.NotNil(t, row, "%s.%s %s", f.Kind, f.Path, f.Case) {
					assert.True(t, strings.HasPrefix(row.Cells[i], f.String()), "%s.%s %s: %s", f.Kind, f.Path, f.Case, row.Cells[i])
					assert.True(t, strings.HasSuffix(row.Cells[i], f.Note), "%s.%s %s: %s", f.Kind, f.Path, f.Case, row.Cells[i])
				}
			}
		}
		for _, r := range rows {
			for _, cell := range r.Cells {
				assert.Regexp(t, `^(enforced|approximated: .+|not expressible: .+|enforced: .+)$`, cell, "%s.%s %s", of.Kind, r.Field, r.Case)
			}
		}
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	text := printed(t, "meshes", 80, formatText, "policy.Mirror")
	assert.Equal(t, "TrafficPolicy\n  policy.mirror\n      Istio  enforced\n      OSM    not expressible: SMI has no mirroring\n", text)
	text = printed(t, "meshes", 80, formatText, "virtualmesh", "security")
	assert.Contains(t, text, "mtlsConfig")
	assert.NotContains(t, text, "federation", "all words must be in a row")
	assert.Contains(t, printed(t, "gloo-mesh", 80, formatMarkdown, "404"), "| `httpRequestMatchers` |")

	streams, _, out, _ := cmdutil.TestStreams()
	err := topicOf("meshes").print(streams, []string{"nonsense"}, formatText)
	assert.Equal(t, cmdutil.ExitNotFound, cmdutil.ExitCode(err))
	assert.Empty(t, out.String())
}
