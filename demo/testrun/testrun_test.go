package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
)

// TestEveryShardHasTests: each test that is left out of quick runs belongs to exactly one shard, and each shard
// is one that make test-all runs. Only fuzzing has none.
func TestEveryShardHasTests(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	var want []string
	for _, name := range shard.All() {
		want = append(want, string(name))
		if name == shard.Fuzz {
			continue
		}
		found, err := testsOf("../..", name)
		require.NoError(t, err)
		assert.NotEmpty(t, found.packages)
	}
	assert.Equal(t, strings.Join(want, " "), string(regexp.MustCompile(`(?m)^SHARDS := (.*)$`).FindSubmatch(makefile)[1]))
}

// TestOnlyIsFirst: a test that says anywhere else than in its first statement what leaves it out would never be run.
func TestOnlyIsFirst(t *testing.T) {
	t.Parallel()
	found := 0
	for _, name := range shard.All() {
		if name == shard.Fuzz {
			continue
		}
		b, err := testsOf("../..", name)
		require.NoError(t, err)
		found += strings.Count(b.tests, "|") + 1
	}
	b, err := unraced("../..")
	require.NoError(t, err)
	found += strings.Count(b.tests, "|") + 1
	named := 0
	require.NoError(t, filepath.WalkDir("../..", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") || strings.Contains(path, "demo/testrun/") {
			return err
		}
		text, err := os.ReadFile(path)
		named += strings.Count(string(text), "shard.Only(t, shard.") + strings.Count(string(text), "shard.Unraced(t)")
		return err
	}))
	assert.Equal(t, found, named)
}

func TestShardOf(t *testing.T) {
	t.Parallel()
	for which, want := range map[string]shard.Name{
		"wire": shard.Wire, "1": shard.Wire, "11": shard.Kind,
		"000000000000000000000000000000000000000d": shard.WireTrust,
	} {
		got, err := shardOf(which)
		require.NoError(t, err, which)
		assert.Equal(t, want, got, which)
	}
	for _, which := range []string{"", "0", "12", "nosuch", "abc"} {
		_, err := shardOf(which)
		require.ErrorContains(t, err, "want one of [wire wire-traffic", which)
	}
}

const events = `{"Time":"2026-01-01T00:00:00Z","Action":"start","Package":"github.com/meshctl/meshctl/a"}
{"Time":"2026-01-01T00:00:00Z","Action":"run","Package":"github.com/meshctl/meshctl/a","Test":"TestGood"}
{"Time":"2026-01-01T00:00:01Z","Action":"output","Package":"github.com/meshctl/meshctl/a","Test":"TestBad/x (y)","Output":"repeat with MESHCTL_TEST_SEED=7\n"}
{"Time":"2026-01-01T00:00:01Z","Action":"output","Package":"github.com/meshctl/meshctl/a","Test":"TestBad/x (y)","Output":"it broke\n"}
{"Time":"2026-01-01T00:00:02Z","Action":"pass","Package":"github.com/meshctl/meshctl/a","Test":"TestGood","Elapsed":2}
{"Time":"2026-01-01T00:00:03Z","Action":"fail","Package":"github.com/meshctl/meshctl/a","Test":"TestBad/x (y)","Elapsed":1}
{"Time":"2026-01-01T00:00:03Z","Action":"fail","Package":"github.com/meshctl/meshctl/a","Test":"TestBad","Elapsed":3}
{"Time":"2026-01-01T00:00:03Z","Action":"output","Package":"github.com/meshctl/meshctl/a","Test":"TestElse","Output":"    shard.go:51: run by make test-shard SHARD=wire\n"}
{"Time":"2026-01-01T00:00:03Z","Action":"output","Package":"github.com/meshctl/meshctl/a","Test":"TestElse","Output":"--- SKIP: TestElse (0.00s)\n"}
{"Time":"2026-01-01T00:00:03Z","Action":"skip","Package":"github.com/meshctl/meshctl/a","Test":"TestElse","Elapsed":0}
{"Time":"2026-01-01T00:00:03Z","Action":"fail","Package":"github.com/meshctl/meshctl/a","Elapsed":3}
{"Time":"2026-01-01T00:00:03Z","Action":"output","Package":"github.com/meshctl/meshctl/b","Output":"panic: no\n"}
{"Time":"2026-01-01T00:00:04Z","Action":"fail","Package":"github.com/meshctl/meshctl/b","Elapsed":1}
`

func TestReport(t *testing.T) {
	t.Parallel()
	second := func(n int) time.Time { return time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC) }
	m := &machine{samples: []sample{{second(1), 2}, {second(2), 4}, {second(3), 6}, {second(9), 90}}}
	r := newReport(shard.Wire, m)
	path := filepath.Join(t.TempDir(), "events")
	require.NoError(t, os.WriteFile(path, []byte(events), 0o600))
	require.NoError(t, r.add(path, assert.AnError))
	require.Len(t, r.Failed, 3)
	assert.Equal(t, 1, r.Passed)
	within := r.Failed[0]
	assert.Equal(t, "TestBad/x (y)", within.Test)
	assert.InDelta(t, 5, within.Load, 0.01)
	assert.True(t, r.hasFailedWithin(r.Failed[1]))
	assert.False(t, r.hasFailedWithin(within))
	assert.Equal(t, `MESHCTL_TEST_SHARD=wire MESHCTL_TEST_SEED=7 go test -count=1 -vet=off -run '^TestBad$/^x \(y\)$' ./a`, r.command(within))
	assert.Equal(t, "b", r.Failed[2].Package)
	require.Len(t, r.Skipped, 1)
	assert.Equal(t, "shard.go:51: run by make test-shard SHARD=wire", r.Skipped[0].Reason)
	require.Len(t, r.Packages, 2)

	assert.Equal(t, "test-report-wire.json", r.file())

	none := newReport("", m)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, none.add(path, assert.AnError))
	require.Len(t, none.Failed, 1, "it does not compile")
}

func TestPace(t *testing.T) {
	t.Parallel()
	slow := waittest.Pace{Start: 20 * time.Second, Apply: time.Millisecond}
	assert.Equal(t, 2000*time.Second, slow.Limit())
	assert.Equal(t, "20s 1ms", slow.String())
}
