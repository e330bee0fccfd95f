package outage

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/terminaltest"
	"github.com/meshctl/meshctl/demo"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/golden"
)

// passing is what differs from run to run.
var passing = []struct {
	pattern *regexp.Regexp
	word    string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(Z| \S+)?`), "TIME"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d\b`), "TIME"},
	{regexp.MustCompile(`\bin the last \d+[ms](\d+s)?\b`), "in the last while"},
	{regexp.MustCompile(`\b(\d+h)?(\d+m)?\d+(\.\d+)?m?s\b|\b\d+(\.\d+)? (milli)?seconds?\b`), "AGE"},
	{regexp.MustCompile(`\b\d+(m|h|d)(\d+(m|h))?\b`), "AGE"},
	{regexp.MustCompile(`\b127\.\d+\.\d+\.\d+:\d+\b`), "ADDRESS"},
	{regexp.MustCompile(`-[0-9a-f]{8,10}-[a-z0-9]{5}\b`), "-POD"},
	{regexp.MustCompile(`\b\d[\d,]* of \d[\d,]*\b`), "N of M"},
	{regexp.MustCompile(`\(\d+(\.\d+)?%\)`), "(SHARE)"},
	{regexp.MustCompile(`\b\d+(\.\d+)?%( of (?:the|its) requests(?: to \S+| there) fail: [N\d…])`), "SHARE$2"},
	{regexp.MustCompile(`Δ`), " "}, // it changed a moment ago
}

// lasting is a text without what differs from run to run.
func lasting(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		for _, p := range passing {
			line = p.pattern.ReplaceAllString(line, p.word)
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}

// asking are the arguments of commands that are to know what proxies count: serve is no pod here, which they would find.
func (d *running) asking(counted bool) []string {
	if !counted {
		return nil
	}
	return []string{"--server", "http://" + d.report().Metrics}
}

// said are the first lines of what the commands print, and their exit codes. If there is a dashboard, its screen follows.
func (d *running) said(dashboard *terminaltest.Terminal, more ...string) string {
	d.t.Helper()
	var b strings.Builder
	for _, command := range [][]string{{"why", "productpage-v1", "reviews"}, {"check", "-o", "short"}, {"describe", "problems"}} {
		out, errs, code := d.run(append(command, more...)...)
		lines, most := strings.Split(strings.TrimSpace(out), "\n"), 3
		switch {
		case out == "":
			lines = strings.SplitN(strings.TrimSpace(errs), "\n", 2)
		case command[0] == "check": // in the order of what is checked: the first that is no mere information
			lines, most = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "info ") }), 1
		}
		text := lasting(strings.Join(lines[:min(len(lines), most)], "\n"))
		fmt.Fprintf(&b, "$ meshctl %s    # exit code %d\n%s\n\n", strings.Join(command, " "), code, text)
	}
	if dashboard != nil {
		fmt.Fprintf(&b, "$ meshctl dashboard\n%s", screen(dashboard))
	}
	return b.String()
}

// screen is the first screen of the dashboard, without the blanks that align what differs from run to run.
func screen(x *terminaltest.Terminal) string {
	var lines []string
	for line := range strings.Lines(x.String()) {
		line = strings.TrimRight(blanks.ReplaceAllString(lasting(strings.TrimRight(line, "\n")), "  "), " ")
		// How much is cut depends on how long ages and numbers are.
		for _, end := range []string{"…  since AGE", "…"} {
			if head := []rune(line); strings.HasSuffix(line, end) && len(head) > shown {
				line = string(head[:shown]) + end
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n") + "\n"
}

// shown is how much of a line that is cut is compared.
const shown = 90

var blanks = regexp.MustCompile(`  +`)

// dashboard starts the dashboard in a terminal, which ends with the test.
func (d *running) dashboard(more ...string) *terminaltest.Terminal {
	d.t.Helper()
	file, err := demo.Kubeconfig(d.t.Context(), d.options)
	require.NoError(d.t, err)
	cmd := exec.CommandContext(d.t.Context(), d.options.Meshctl, append([]string{"dashboard"}, more...)...)
	cmd.Env = []string{"KUBECONFIG=" + file}
	return terminaltest.Start(d.t, cmd, 120, 30)
}

// says waits until the commands and the dashboard say what the file has. If proxies have to count it, requests go on meanwhile.
func (d *running) says(file string, counted bool) {
	d.t.Helper()
	more := d.asking(counted)
	dashboard := d.dashboard(more...)
	told := func() string {
		if counted {
			d.call()
		}
		return d.said(dashboard, more...)
	}
	if golden.Update() {
		before := ""
		waittest.Until(d.t, "something is said of it, and again", func() bool {
			now := told()
			same := now == before && d.problems(more...) > 0 && (!counted || strings.Contains(now, "\nfailure "))
			before = now
			return same
		})
		golden.File(d.t, file, before)
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(d.t, err)
	waittest.NoError(d.t, "it is said what "+file+" has", func() error {
		if got := told(); got != string(want) {
			return fmt.Errorf("it is said:\n%s", got)
		}
		return nil
	})
}
