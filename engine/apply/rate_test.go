package apply_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// serviceEntries are an Output with many ServiceEntries for one cluster.
func (w *world) serviceEntries(many int) *snapshot.Output {
	objects := make([]*snapshot.Object, many)
	for i := range objects {
		objects[i] = w.object(snapshot.ServiceEntry, one, fmt.Sprintf("svc-%05d", i), serviceEntrySpec(i))
	}
	return output([]string{one}, objects...)
}

// TestManyObjectsAreWrittenOnce: a restart writes nothing, and an edit writes one object.
func TestManyObjectsAreWrittenOnce(t *testing.T) {
	t.Parallel()
	const many = 300
	config, err := sandboxtest.APIServers(t, 1)[0].Config()
	require.NoError(t, err)
	w := worldOn(t, config)
	w.install(istioKinds...)
	out := w.serviceEntries(many)
	sink, stop := w.run()
	sink.Set(one, w.config)
	sink.apply(out)
	assert.Equal(t, many, sink.total().Created)
	require.Empty(t, sink.Failures())

	stop()
	again, _ := w.run()
	again.Set(one, w.config)
	again.apply(out)
	sum := again.total()
	assert.False(t, sum.Changed(), "%v", sum)
	assert.Equal(t, many, sum.Unchanged)

	edited := *out
	part := out.Parts.Slice()[17]
	edited.Parts = out.Parts.With(map[int]*snapshot.Part{17: {Key: part.Key, Objects: []*snapshot.Object{
		w.object(snapshot.ServiceEntry, one, part.Objects[0].Ref.Name, serviceEntrySpec(99))}}})
	again.apply(&edited)
	sum = again.total()
	assert.Equal(t, apply.ChangeSet{Configured: 1, Changes: sum.Changes}, sum)
}

// BenchmarkLiveApply is how many objects a second the sink writes to one API server,
// and how many a bare loop does that sends the same documents with as many requests in
// flight, but watches nothing and reads no answer. Run it with -benchtime 1x.
func BenchmarkLiveApply(b *testing.B) {
	const (
		many = 5000
		// rounds spread the two sides over the same time.
		rounds = 5
	)
	config, err := sandboxtest.APIServers(b, 1)[0].Config()
	require.NoError(b, err)
	w := worldOn(b, config)
	w.install(istioKinds...)
	out := w.serviceEntries(many)
	sink, _ := w.run()
	sink.Set(one, w.config)
	b.ResetTimer()
	var raw, ours time.Duration
	for round := range rounds {
		raw += w.rawApply(round*many/rounds, (round+1)*many/rounds)
		part := *out
		part.Parts = snapshot.ListOf(out.Parts.Slice()[:(round+1)*many/rounds])
		began := time.Now()
		sink.apply(&part)
		ours += time.Since(began)
	}
	b.ReportMetric(many/raw.Seconds(), "raw/s")
	b.ReportMetric(many/ours.Seconds(), "sink/s")
}

// rawApply is how long the API server takes for applies of a loop that does nothing else.
func (w *world) rawApply(from, to int) time.Duration {
	config := rest.CopyConfig(w.config)
	config.QPS = -1
	client := kubernetes.NewForConfigOrDie(config).RESTClient()
	next := make(chan int)
	var group sync.WaitGroup
	began := time.Now()
	for range 8 {
		group.Go(func() {
			for i := range next {
				name := fmt.Sprintf("raw-%05d", i)
				document, err := json.Marshal(map[string]any{
					"apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry",
					"metadata": map[string]any{"name": name, "namespace": w.namespace}, "spec": serviceEntrySpec(i)})
				assert.NoError(w.t, err)
				assert.NoError(w.t, client.Patch(types.ApplyPatchType).
					AbsPath("/apis/networking.istio.io/v1/namespaces", w.namespace, "serviceentries", name).
					Param("fieldManager", "raw").Param("force", "true").Body(document).Do(w.t.Context()).Error())
			}
		})
	}
	for i := from; i < to; i++ {
		next <- i
	}
	close(next)
	group.Wait()
	return time.Since(began)
}

// serviceEntrySpec is like that of a federated service.
func serviceEntrySpec(i int) map[string]any {
	return map[string]any{
		"hosts":      []string{fmt.Sprintf("svc-%d.bookinfo.svc.cluster-2.global", i)},
		"addresses":  []string{fmt.Sprintf("245.%d.%d.1", i/250, i%250)},
		"location":   "MESH_INTERNAL",
		"resolution": "DNS",
		"ports":      []any{map[string]any{"number": 9080, "name": "http", "protocol": "HTTP"}},
		"endpoints": []any{map[string]any{"address": "172.18.0.3", "ports": map[string]any{"http": 15443},
			"labels": map[string]string{"cluster": "cluster-2", "app": "reviews", "version": "v1"}}},
	}
}
