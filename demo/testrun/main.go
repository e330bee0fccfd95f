// Command testrun runs the tests of this repository:
//
//	testrun quick              # what every change must pass, which is in no shard
//	testrun shard WHICH        # a shard, by its name, its number, or the hash of a commit, which chooses one
//	testrun kind               # the shard kind, below demo/nodeimage/run.sh, which has the images
//
// The test binaries share one pool of API servers. With MESHCTL_TEST_COVERAGE=DIR they write what they cover there. At the end it says of each failed test how to repeat it, and
// whether it passed when it was repeated, which does not make it pass. test-report.json, or
// test-report-SHARD.json, has all of that, and the slowest tests.
package main

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/meshctl/meshctl/demo/shard"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

// errFailed is returned when tests fail: what failed was printed.
var errFailed = errors.New("tests failed")

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "quick":
		batches, err := quick()
		if err != nil {
			return err
		}
		if err := collectLess(); err != nil {
			return err
		}
		return runTests(ctx, "", batches)
	case len(args) == 2 && args[0] == "shard":
		name, err := shardOf(args[1])
		if err != nil {
			return err
		}
		return runShard(ctx, name)
	case len(args) == 1 && args[0] == "kind":
		return runTestsOf(ctx, shard.Kind)
	default:
		return errors.New("want quick, shard WHICH or kind; see go doc ./demo/testrun")
	}
}

// collectLess makes the API servers and the tests collect garbage half as often as by default, unless GOGC says
// otherwise. That saves a tenth of the time; the whole run then needs up to 16 GB of memory.
func collectLess() error {
	if os.Getenv("GOGC") != "" {
		return nil
	}
	return os.Setenv("GOGC", "200")
}

// lengthOfHash is that of a commit in hexadecimal.
const lengthOfHash = 40

// shardOf returns a shard by its name, by its number from 1 on, or by the hash of a commit: these spread over
// the shards.
func shardOf(which string) (shard.Name, error) {
	all := shard.All()
	if slices.Contains(all, shard.Name(which)) {
		return shard.Name(which), nil
	}
	if n, err := strconv.Atoi(which); err == nil && n >= 1 && n <= len(all) {
		return all[n-1], nil
	}
	if hash, ok := new(big.Int).SetString(which, 16); ok && len(which) == lengthOfHash {
		return all[new(big.Int).Mod(hash, big.NewInt(int64(len(all)))).Int64()], nil
	}
	return "", fmt.Errorf("shard %q: there is none; want one of %v, its number, or the hash of a commit", which, all)
}

func runShard(ctx context.Context, name shard.Name) error {
	others := slices.DeleteFunc(shard.All(), func(s shard.Name) bool { return s == name })
	fmt.Printf("shard %s; not run: %v\n", name, others)
	switch name {
	case shard.Kind:
		return runKind(ctx)
	case shard.Fuzz:
		return command(ctx, "make", "--no-print-directory", "fuzz").Run()
	default:
		return runTestsOf(ctx, name)
	}
}

// runTestsOf runs the tests of a shard.
func runTestsOf(ctx context.Context, name shard.Name) error {
	found, err := testsOf(".", name)
	if err != nil {
		return err
	}
	racing, err := list(ctx, racy)
	if err != nil {
		return err
	}
	batches := found.divide(func(folder string) bool {
		return slices.Contains(racing, "github.com/meshctl/meshctl/"+strings.TrimPrefix(folder, "./"))
	})
	if name == shard.Serve {
		batches = append(batches, batch{name: "registration with the race detector", race: true, packages: []string{"./engine/registration"}, beside: 1, parallel: 4})
	}
	return runTests(ctx, name, batches)
}

// runKind runs the tests in kind clusters where there is a container engine, or one can be installed.
func runKind(ctx context.Context) error {
	running := command(ctx, "demo/nodeimage/docker.sh", "status").Run() == nil
	if !running {
		start := command(ctx, "demo/nodeimage/docker.sh", "start")
		start.Stdout = nil
		if start.Run() != nil {
			fmt.Println("SKIP shard kind: there is no container engine here, and none could be installed; see above")
			return nil
		}
		defer func() { _ = command(context.WithoutCancel(ctx), "demo/nodeimage/docker.sh", "stop").Run() }()
	}
	return command(ctx, "make", "--no-print-directory", "test-kind").Run()
}

// command is one that prints like this one.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...) //nolint:gosec // programs of the repository
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	return c
}

// batch is what one `go test` runs: packages, or those that are not in others; tests is a pattern, or empty.
type batch struct {
	name     string
	race     bool
	packages []string
	except   []string
	tests    string
	// beside is how many packages run at the same time, parallel how many tests of each: with more of them, more API
	// servers start, which costs more than it saves.
	beside, parallel int
}

// racy are the packages where goroutines share data: these are tested with the race detector. It is not used
// elsewhere, because it makes clusters and scripts slow.
var racy = []string{
	"./cmd/cmdutil/...", "./demo/pool/...", "./demo/proc/...", "./engine/apply/...", "./engine/cluster/...", "./engine/serve/...", "./engine/watch/...",
}

