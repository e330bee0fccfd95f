package explain

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine/traffic"
)

// TestDoorsAreChecked: each cluster says its door, and what is lost; nothing of it is a failure.
func TestDoorsAreChecked(t *testing.T) {
	t.Parallel()
	var got CheckCategory
	addDoors(&got, []traffic.ClusterReport{
		{Cluster: "a", Door: traffic.Scrape, Read: 3, Proxies: 3},
		{Cluster: "b", Door: traffic.Agent, Read: 3, Proxies: 3, Dropped: 1, Rejected: 2},
		{Cluster: "c", Door: traffic.Prometheus, Proxies: 3, Reason: traffic.NoPrometheus, Detail: "p.example: connection refused"},
		{Cluster: "d", Door: traffic.Off},
		{Cluster: "e", Door: traffic.Agent, Read: 1, Proxies: 3},
		{Cluster: "p", Door: traffic.Push, Read: 3, Proxies: 3, Refused: 2, Refusal: "pod a/b: it reports as node \"c\""},
		{Cluster: "l", Door: traffic.Push, Read: 3, Proxies: 3, LogsDropped: 7, LogsRejected: 1},
		{Cluster: "f", Door: traffic.Scrape, Proxies: 3, Reason: traffic.NotAllowed},
	})
	var lines []string
	for _, c := range got.Checks {
		lines = append(lines, c.ID+" "+string(c.Result)+": "+c.Message)
	}
	assert.Equal(t, []string{
		"telemetry/a ok: 3 of 3, door scrape",
		"telemetry/b ok: 3 of 3, door agent; its agent dropped 1 reading that could not be sent in time, 2 readings of its agent came too soon or late, or of unknown pods",
		"telemetry/c info: 0 of 3, door prometheus: p.example: connection refused",
		"telemetry/d ok: not here: its KubernetesCluster says so",
		"telemetry/e info: 1 of 3, door agent",
		"telemetry/p/refused info: its agent refused what proxies send 2 times; the last time: pod a/b: it reports as node \"c\"",
		"telemetry/p ok: 3 of 3, door push",
		"telemetry/l ok: 3 of 3, door push; its agent dropped 7 logged requests, as there were too many, 1 logged request of its agent came too soon or late, or of unknown pods",
		"telemetry/f info: 0 of 3, door scrape: meshctl serve may not create pods/portforward in its cluster; see: meshctl telemetry enable --help",
	}, lines)
}
