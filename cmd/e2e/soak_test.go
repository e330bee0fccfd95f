package e2e

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/manifests"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
)

// soak is a run with edits all the time and one fault after another, both chosen by a
// seed. What goes wrong is counted and listed as violations at the end.
type soak struct {
	*environment
	limits soakLimits
	random *rand.Rand
	editor *editor
	// stands is what nothing in the run may change; health is that of the process.
	stands *standing
	health *vitals
	// gap is when the management plane may have begun again last.
	gap time.Time
	// marks counts the edits that converged waits for.
	marks int
	tally *tally
}

// soakLimits are SOAK, SOAK_WITHIN and the seed.
type soakLimits struct {
	// lasts is how long faults are made.
	lasts time.Duration
	seed  uint64
	// within is how long it may take to converge after a fault.
	within time.Duration
}

func soakLimitsFrom(t testing.TB) soakLimits {
	t.Helper()
	// A machine with busy cores converges later than make soak demands.
	l := soakLimits{lasts: time.Minute, seed: waittest.Seed(t), within: 4 * waittest.Soon()}
	var err error
	if text := os.Getenv("SOAK"); text != "" {
		l.lasts, err = time.ParseDuration(text)
		require.NoError(t, err, "SOAK is a duration, such as 10m")
	}
	if text := os.Getenv("SOAK_WITHIN"); text != "" {
		l.within, err = time.ParseDuration(text)
		require.NoError(t, err, "SOAK_WITHIN is a duration, such as 10s")
	}
	return l
}

// TestSoak edits two clusters all the time, makes faults, and checks throughout that
// what protects stands, that nothing of anybody else's changes, that attackers get nowhere, and
// that everything converges after each fault. SOAK is how long, and SOAK_WITHIN how soon it must
// converge.
func TestSoak(t *testing.T) {
	shard.Only(t, shard.Soak)
	limits := soakLimitsFrom(t)
	s := &soak{environment: newEnvironment(t, withBookinfo), limits: limits, random: rand.New(rand.NewPCG(limits.seed, 0)), tally: newTally()}
	for _, cluster := range []string{"cluster-1", "cluster-2"} {
		s.must("cluster", "register", cluster, "--remote-context", cluster, "--mgmt-context", "cluster-1")
	}
	s.startServe(promptly...)
	for _, c := range s.clusters {
		s.keepIstiod(c) // and the credentials of the agents, which attackers use
	}
	s.populate()
	s.settle()

	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	s.editor, s.stands, s.health = newEditor(s), newStanding(s), newVitals(s)
	for _, run := range []func(context.Context){s.editor.run, s.stands.run, s.health.run, newAttackers(s).run} {
		running.Go(func() { run(ctx) })
	}
	s.converges("the start")
	s.makeFaults(time.Now().Add(limits.lasts))
	cancel()
	running.Wait()
	s.stopServe()
	t.Log(s.tally)
	assert.Empty(t, s.tally.violations, "violations")
	assert.NotZero(t, s.tally.counts["edits"])
	assert.NotZero(t, s.tally.counts["checks of what stands"])
	assert.NotZero(t, s.tally.counts["attacks that were refused"])
	assert.NotZero(t, s.tally.counts["attacks that decide nothing"])
}

// promptly are flags with which a killed process is replaced soon.
var promptly = []string{"--lease-duration", "3500ms", "--log-level", "info"}

// populate makes what stands throughout the run.
func (s *soak) populate() {
	s.t.Helper()
	for _, cluster := range []string{"cluster-1", "cluster-2"} {
		s.apply(cluster, []byte(soakApplication))
		s.apply(cluster, []byte(tenancy+guest))
		s.apply(cluster, []byte(handWritten))
		require.NoError(s.t, s.clients[cluster].WaitInjected(s.t.Context(), "bookinfo"))
		require.NoError(s.t, s.clients[cluster].WaitInjected(s.t.Context(), "corner-tenant"))
	}
	s.apply("cluster-1", manifests.VirtualMesh())
	s.apply("cluster-1", manifests.Policies())
	s.apply("cluster-1", []byte(lax))
}

