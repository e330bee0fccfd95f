package snapshot_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/snapshot"
)

var midnight = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

// shares is an entry of reviews in a cluster.
func shares(at time.Time, what string) snapshot.Change {
	return snapshot.Change{
		Time: at, Kind: "route", Cluster: "cluster-1", Called: "reviews.bookinfo.cluster-1", What: what,
		On:     snapshot.Ref{Kind: snapshot.Destination, Namespace: "gloo-mesh", Name: "reviews-bookinfo-cluster-1"},
		Causes: []snapshot.ChangeCause{{Kind: snapshot.ChangeEdited, On: snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "gloo-mesh", Name: "shift"}, What: "was edited", By: "kubectl", Operation: "Update"}},
	}
}

func TestChangeText(t *testing.T) {
	t.Parallel()
	lost := snapshot.Change{Kind: snapshot.ChangeClusterLost, On: snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: "gloo-mesh", Name: "cluster-2"}, What: "is unreachable", Times: 3}
	leads := snapshot.Change{Kind: snapshot.ChangeLeader, What: "meshctl serve leads: pod-1"}
	change := shares(midnight, "all requests: 60% to a, before 75% to a")
	assert.Equal(t, "reviews in cluster-1: all requests: 60% to a, before 75% to a, because TrafficPolicy gloo-mesh/shift was edited by kubectl", change.Text())
	assert.Equal(t, "cluster cluster-2 is unreachable (3 times)", lost.Text())
	assert.Equal(t, "meshctl serve leads: pod-1", leads.Text())
}

// TestChangeNames: a change is found by the names that describe takes, by its cluster and by its cause.
func TestChangeNames(t *testing.T) {
	t.Parallel()
	c := shares(midnight, "x")
	for _, name := range []string{"reviews", "reviews.bookinfo", "reviews.bookinfo.cluster-1", "reviews-bookinfo-cluster-1", "gloo-mesh/reviews-bookinfo-cluster-1", "cluster-1", "shift", "gloo-mesh/shift"} {
		assert.True(t, c.Matches(name), name)
	}
	for _, name := range []string{"", "review", "bookinfo", "reviews.book", "shif"} {
		assert.False(t, c.Matches(name), name)
	}
}

// TestChangesAreBounded: in number, age, length and size.
func TestChangesAreBounded(t *testing.T) {
	t.Parallel()
	var list snapshot.Changes
	list = list.With(shares(midnight.Add(-25*time.Hour), "old"))
	for i := range snapshot.MaxChanges + 20 {
		list = list.With(shares(midnight.Add(time.Duration(i)*time.Second), strings.Repeat("é", 1000)+fmt.Sprint(i)))
		list[len(list)-1].What = strings.Repeat("é", 150) + fmt.Sprint(i)
	}
	require.Len(t, list, snapshot.MaxChanges)
	assert.True(t, list[0].Time.After(midnight), "the oldest are dropped")
	assert.LessOrEqual(t, len(snapshot.Changes{}.With(shares(midnight, strings.Repeat("é", 1000)))[0].What), snapshot.MaxChangeText)

	text, err := list.JSON()
	require.NoError(t, err)
	again, err := snapshot.ParseChanges(text)
	require.NoError(t, err)
	assert.Equal(t, list, again)

	for i := range list {
		list[i].Called = strings.Repeat("x", 5000)
	}
	text, err = list.JSON()
	require.NoError(t, err)
	assert.LessOrEqual(t, len(text), snapshot.MaxChangesSize)
	again, err = snapshot.ParseChanges(text)
	require.NoError(t, err)
	assert.Equal(t, list[len(list)-1].Time, again[len(again)-1].Time, "the newest stay")
	assert.NotEmpty(t, again)
}

// TestChangesRepeat: what flaps is counted, not listed.
func TestChangesRepeat(t *testing.T) {
	t.Parallel()
	var list snapshot.Changes
	for i := range 6 {
		list = list.With(shares(midnight.Add(time.Duration(i)*time.Minute), fmt.Sprint("to ", i%2)))
	}
	require.Len(t, list, 2)
	assert.Equal(t, 3, list[0].Times)
	assert.Equal(t, 3, list[1].Times)
	assert.Equal(t, midnight.Add(5*time.Minute), list[1].Time)
	list = list.With(shares(midnight.Add(time.Hour), "to 1"))
	assert.Len(t, list, 3, "an hour later, it is another change")
}

// TestChangesDamaged: what is no timeline is an error; an entry that a later version wrote is left out.
func TestChangesDamaged(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"{", `{"a":1}`, "[" + strings.Repeat(" ", 2*snapshot.MaxChangesSize)} {
		_, err := snapshot.ParseChanges(text)
		require.Error(t, err)
	}
	list, err := snapshot.ParseChanges(`[{"time":"2026-01-02T00:00:00Z","kind":"new","on":{"kind":"Unknown"},"what":"x"},{"time":"2026-01-02T00:00:01Z","kind":"leader","what":"y"}]`)
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, "y", list[0].What)
	list, err = snapshot.ParseChanges("")
	require.NoError(t, err)
	assert.Empty(t, list)
}
