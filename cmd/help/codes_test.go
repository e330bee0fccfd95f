package help

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// engineCodes are the codes that the engine has.
func engineCodes(t *testing.T) []string {
	t.Helper()
	var out []string
	eachFile(t, "../../engine/snapshot", func(file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if of, ok := spec.Type.(*ast.Ident); ok && of.Name == "Code" {
				for _, v := range spec.Values {
					out = append(out, text(v))
				}
			}
			return true
		})
	})
	slices.Sort(out)
	return out
}

// eachFile calls do with each source file below a folder, but for tests.
func eachFile(t *testing.T, folder string, do func(*ast.File)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err == nil {
			do(file)
		}
		return err
	}))
}

// text is the value of a literal string; empty for others.
func text(n ast.Node) string {
	literal, ok := n.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return value
}

// TestEveryCodeIsExplained: each code has one entry, and each entry is of a code.
func TestEveryCodeIsExplained(t *testing.T) {
	t.Parallel()
	named := slices.Sorted(slices.Values(codeNames()))
	require.Greater(t, len(named), 90)
	assert.Equal(t, engineCodes(t), named)
	texts := map[string]snapshot.Code{}
	for _, theme := range themes() {
		assert.NotEmpty(t, theme.Title)
		for _, c := range theme.Codes {
			assert.Contains(t, []string{"error", "warning", "info"}, c.Severity, c.Code)
			for _, sentences := range []string{c.Means, c.Because, c.Do} {
				assert.Regexp(t, "(?s)^[`A-Z3a-z].*[.]`?$", sentences, c.Code)
				assert.Zero(t, strings.Count(sentences, "`")%2, "%s: a backtick without its pair", c.Code)
				assert.Empty(t, texts[sentences], "%s says what another code says: %q", c.Code, sentences)
				texts[sentences] = c.Code
			}
		}
	}
}

// golden is an issue of a golden file.
type golden struct {
	Code     snapshot.Code `json:"code"`
	Severity string        `json:"severity"`
	Message  string        `json:"message"`
}

// goldens are the issues of the golden files, by code.
func goldens(t *testing.T) map[snapshot.Code][]golden {
	t.Helper()
	out := map[snapshot.Code][]golden{}
	files, err := filepath.Glob("../../testdata/*/*/issues.yaml")
	require.NoError(t, err)
	require.Greater(t, len(files), 100)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var issues []golden
		require.NoError(t, yaml.Unmarshal(data, &issues), file)
		for _, issue := range issues {
			out[issue.Code] = append(out[issue.Code], issue)
		}
	}
	return out
}

// TestExamplesArePrinted: each example is the message of an issue of its code in a golden file or, if none has the
// code, what a format in the sources makes. No issue is worse than the severity that is said.
func TestExamplesArePrinted(t *testing.T) {
	t.Parallel()
	seen := goldens(t)
	formats := formats(t)
	for _, theme := range themes() {
		for _, c := range theme.Codes {
			of := seen[c.Code]
			for _, issue := range of {
				worse := c.Severity == "info" && issue.Severity != "info" || c.Severity == "warning" && issue.Severity == "error"
				assert.False(t, worse, "%s: %s is worse than %s: %s", c.Code, issue.Severity, c.Severity, issue.Message)
			}
			if len(of) > 0 {
				assert.True(t, slices.ContainsFunc(of, func(issue golden) bool { return issue.Message == c.Example }),
					"%s: no golden file has this message: %q", c.Code, c.Example)
				continue
			}
			assert.True(t, slices.ContainsFunc(formats, func(format *regexp.Regexp) bool { return format.MatchString(c.Example) }),
				"%s: nothing in the sources makes this: %q", c.Code, c.Example)
		}
	}
}

// shortest is how long a text in the sources is at least by which an example is recognized.
const shortest = 5

// verb is a verb of a format.
var verb = regexp.MustCompile(`%[-+#0-9.\[\]]*[a-zA-Z]`)

// formats are what the texts in the sources make, each with anything in place of its verbs.
func formats(t *testing.T) []*regexp.Regexp {
	t.Helper()
	var out []*regexp.Regexp
	for _, folder := range []string{"../../engine", "../../certs"} {
		eachFile(t, folder, func(file *ast.File) {
			ast.Inspect(file, func(n ast.Node) bool {
				format := text(n)
				parts := verb.Split(format, -1)
				longest := 0
				for i := range parts {
					longest = max(longest, len(parts[i]))
					parts[i] = regexp.QuoteMeta(parts[i])
				}
				if longest >= shortest && strings.Contains(format, " ") && utf8.ValidString(format) {
					out = append(out, regexp.MustCompile(`^`+strings.Join(parts, `.+`)+`(: .*)?`))
				}
				return true
			})
		})
	}
	return out
}

func TestHelpOfACode(t *testing.T) {
	t.Parallel()
	streams, _, out, _ := cmdutil.TestStreams()
	code, theme := codeOf("fieldconflict")
	require.NotNil(t, code)
	require.NoError(t, code.print(streams, theme, formatText))
	for line := range strings.Lines(out.String()) {
		assert.LessOrEqual(t, len(line), 81, line)
	}
	assert.True(t, strings.HasPrefix(out.String(), "FieldConflict (error, policies)\n\nWhat it means\n  An older policy sets the same field"), out)
	assert.Contains(t, squeezed(out.String()), "sets policy.trafficShift differently for the same requests (FieldConflict)")
	assert.NotContains(t, out.String(), "`")
	out.Reset()
	require.NoError(t, code.print(streams, theme, formatMarkdown))
	assert.Contains(t, out.String(), "# FieldConflict\n\nSeverity: error\n\n## What it means\n")

	none, _ := codeOf("FieldConflicts")
	assert.Nil(t, none)
	assert.Empty(t, completeCodes(""), "a hundred codes would hide the commands")
	names := completeCodes("subset")
	require.Len(t, names, 1)
	assert.True(t, strings.HasPrefix(names[0], "SubsetEmpty\t"), names[0])
}
