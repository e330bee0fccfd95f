//go:build linux

package relay

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// number is an environment variable, or what it is without.
func number(b *testing.B, name string, without int) int {
	b.Helper()
	text := os.Getenv(name)
	if text == "" {
		return without
	}
	n, err := strconv.Atoi(text)
	require.NoError(b, err)
	return n
}

// BenchmarkRelay prints what a hub with many agents costs, beside what it should. The agents are goroutines of
// another process with certificates of their own, over real TCP and TLS; each reports a synthetic cluster of 100
// services and 300 pods, and says that it carried out what it is asked for. What API servers take is not in it.
// AGENTS is how many there are (500), and FLEET how many there are in the second part (1,000); 0 leaves a part out.
func BenchmarkRelay(b *testing.B) {
	config := management(b)
	for b.Loop() {
		var figures table
		b.Run("services=1000", func(b *testing.B) {
			newHubSide(b, config, enginetest.Size{Services: 1_000, Clusters: 3, Pods: 3}).large(&figures)
		})
		if n := number(b, "AGENTS", 500); n > 0 {
			forget()
			b.Run(fmt.Sprintf("agents=%d", n), func(b *testing.B) {
				h := newHubSide(b, config, enginetest.Size{Services: 100, Clusters: n, Pods: 3})
				h.connections(&figures)
				h.edits(&figures)
			})
		}
		if n := number(b, "FLEET", 1_000); n > 0 {
			forget()
			b.Run(fmt.Sprintf("fleet=%d", n), func(b *testing.B) {
				newHubSide(b, config, enginetest.Size{Services: 100, Clusters: n, FederateEvery: 100, Members: 100}).fleet(&figures)
			})
		}
		b.Log(figures.String())
	}
}

// forget waits until nothing is left of a hub that was stopped: for its grace, it keeps what it had.
func forget() {
	time.Sleep(12 * time.Second)
	debug.FreeOSMemory()
}

// connections measures agents that come, are there, and come again.
func (h *hubSide) connections(figures *table) {
	n := float64(h.size.Clusters)
	stop := h.watchMemory()
	first, all, r := h.dial()
	time.Sleep(time.Second)
	peak := stop()
	heap := liveHeap() - h.heap
	debug.FreeOSMemory()
	steady := resident(h)
	figures.add(fmt.Sprintf("%.0f agents, empty hub: first synced", n), "1 s", "%.2f s", first)
	figures.add(fmt.Sprintf("%.0f agents, empty hub: all synced", n), "30 s", "%.1f s", all)
	figures.add("  CPU time for that: hub, agents; dialled again so far", "", "%.1f + %.1f s; %d", r.HubCPU, r.CPU, r.Failed)
	figures.add("peak of resident memory, of steady", "1.3", "%.2f (%.0f of %.0f MB)", peak/steady, peak/1e6, steady/1e6)
	figures.add("first report of 100 services, 300 pods", "", "%.0f kB", r.Sent/1e3)
	figures.add("memory of the hub for a spoke, 100 services, 300 pods", "2 MB", "%.2f MB", heap/n/1e6)
	r = h.order(order{Do: "redial"})
	figures.add(fmt.Sprintf("%.0f agents connect again, hub kept its state", n), "10 s", "%.1f s", r.Seconds)
	figures.add("  CPU time for that: hub, agents; dialled again so far", "", "%.1f + %.1f s; %d", r.HubCPU, r.CPU, r.Failed)
	figures.add("bytes for that, each agent", "5 kB", "%.1f kB", (r.Sent+r.Received)/1e3)
	r = h.order(order{Do: "idle", Count: 20})
	figures.add("idle spoke", "100 B/s", "%.0f B/s", (r.Sent+r.Received)/r.Seconds)
	idle := r.Sent / r.Seconds
	r = h.order(order{Do: "churn", Agent: 0, Count: 10})
	figures.add("one pod a second replaced", "2 kB/s", "%.2f kB/s", (r.MostSent/r.Seconds-idle)/1e3)
}