// settle waits until everything is written for the first time.
func (s *soak) settle() {
	s.t.Helper()
	s.awaitRoutes(shifted)
	s.until("everything is written", s.differs)
}

// makeFaults makes one fault after another until the deadline. Each kind comes once
// before any comes again.
func (s *soak) makeFaults(deadline time.Time) {
	s.t.Helper()
	began := time.Now()
	for time.Now().Before(deadline) {
		kinds := slices.Sorted(maps.Keys(faults))
		s.random.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
		for _, kind := range kinds {
			if !time.Now().Before(deadline) {
				return
			}
			if restarts[kind] && time.Since(began) > s.limits.lasts/2 {
				continue // so that one process runs long
			}
			s.tally.note("%s", kind)
			end := faults[kind](s)
			s.hold()
			end()
			if gaps[kind] {
				s.gap = time.Now()
			}
			s.tally.count("fault: " + kind)
			s.converges(kind)
		}
	}
}

// hold lets a fault last.
func (s *soak) hold() {
	select {
	case <-time.After(200*time.Millisecond + time.Duration(s.random.Int64N(int64(2500*time.Millisecond)))):
	case <-s.t.Context().Done():
	}
}

// tally is what a run counts. It is safe for concurrent use.
type tally struct {
	mu         sync.Mutex
	began      time.Time
	counts     map[string]int
	violations []string
	known      map[string]bool
	// last is the fault under way; slowest how long it took to converge, at most.
	last    string
	slowest map[string]time.Duration
	// figures are more lines of the report.
	figures []string
}

func newTally() *tally {
	return &tally{began: time.Now(), counts: map[string]int{}, known: map[string]bool{}, slowest: map[string]time.Duration{}}
}

func (c *tally) count(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[what]++
}

// note says which fault is under way.
func (c *tally) note(format string, arguments ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = fmt.Sprintf(format, arguments...)
}

// violate notes a violation, once for each text.
func (c *tally) violate(format string, arguments ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := fmt.Sprintf(format, arguments...)
	if !c.known[text] {
		c.known[text] = true
		c.violations = append(c.violations, fmt.Sprintf("%s, during or after %q: %s", time.Since(c.began).Round(time.Millisecond), cmp.Or(c.last, "the start"), text))
	}
}

func (c *tally) converged(fault string, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slowest[fault] = max(c.slowest[fault], took)
}

func (c *tally) figure(format string, arguments ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.figures = append(c.figures, fmt.Sprintf(format, arguments...))
}

// String is the report.
func (c *tally) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out strings.Builder
	faults := 0
	for what, n := range c.counts {
		if strings.HasPrefix(what, "fault: ") {
			faults += n
		}
	}
	fmt.Fprintf(&out, "soak of %s: %d faults, %d edits, %d violations\n", time.Since(c.began).Round(time.Second), faults, c.counts["edits"], len(c.violations))
	for _, what := range slices.Sorted(maps.Keys(c.counts)) {
		line := fmt.Sprintf("  %6d %s", c.counts[what], what)
		if slowest, ok := c.slowest[strings.TrimPrefix(what, "fault: ")]; ok {
			line += fmt.Sprintf(" (converged within %s)", slowest.Round(time.Millisecond))
		}
		fmt.Fprintln(&out, line)
	}
	for _, line := range c.figures {
		fmt.Fprintln(&out, "        ", line)
	}
	for _, v := range c.violations {
		fmt.Fprintln(&out, "  VIOLATION", v)
	}
	return out.String()
}

// limited returns a client of a cluster whose requests end soon: the API server may
// not answer.
func (s *soak) limited(cluster string) *kube.Client {
	s.t.Helper()
	config, err := s.cluster(cluster).Config()
	require.NoError(s.t, err)
	config.Timeout = 5 * time.Second
	client, err := kube.New(cluster, config)
	require.NoError(s.t, err)
	return client
}
