package cmd_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/waittest"
)

// typed completes a line in bash: the words are those that bash makes of it.
const typed = `source "$1"
COMP_WORDBREAKS=$' \t\n"'"'"'><=;|&(:'
COMP_LINE=$2 COMP_POINT=${#2} COMP_TYPE=9 COMP_KEY=9
shift 2
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
compopt() { :; }
__start_meshctl meshctl "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\n' "${COMPREPLY[@]}"
`

// bashWords breaks a line as readline does with COMP_WORDBREAKS.
func bashWords(line string) []string {
	words := []string{""}
	for _, c := range line {
		last := &words[len(words)-1]
		switch {
		case c == ' ':
			if *last != "" {
				words = append(words, "")
			}
		case c == '=' || c == ':':
			if *last == "" {
				*last = string(c)
			} else {
				words = append(words, string(c))
			}
			words = append(words, "")
		default:
			*last += string(c)
		}
	}
	return words
}

// TestCompletionInBash: a real bash completes with the script that meshctl prints, without the
// package bash-completion.
func TestCompletionInBash(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	// The test binary is meshctl by that name; see TestMain.
	require.NoError(t, os.Symlink(self, filepath.Join(dir, "meshctl")))
	script, _, code := run(t.Context(), "completion", "bash")
	require.Zero(t, code)
	file := filepath.Join(dir, "completion.bash")
	require.NoError(t, os.WriteFile(file, []byte(script), 0o600))
	kubeconfig := filepath.Join(dir, "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, []byte(`{"apiVersion":"v1","kind":"Config","current-context":"prod",
		"clusters":[{"name":"a","cluster":{"server":"https://192.0.2.1:6443"}}],"contexts":[{"name":"prod","context":{"cluster":"a"}}]}`), 0o600))
	folder, err := filepath.Abs(cases + "/bookinfo/in")
	require.NoError(t, err)
	complete := func(t *testing.T, line string) (replies []string, errs string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit())
		defer cancel()
		command := exec.CommandContext(ctx, bash, append([]string{"--norc", "--noprofile", "-c", typed, "bash", file, line}, bashWords(line)...)...)
		command.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "KUBECONFIG="+kubeconfig)
		var stderr strings.Builder
		command.Stderr = &stderr
		out, err := command.Output()
		require.NoError(t, err, stderr.String())
		for line := range strings.Lines(string(out)) {
			word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			replies = append(replies, word)
		}
		return replies, stderr.String()
	}
	for line, want := range map[string]string{
		"meshctl create trafficpolicy x --dir DIR --destination rev":                    "reviews.bookinfo.cluster-1",
		"meshctl create trafficpolicy x --dir DIR --destination=reviews.bookinfo.":      "reviews.bookinfo.cluster-2",
		"meshctl create trafficpolicy x --dir DIR --shift rat":                          "ratings.bookinfo.cluster-2",
		"meshctl create trafficpolicy x --dir DIR --shift ratings.bookinfo.cluster-2,w": `ratings.bookinfo.cluster-2\,weight=`,
		"meshctl create virtualmesh --dir DIR --mesh gloo":                              "gloo-mesh/istiod-istio-system-cluster-1",
		"meshctl create virtualmesh --trust li":                                         "limited",
		"meshctl create accesspolicy --dir DIR --source-clusters ":                      "cluster-2",
		"meshctl why --dir DIR product":                                                 "productpage-v1-bookinfo-cluster-1-deployment",
		"meshctl why --dir DIR productpage-v1 rat":                                      "ratings-bookinfo-cluster-2",
		"meshctl why --dir=DIR productpage-v1 rat":                                      "ratings-bookinfo-cluster-2",
		"meshctl describe tp --dir DIR rev":                                             "reviews-shift",
		"meshctl describe td":                                                           "",
		"meshctl describe t":                                                            "tp",
		"meshctl describe vde":                                                          "vdest",
		"meshctl describe cluster --dir DIR ":                                           "cluster-2",
		"meshctl describe mesh -o j":                                                    "json",
		"meshctl describe mesh --output=y":                                              "yaml",
		"meshctl serve --log-level de":                                                  "debug",
		"meshctl cluster register x --remote-context ":                                  "prod",
		"meshctl translate DIR --cluster cl":                                            "cluster-1",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			replies, errs := complete(t, strings.ReplaceAll(line, "DIR", folder))
			assert.Contains(t, replies, want)
			assert.Empty(t, errs)
		})
	}
	t.Run("no cluster answers", func(t *testing.T) {
		t.Parallel()
		for line, want := range map[string]string{
			"meshctl describe mesh ": "", "meshctl why ": "may", "meshctl cluster release ": "", "meshctl create trafficpolicy --destination ": "",
		} {
			started := time.Now()
			replies, errs := complete(t, line)
			assert.Equal(t, []string{want}, replies, line)
			assert.Empty(t, errs, line)
			assert.Less(t, time.Since(started), waittest.Soon(), "%s: the shell waits for a second", line)
		}
	})
}