// edits measures changes on their way up and writes on their way down.
func (h *hubSide) edits(figures *table) {
	up, down := h.upLatency(0, 100), percentile(h.writes(1, 100), 0.5)
	figures.add("edit through the relay: up, and a write down, p50", "2 ms + 1 round trip", "%.2f + %.2f ms", up, down)
	before := h.writes(h.size.Clusters-1, 500)
	h.order(order{Do: "slow", Agent: h.size.Clusters - 1, Count: 1000})
	for range 50 {
		go h.writeSlow(h.size.Clusters - 1)
	}
	after := h.writes(h.size.Clusters-1, 500)
	figures.add("one agent reads 1 kB/s: writes to others, p50", "5 %", "%.2f ms, before %.2f ms", percentile(after, 0.5), percentile(before, 0.5))
	figures.add("one agent reads 1 kB/s: writes to others, p99", "5 %", "%.2f ms, before %.2f ms", percentile(after, 0.99), percentile(before, 0.99))
}

// large measures clusters with 1,000 services and 3,000 pods.
func (h *hubSide) large(figures *table) {
	_, all, r := h.dial()
	figures.add("first report of 1,000 services, 3,000 pods", "3 MB, 2 s", "%.2f MB, %.1f s", r.Sent/1e6, all)
	figures.add("memory of the hub for a spoke, 1,000 services, 3,000 pods", "20 MB", "%.1f MB", (liveHeap()-h.heap)/float64(h.size.Clusters)/1e6)
}

// fleet measures many agents, and an edit of a policy on a service that 100 of them see: its translation, and a
// write to each.
func (h *hubSide) fleet(figures *table) {
	n := h.size.Clusters
	_, all, r := h.dial()
	figures.add(fmt.Sprintf("%d agents x 100 services, empty hub: all synced", n), "", "%.1f s", all)
	figures.add("  CPU time for that: hub, agents; dialled again so far", "", "%.1f + %.1f s; %d", r.HubCPU, r.CPU, r.Failed)
	in := *h.source.Input()
	in.Management = enginetest.World(enginetest.Size{Services: 1, Clusters: n, Members: h.size.Members}).Management
	policy := func(timeout time.Duration) *snapshot.Input {
		out, m := in, *in.Management
		out.Management = &m
		m.TrafficPolicies = []*networkingv1.TrafficPolicy{enginetest.TrafficPolicy(1, 0, 0, timeout)}
		return &out
	}
	translator := engine.New(engine.Options{})
	began, cpu := time.Now(), cpuSeconds()
	state := translator.Translate(policy(1 * time.Second))
	figures.add("  and translated", "60 s", "%.1f s", all+time.Since(began).Seconds())
	figures.add("  CPU time for the translation", "", "%.1f s", cpuSeconds()-cpu)
	debug.FreeOSMemory()
	figures.add("  resident memory with the translation", "4 GB", "%.2f GB (heap %.2f GB)", resident(h)/1e9, liveHeap()/1e9)
	translator.Translate(policy(2 * time.Second))
	began = time.Now()
	after := translator.Translate(policy(3 * time.Second))
	translated := time.Since(began).Seconds() * 1000
	require.NotSame(h, state, after)
	var took []float64
	for range 5 {
		took = append(took, h.writeAll(min(n, h.size.Members)))
	}
	figures.add("  one edit that touches 100 clusters, on all of them", "1 s", "%.0f + %.0f ms", translated, percentile(took, 0.5))
}

// writeSlow sends a large write to an agent that is slow. It may fail: nobody waits for it.
func (h *hubSide) writeSlow(agent int) {
	quiet := &hubSide{TB: silent{h.TB}, configs: h.configs}
	quiet.write(agent, make([]byte, 20_000))
}

// silent is a test whose errors do not count.
type silent struct{ testing.TB }

// Errorf implements testing.TB.
func (silent) Errorf(string, ...any) {}
