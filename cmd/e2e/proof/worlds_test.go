package proof

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/demo/helper"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	drawnWorlds = 1000
	// questionsPerWorld are asked of each world.
	questionsPerWorld = 40
	// worldsVariable is the environment variable with how many worlds are drawn instead of drawnWorlds.
	worldsVariable = "MESHCTL_TEST_WORLDS"
	// worldsPerProcess bounds the memory of a process: each world leaves some MB of istiod behind.
	worldsPerProcess = 200
)

// generatedAt is when generated objects were created, between those that users wrote before and after.
var generatedAt = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

// TestDrawnWorlds draws worlds with policies and with what users write beside them, lets istiod's own generators make the configuration
// of all proxies, and compares what why says with what that configuration does.
func TestDrawnWorlds(t *testing.T) {
	shard.Only(t, shard.Proof)
	t.Parallel()
	seed, worlds := waittest.Seed(t), worldsToDraw(t)
	binary, err := helper.Build(t.Context(), helper.Progress{})
	require.NoError(t, err)
	var mu sync.Mutex
	tally, wrong, next := map[string]int{}, []string{}, uint64(0)
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			control := startWorlds(t, binary)
			defer func() { control.end() }()
			for asked := 1; ; asked++ {
				if asked%worldsPerProcess == 0 {
					control.end()
					control = startWorlds(t, binary)
				}
				mu.Lock()
				number := next
				next++
				mu.Unlock()
				if number >= worlds || t.Failed() {
					return
				}
				counts, differences, err := control.compare(seed + number)
				if !assert.NoError(t, err, "world %d", seed+number) {
					return
				}
				mu.Lock()
				for what, n := range counts {
					tally[what] += n
				}
				wrong = append(wrong, differences...)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	t.Logf("%d worlds, %s", worlds, shares(tally))
	for _, each := range wrong {
		t.Error(each)
	}
	for _, verdict := range []explain.Verdict{explain.Allowed, explain.Refused, explain.Unreachable, explain.Partly} {
		assert.Greater(t, tally[string(verdict)], int(worlds/4), verdict)
	}
	for _, what := range []string{openListed, closedOff} {
		assert.Greater(t, tally[what], int(worlds/4), what)
	}
}

func worldsToDraw(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv(worldsVariable)
	if text == "" {
		return drawnWorlds
	}
	worlds, err := strconv.ParseUint(text, 10, 32)
	require.NoError(t, err, "%s is a number of worlds", worldsVariable)
	return worlds
}

// worldsProcess answers with configurations; see the role worlds of the sandbox.
type worldsProcess struct {
	in  io.Writer
	out *bufio.Reader
	// end has it exit, and waits for that.
	end func()
}

func startWorlds(t *testing.T, binary string) *worldsProcess {
	t.Helper()
	command := exec.CommandContext(t.Context(), binary, "worlds")
	in, err := command.StdinPipe()
	require.NoError(t, err)
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	// Proxies that are not Istio's own have no such filters (demo/local).
	command.Env = append(os.Environ(), "PILOT_ENABLE_ALPN_FILTER=false", "PILOT_ENABLE_METADATA_EXCHANGE=false")
	var said strings.Builder
	command.Stderr = &said
	require.NoError(t, command.Start())
	return &worldsProcess{in, bufio.NewReaderSize(out, 1<<20), func() {
		_ = in.Close()
		_ = command.Wait()
		if t.Failed() && said.Len() > 0 {
			t.Log(said.String())
		}
	}}
}

// configs are those of the proxies of a cluster, by name of the pod.
func (p *worldsProcess) configs(c *drawnCluster, istio []string) (map[string]*envoy.Config, error) {
	kubernetes := slices.DeleteFunc(slices.Clone(c.objects), func(o string) bool {
		return strings.Contains(o, "\nkind: ConfigMap\n") || strings.HasPrefix(o, "apiVersion: apps/")
	})
	// istiod reads the Gateway API from the API server itself.
	isGatewayAPI := func(o string) bool { return strings.HasPrefix(o, "apiVersion: gateway.networking.k8s.io/") }
	for _, o := range istio {
		if isGatewayAPI(o) {
			kubernetes = append(kubernetes, o)
		}
	}
	istio = slices.DeleteFunc(slices.Clone(istio), isGatewayAPI)
	sidecars := slices.DeleteFunc(slices.Clone(c.pods), func(p worldProxy) bool { return p.plain })
	line, err := json.Marshal(map[string]any{
		"Cluster": c.name, "Network": c.name, "Kubernetes": kubernetes, "Istio": istio, "MeshConfig": c.mesh, "Proxies": sidecars,
	})
	if err != nil {
		return nil, err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	answer, err := p.out.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	var got struct {
		Error   string
		Proxies map[string]json.RawMessage
	}
	if err := json.Unmarshal(answer, &got); err != nil {
		return nil, err
	}
	if got.Error != "" {
		text, _, _ := strings.Cut(got.Error, "\n")
		return nil, errors.New(text)
	}
	out := map[string]*envoy.Config{}
	for name, data := range got.Proxies {
		if out[name], err = envoy.Parse(data); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// compare asks questions of a world.
func (p *worldsProcess) compare(seed uint64) (counts map[string]int, wrong []string, err error) {
	w := drawWorld(seed)
	in, _, err := offline.Load(w.files())
	if err != nil {
		return nil, nil, err
	}
	state := engine.Translate(in)
	generated, err := offline.Files(state.Output)
	if err != nil {
		return nil, nil, err
	}
	proxies := drawnProxies{world: w, configs: map[string]map[string]*envoy.Config{}}
	for _, c := range w.clusters {
		istio := slices.Clone(c.byHand)
		for _, file := range slices.Sorted(maps.Keys(generated)) {
			if path.Dir(file) == c.name {
				more, err := withAge(generated[file])
				if err != nil {
					return nil, nil, err
				}
				istio = append(istio, more...)
			}
		}
		if proxies.configs[c.name], err = p.configs(c, istio); err != nil {
			return nil, nil, err
		}
	}
	index := explain.New(state)
	created := map[snapshot.Ref]time.Time{}
	for o := range state.Output.Objects {
		created[o.Ref] = generatedAt
	}
	index.Observe(nil, false, &snapshot.Observed{Created: created})
	counts, wrong = proxies.ask(index, state, w.random)
	open, more := proxies.open(index, state)
	maps.Copy(counts, open)
	if wrong = append(wrong, more...); len(wrong) > 0 {
		wrong = []string{w.String() + fmt.Sprintf("\n%d answers differ, such as:\n%s", len(wrong), wrong[0])}
	}
	return counts, wrong, nil
}

// withAge are Istio's objects of a file, with the time at which they were created.
func withAge(file []byte) (out []string, err error) {
	objects, err := kube.Decode(file)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		if !strings.Contains(o.GetAPIVersion(), ".istio.io/") {
			continue
		}
		o.Object["metadata"].(map[string]any)["creationTimestamp"] = generatedAt.Format(time.RFC3339) //nolint:forcetypeassert // it was decoded
		data, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, err
		}
		out = append(out, string(data))
	}
	return out, nil
}

// drawnProxies are the proxies of a world.
type drawnProxies struct {
	world   *drawnWorld
	configs map[string]map[string]*envoy.Config
}

// ask asks random questions.
func (d *drawnProxies) ask(index *explain.Index, state *snapshot.State, random *rand.Rand) (counts map[string]int, wrong []string) {
	counts = map[string]int{}
	callers := slices.DeleteFunc(index.Refs(snapshot.Workload), func(ref snapshot.Ref) bool {
		return d.isPlain(ref) || !strings.HasPrefix(ref.Name, "web") && !strings.HasPrefix(ref.Name, "worker") && !strings.HasPrefix(ref.Name, "cart")
	})
	var services []snapshot.Ref
	ports := map[snapshot.Ref][]uint32{}
	for each := range state.Plan.Destinations.All() {
		if k := each.Destination.Spec.KubeService; k != nil && k.Ref.Namespace == "shop" {
			services = append(services, each.Ref)
			for _, p := range k.Ports {
				ports[each.Ref] = append(ports[each.Ref], p.Port)
			}
		}
	}
	if len(callers) == 0 || len(services) == 0 {
		return counts, []string{"nothing was discovered"}
	}
	for range questionsPerWorld {
		from, to := callers[random.IntN(len(callers))], services[random.IntN(len(services))]
		if callsItself(from, to) {
			continue
		}
		one := func(list ...string) string { return list[random.IntN(len(list))] }
		request := explain.Request{Method: one("GET", "POST"), Path: one("/", "/a", "/a/b.json", "/b", "/c"), Headers: map[string]string{}}
		if value := one("", "one", "two"); value != "" {
			request.Headers["x-team"] = value
		}
		request.Port = ports[to][random.IntN(len(ports[to]))]
		why := index.Why(from, to, request)
		if why == nil {
			wrong = append(wrong, fmt.Sprintf("%s to %s: no answer", from, to))
			continue
		}
		explain.AddProxies(index, why, d)
		if is := judge(counts, why); is != "" {
			wrong = append(wrong, describeDifference(why, is))
		}
	}
	return counts, wrong
}

// callsItself reports whether the only pod of a service calls that: proxies have no listener for their own pod behind a headless Service
// (Istio, buildSidecarOutboundListeners), which is of no matter to what becomes of the call.
func callsItself(from, to snapshot.Ref) bool {
	const version = "cart-v1"
	_, at, found := strings.Cut(to.Name, version+"-shop-")
	return found && strings.HasPrefix(from.Name, version) && strings.Contains(from.Name, "-shop-"+at)
}

// isPlain reports whether a workload is of a pod without a proxy.
func (d *drawnProxies) isPlain(workload snapshot.Ref) bool {
	for _, c := range d.world.clusters {
		for _, p := range c.pods {
			if p.plain && strings.HasPrefix(workload.Name, strings.TrimSuffix(p.Name, "0")) && strings.Contains(workload.Name, "-"+c.name) {
				return true
			}
		}
	}
	return false
}

// Pods is part of explain.Proxies.
func (d *drawnProxies) Pods(cluster, namespace string, labels map[string]string) ([]explain.ProxyPod, error) {
	var out []explain.ProxyPod
	for _, c := range d.world.clusters {
		for _, p := range c.pods {
			if c.name == cluster && p.Namespace == namespace && contains(p.Labels, labels) {
				pod := explain.ProxyPod{
					Cluster: cluster, Namespace: namespace, Name: p.Name, Labels: p.Labels, Owner: p.Name, IPs: []string{p.Address}, Containers: []string{"app"}, Gateway: p.Gateway,
				}
				if !p.plain {
					pod.Containers = append(pod.Containers, "istio-proxy")
				}
				out = append(out, pod)
			}
		}
	}
	return out, nil
}

// Config is part of explain.Proxies.
func (d *drawnProxies) Config(pod explain.ProxyPod, _ uint32) (*envoy.Config, error) {
	return d.configs[pod.Cluster][pod.Name], nil
}

// Patches is part of explain.Proxies.
func (d *drawnProxies) Patches(explain.ProxyPod, snapshot.ProxyPatch, string) ([]string, error) {
	return nil, nil
}
