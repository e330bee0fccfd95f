package istio

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/discovery/clustertest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// debounceEnv are environment variables of istiod.
func debounceEnv(namesAndValues ...string) []corev1.EnvVar {
	var out []corev1.EnvVar
	for i := 0; i < len(namesAndValues); i += 2 {
		out = append(out, corev1.EnvVar{Name: namesAndValues[i], Value: namesAndValues[i+1]})
	}
	return out
}

func TestDebounceOfIstiod(t *testing.T) {
	t.Parallel()
	const after, most = "PILOT_DEBOUNCE_AFTER", "PILOT_DEBOUNCE_MAX"
	elsewhere := []corev1.EnvVar{{Name: after, ValueFrom: &corev1.EnvVarSource{}}}
	usual := snapshot.UsualDebounce
	for name, c := range map[string]struct {
		env  []corev1.EnvVar
		want snapshot.Debounce
		// said is part of the only issue; empty for none.
		said string
	}{
		"as usual":            {nil, usual, ""},
		"written as usual":    {debounceEnv(after, "0.1s", most, "10000ms"), usual, ""},
		"slower":              {debounceEnv(after, "2s", most, "20s"), snapshot.Debounce{After: 2 * time.Second, Most: 20 * time.Second}, ""},
		"faster":              {debounceEnv(after, "10ms"), snapshot.Debounce{After: 10 * time.Millisecond, Most: usual.Most}, ""},
		"at once":             {debounceEnv(after, "0s", most, "0"), snapshot.Debounce{}, ""},
		"negative":            {debounceEnv(after, "-1s", most, "-1h"), snapshot.Debounce{}, ""},
		"the last one counts": {debounceEnv(after, "2s", after, "1s"), snapshot.Debounce{After: time.Second, Most: usual.Most}, ""},
		"not a duration":      {debounceEnv(after, "100", most, "20s"), snapshot.Debounce{After: usual.After, Most: 20 * time.Second}, `PILOT_DEBOUNCE_AFTER is "100", which is not a duration, so 100ms is assumed`},
		"empty":               {debounceEnv(most, ""), usual, `PILOT_DEBOUNCE_MAX is "", which is not a duration, so 10s is assumed`},
		"another variable":    {debounceEnv(after, "$(DEBOUNCE)"), usual, "is not a duration"},
		"elsewhere":           {elsewhere, usual, "PILOT_DEBOUNCE_AFTER comes from elsewhere (valueFrom), so 100ms is assumed"},
		"too slow":            {debounceEnv(after, "1h"), snapshot.Debounce{After: 10 * time.Second, Most: usual.Most}, "PILOT_DEBOUNCE_AFTER is 1h0m0s, but no write waits longer than 10s"},
		"as slow as can be":   {debounceEnv(most, "2562047h"), snapshot.Debounce{After: usual.After, Most: time.Minute}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := clustertest.New("cluster-1")
			istiod := b.Istiod(defaultRevision)
			istiod.Spec.Template.Spec.Containers[0].Env = c.env
			got := discovery.Discover(b.Cluster, discovery.Options{Detectors: detectors})
			assert.Equal(t, c.want, got.Debounce.OrUsual())
			assert.Equal(t, c.want == usual, got.Debounce == nil)
			if c.said == "" {
				assert.Empty(t, got.Issues)
				return
			}
			require.Len(t, got.Issues, 1)
			issue := got.Issues[0]
			assert.Contains(t, issue.Message, c.said)
			assert.Equal(t, snapshot.Ref{Kind: snapshot.Deployment, Cluster: "cluster-1", Namespace: "istio-system", Name: "istiod"}, issue.Ref)
			assert.Equal(t, snapshot.RefOf(snapshot.Mesh, got.Meshes[0]), issue.Target)
		})
	}
}

// Of several control planes the slowest counts, also if it is slow by default.
func TestDebounceOfTheSlowest(t *testing.T) {
	t.Parallel()
	b := clustertest.New("cluster-1")
	one, two := b.Istiod(defaultRevision), b.Istiod("new")
	set := func(oneAfter, twoAfter string) *snapshot.Discovered {
		one.Spec.Template.Spec.Containers[0].Env = debounceEnv("PILOT_DEBOUNCE_AFTER", oneAfter, "PILOT_DEBOUNCE_MAX", "20s")
		two.Spec.Template.Spec.Containers[0].Env = debounceEnv("PILOT_DEBOUNCE_AFTER", twoAfter)
		return discovery.Discover(b.Cluster, discovery.Options{Detectors: detectors})
	}
	slow := set("10ms", "3s")
	assert.Equal(t, &snapshot.Debounce{After: 3 * time.Second, Most: 20 * time.Second}, slow.Debounce)
	fast := set("10ms", "100ms")
	assert.Equal(t, &snapshot.Debounce{After: 100 * time.Millisecond, Most: 20 * time.Second}, fast.Debounce)
	assert.Equal(t, fast, discovery.Reuse(slow, fast))
	assert.Same(t, fast, discovery.Reuse(fast, set("10ms", "100ms")))
}
