package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kballard/go-shellquote"

	"github.com/meshctl/meshctl/demo/shard"
)

// report is what came out of a run. It is written as JSON, for those who count over time which tests fail.
type report struct {
	machine *machine
	// events are of the tests that have not ended yet.
	running map[string]*outcome
	began   time.Time

	Shard  shard.Name `json:"shard,omitempty"`
	Passed int        `json:"passed"`
	// Seconds are those of the whole run; Start and Apply what the machine can do, also in seconds.
	Seconds float64    `json:"seconds"`
	Start   float64    `json:"startSeconds"`
	Apply   float64    `json:"applySeconds"`
	Failed  []*outcome `json:"failed"`
	// Packages and Slowest are the slowest first, Skipped are tests with the reason.
	Packages []*outcome `json:"packages"`
	Slowest  []*outcome `json:"slowest"`
	Skipped  []*outcome `json:"skipped"`
	// Reports are what tests did with API servers that others use, too.
	Reports []string `json:"reports,omitempty"`
}

// outcome is that of a test, or of a package.
type outcome struct {
	Package string  `json:"package"`
	Test    string  `json:"test,omitempty"`
	Seconds float64 `json:"seconds"`
	// Load is how many processes ran or waited for a core meanwhile, on average.
	Load float64 `json:"load,omitempty"`
	// Repeat is the command that repeats a failed test, with its seed if it has one.
	Repeat string `json:"repeat,omitempty"`
	// Repeated is how it ended when it was repeated: passed, failed, or empty if it was not.
	Repeated string `json:"repeated,omitempty"`
	Reason   string `json:"reason,omitempty"`

	started time.Time
	output  []string
}

func newReport(name shard.Name, m *machine) *report {
	return &report{
		machine: m, began: time.Now(), running: map[string]*outcome{}, Shard: name,
		Start: m.pace.Start.Seconds(), Apply: m.pace.Apply.Seconds(), Failed: []*outcome{},
	}
}

// event is a line of go test -json, see go doc test2json.
type event struct {
	Time    time.Time
	Action  string
	Package string
	Test    string
	Elapsed float64
	Output  string
}

// add reads the events of a run of go test, which returned failed.
func (r *report) add(path string, failed error) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("events of the tests: %w", err)
	}
	defer func() { _ = file.Close() }()
	before := len(r.Failed)
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) == 0 && err != nil {
			break
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("events of the tests: %w", err)
		}
		r.see(e)
	}
	if failed != nil && len(r.Failed) == before {
		// It did not compile, or could not be started; what it said was printed.
		r.Failed = append(r.Failed, &outcome{Package: "go test", Reason: failed.Error()})
	}
	for _, o := range r.Failed[before:] {
		fmt.Println("failed:", o.Package, o.Test) // the rest follows at the end
	}
	return nil
}

func (r *report) see(e event) {
	id := e.Package + " " + e.Test
	o := r.running[id]
	if o == nil {
		o = &outcome{Package: strings.TrimPrefix(e.Package, "github.com/meshctl/meshctl/"), Test: e.Test, started: e.Time}
		r.running[id] = o
	}
	switch e.Action {
	case "output":
		o.output = append(o.output, e.Output)
		return
	case "pass", "fail", "skip":
	default:
		return
	}
	delete(r.running, id)
	o.Seconds = e.Elapsed
	o.Load = r.machine.load(e.Time.Add(-time.Duration(e.Elapsed*float64(time.Second))), e.Time)
	switch {
	case e.Action == "fail" && (e.Test != "" || !r.hasFailed(o.Package)):
		r.Failed = append(r.Failed, o)
	case e.Action == "skip" && e.Test != "":
		o.Reason = strings.TrimSpace(lastOf(o.output, func(line string) bool { return !strings.HasPrefix(strings.TrimSpace(line), "---") }))
		r.Skipped = append(r.Skipped, o)
	case e.Action == "pass" && e.Test != "":
		r.Passed++
	}
	if e.Test == "" {
		r.Packages = append(r.Packages, o)
	} else if e.Action != "skip" {
		r.Slowest = append(r.Slowest, o)
	}
	if e.Action != "fail" {
		o.output = nil
	}
}

// hasFailed reports whether a test of a package has failed; a package without one did not compile, or its
// process ended.
func (r *report) hasFailed(pkg string) bool {
	return slices.ContainsFunc(r.Failed, func(o *outcome) bool { return o.Package == pkg })
}