// alone are packages that run beside no other: with two istiods and 20 proxies under load, and other tests on
// the same cores, istiod reads what is written so late that requests fail.
var alone = []string{"./cmd/e2e/wire"}

// slow are the packages that take longest. They begin first, so that none of them is left alone at the end.
var slow = []string{
	"./engine/watch", "./engine/serve", "./engine/apply", "./engine/relay/relaytest", "./engine/registration", "./cmd", "./engine", "./certs/agent", "./cmd/e2e", "./cmd/cluster", "./cmd/check",
}

// quick is what every change must pass.
func quick() ([]batch, error) {
	leftOut, err := unraced(".")
	if err != nil {
		return nil, err
	}
	return []batch{
		{name: "with the race detector", race: true, packages: racy, beside: 2, parallel: 4},
		leftOut,
		{name: "without it", packages: []string{"./..."}, except: slices.Concat(racy, alone), beside: 2, parallel: 4},
		{name: "on the wire", packages: alone, beside: 1, parallel: 2},
	}, nil
}

// divide makes two batches of one, of which the first has the packages that are tested with the race detector.
func (b batch) divide(racy func(folder string) bool) []batch {
	with, without := b, b
	with.race = true
	with.packages = slices.DeleteFunc(slices.Clone(b.packages), func(p string) bool { return !racy(p) })
	without.packages = slices.DeleteFunc(slices.Clone(b.packages), racy)
	return slices.DeleteFunc([]batch{with, without}, func(b batch) bool { return len(b.packages) == 0 })
}

// arguments are those of go test.
func (b batch) arguments(ctx context.Context) ([]string, error) {
	packages, err := list(ctx, b.packages)
	if err != nil {
		return nil, err
	}
	if len(b.except) > 0 {
		except, err := list(ctx, b.except)
		if err != nil {
			return nil, err
		}
		packages = slices.DeleteFunc(packages, func(p string) bool { return slices.Contains(except, p) })
	}
	first, err := list(ctx, slow)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(packages, func(a, b string) int { return rank(first, a) - rank(first, b) })
	// Tests that run the binary depend on more than the test cache knows, and the linters include all of vet.
	args := []string{"-count=1", "-vet=off", "-timeout=45m", "-p", strconv.Itoa(b.beside), "-parallel", strconv.Itoa(b.parallel)}
	if b.race {
		args = append(args, "-race")
	}
	if b.tests != "" {
		args = append(args, "-run", b.tests)
	}
	coverage := os.Getenv(coverageVariable)
	if coverage == "" {
		return append(args, packages...), nil
	}
	args = append(args, "-cover", "-covermode=atomic", "-coverpkg=./engine/...,./certs/...,./cmd/...")
	return append(append(args, packages...), "-args", "-test.gocoverdir="+coverage), nil
}

// coverageVariable is the environment variable with the folder to which the tests write what they cover, for go tool
// covdata. It must exist.
const coverageVariable = "MESHCTL_TEST_COVERAGE"

// rank is where a package is among those that begin first, or after them.
func rank(first []string, p string) int {
	if at := slices.Index(first, p); at >= 0 {
		return at
	}
	return len(first)
}

// list returns the import paths of packages.
func list(ctx context.Context, patterns []string) ([]string, error) {
	out, err := exec.CommandContext(ctx, "go", append([]string{"list"}, patterns...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", strings.Join(patterns, " "), err)
	}
	return strings.Fields(string(out)), nil
}

// runTests runs batches, one after another, and reports.
func runTests(ctx context.Context, name shard.Name, batches []batch) (err error) {
	m, err := startMachine(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.end()) }()
	r := newReport(name, m)
	format := "pkgname"
	if name != "" {
		format = "testname" // a package of a shard takes minutes
	}
	for i, b := range batches {
		args, err := b.arguments(ctx)
		if err != nil {
			return err
		}
		if b.beside == 1 { // beside no servers that are idle, either
			if err := m.pool.Clear(); err != nil {
				return err
			}
		}
		events := filepath.Join(m.dir, fmt.Sprintf("events-%d.json", i+1))
		start := time.Now()
		// What failed is printed at the end, without the logs of whole clusters.
		test := command(ctx, gotestsum(), append([]string{
			"--format=" + format, "--hide-summary=skipped,failed,output", "--no-color", "--jsonfile=" + events, "--",
		}, args...)...)
		test.Env = m.environment(b.race)
		failed := test.Run()
		fmt.Printf("%s: %s\n", b.name, time.Since(start).Round(time.Second))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := r.add(events, failed); err != nil {
			return err
		}
	}
	r.repeat(ctx)
	return r.finish()
}

// gotestsum is the path of the program that runs go test.
func gotestsum() string {
	if path := os.Getenv("GOTESTSUM"); path != "" {
		return path
	}
	return "gotestsum"
}
