package reading_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// recorded is a snapshot file of 1,000 services in each of 10 clusters, with 2,000 policies.
func recorded(b *testing.B) string {
	b.Helper()
	in := enginetest.World(enginetest.Size{Services: 1_000, Clusters: 10, FederateEvery: 1, Policies: 1_000})
	files, err := offline.Save(&offline.Snapshot{Input: in, Recorded: time.Now()}, engine.Translate(in).Output)
	require.NoError(b, err)
	name := filepath.Join(b.TempDir(), "snapshot.zip")
	file, err := os.Create(name)
	require.NoError(b, err)
	require.NoError(b, offline.WriteArchive(file, files))
	require.NoError(b, file.Close())
	return name
}

// BenchmarkAnswers: a recorded snapshot is opened once, and each question is answered from it. An
// answer is to take half a second at most.
func BenchmarkAnswers(b *testing.B) {
	file := recorded(b)
	var read *reading.Reading
	translator := engine.New(engine.Options{})
	var index *explain.Index
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			var err error
			read, err = reading.Archive(file)
			require.NoError(b, err)
		}
	})
	b.Run("translate", func(b *testing.B) {
		for b.Loop() {
			translator = engine.New(engine.Options{})
			index = read.Index(translator)
		}
	})
	find := func(kind snapshot.Kind, name string) snapshot.Ref {
		b.Helper()
		found := index.Find(kind, name)
		require.Len(b, found, 1)
		return found[0]
	}
	service := enginetest.Service(7) + "." + enginetest.Namespace(7) + "." + enginetest.Cluster(0)
	from, to := index.Refs(snapshot.Workload)[0], find(snapshot.Destination, service)
	b.Run("why", func(b *testing.B) {
		for b.Loop() {
			why, err := read.Why(translator, index, from, to, explain.Request{Method: "GET", Path: "/"})
			require.NoError(b, err)
			require.NotEmpty(b, why.Verdict)
		}
	})
	b.Run("describe", func(b *testing.B) {
		for b.Loop() {
			require.NotEmpty(b, index.Describe(to).Page().Sections)
		}
	})
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			if n := len(index.Tables(nil).Destinations().Rows); n != 10_010 { // with the gateways
				b.Fatal(n)
			}
		}
	})
	b.Run("check", func(b *testing.B) {
		for b.Loop() {
			require.NotZero(b, index.Checkup(&explain.CheckFacts{Now: time.Now(), Offline: true}).OK)
		}
	})
	policy := read.Input.Management.TrafficPolicies[7].DeepCopy()
	attempts := uint32(0)
	b.Run("plan", func(b *testing.B) {
		for b.Loop() {
			attempts++ // or it would be known from before
			policy.Spec.Policy.RequestTimeout.Duration = time.Duration(attempts+1) * time.Second
			change := explain.Edit{Ref: snapshot.RefOf(snapshot.TrafficPolicy, policy), Object: policy.DeepCopy()}
			planned, _, err := index.Plan(translator.Translate, []explain.Edit{change}, time.Now())
			require.NoError(b, err)
			require.NotEmpty(b, planned.Effects)
		}
	})
}