func lastOf(lines []string, wanted func(string) bool) string {
	for _, line := range slices.Backward(lines) {
		if wanted(line) {
			return line
		}
	}
	return ""
}

// maxRepeated bounds how many tests are repeated, and repeatFor for how long.
const (
	maxRepeated = 3
	repeatFor   = 10 * time.Minute
)

// repeat repeats the failed tests that have no failed test within, each alone.
func (r *report) repeat(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, repeatFor)
	defer cancel()
	repeated := 0
	for _, o := range r.Failed {
		if o.Test == "" || r.hasFailedWithin(o) {
			continue
		}
		o.Repeat = r.command(o)
		if repeated++; repeated > maxRepeated {
			continue
		}
		fmt.Printf("repeating %s of %s\n", o.Test, o.Package)
		again := exec.CommandContext(ctx, "go", arguments(o)...)
		again.Env = append(r.machine.environment(false), r.variables(o)...)
		if again.Run() == nil {
			o.Repeated = "passed"
		} else if ctx.Err() == nil {
			o.Repeated = "failed"
		}
	}
}

func (r *report) hasFailedWithin(o *outcome) bool {
	return slices.ContainsFunc(r.Failed, func(other *outcome) bool {
		return other.Package == o.Package && strings.HasPrefix(other.Test, o.Test+"/")
	})
}

// arguments are those of go that repeat a test.
func arguments(o *outcome) []string {
	return []string{"test", "-count=1", "-vet=off", "-run", pattern(o.Test), "./" + o.Package}
}

// variables are what the environment needs to repeat a test: its shard and its seed.
func (r *report) variables(o *outcome) []string {
	var out []string
	if r.Shard != "" {
		out = append(out, shard.Variable+"="+string(r.Shard))
	}
	if s := seed(o.output); s != "" {
		out = append(out, s)
	}
	return out
}

// command repeats a test, with its seed.
func (r *report) command(o *outcome) string {
	return shellquote.Join(append(append(r.variables(o), "go"), arguments(o)...)...)
}

// pattern matches one test, see go help testflag.
func pattern(test string) string {
	var parts []string
	for _, part := range strings.Split(test, "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
	}
	return strings.Join(parts, "/")
}

var seedOf = regexp.MustCompile(`repeat with (\S+=\S+)`)

// seed is what waittest.Seed printed.
func seed(output []string) string {
	for _, line := range output {
		if found := seedOf.FindStringSubmatch(line); found != nil {
			return found[1]
		}
	}
	return ""
}

// finish writes the report, and prints what failed.
func (r *report) finish() error {
	r.Seconds = time.Since(r.began).Seconds()
	r.machine.mu.Lock()
	r.Reports = slices.Clone(r.machine.reports)
	r.machine.mu.Unlock()
	slowest := func(a, b *outcome) int { return cmp.Compare(b.Seconds, a.Seconds) }
	slices.SortStableFunc(r.Packages, slowest)
	slices.SortStableFunc(r.Slowest, slowest)
	r.Slowest = r.Slowest[:min(len(r.Slowest), 50)]
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(r.file(), append(data, '\n'), 0o600); err != nil { //nolint:gosec // the names of shards are constants
		return fmt.Errorf("writing the report: %w", err)
	}
	for _, o := range r.Failed {
		o.print()
	}
	for _, said := range r.Reports {
		fmt.Println("\nFAILED", said)
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", r.Passed, len(r.Failed)+len(r.Reports), len(r.Skipped))
	if len(r.Failed)+len(r.Reports) > 0 {
		return errFailed
	}
	return nil
}

// file is the name of the report's file, which is another one for each shard.
func (r *report) file() string {
	if r.Shard == "" {
		return "test-report.json"
	}
	return "test-report-" + string(r.Shard) + ".json"
}

// shownLines is how many of the last lines of a failed test are printed.
const shownLines = 60

func (o *outcome) print() {
	fmt.Printf("\nFAILED %s %s after %.1f s, load %.1f\n", o.Package, o.Test, o.Seconds, o.Load)
	if o.Reason != "" {
		fmt.Println("  ", o.Reason)
	}
	for _, line := range o.output[max(0, len(o.output)-shownLines):] {
		line = strings.TrimRight(line, "\n")
		fmt.Println("  ", line[:min(len(line), 400)])
	}
	if o.Repeat != "" {
		fmt.Println("   repeat it:", o.Repeat)
	}
	if o.Repeated != "" {
		fmt.Println("   repeated alone, it", o.Repeated)
	}
}
