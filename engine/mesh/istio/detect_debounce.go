package istio

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// The environment variables that say how long istiod collects changes before it sends
// them to its proxies (pilot/pkg/features/tuning.go, DebounceAfter and DebounceMax).
// What a whole ConfigMap or Secret sets (envFrom) is not read.
const (
	debounceAfter = "PILOT_DEBOUNCE_AFTER"
	debounceMax   = "PILOT_DEBOUNCE_MAX"
)

// Bounds of what is believed of a control plane: whoever may write its Deployment must
// not stop the writes to its cluster.
const (
	// maxDebounceAfter leaves time for the proxies within the time for which a write
	// waits at most (apply.Pace, Patience).
	maxDebounceAfter = 10 * time.Second
	// maxDebounceMax is far beyond what any write waits for, so that larger values
	// make no difference.
	maxDebounceMax = time.Minute
)

// debounceOf reads how long a control plane collects changes; nil if as usual. What
// cannot be read or followed is reported.
func debounceOf(x *discovery.Index, d *appsv1.Deployment, pilot *corev1.Container, mesh snapshot.Ref) *snapshot.Debounce {
	report := func(hint, format string, args ...any) {
		issue := snapshot.Warnf(snapshot.MeshUnreadable, hint, format, args...).On(x.Ref(snapshot.Deployment, d), mesh)
		x.Report(issue)
	}
	read := func(name string, usual time.Duration) time.Duration {
		value, problem := durationOf(pilot, name, usual)
		if problem != "" {
			report("write a duration such as 500ms as its value: if the control plane waits longer than assumed, requests may fail for a moment when routes change",
				"its environment variable %s %s, so %s is assumed", name, problem, usual)
		}
		return max(value, 0) // istiod does not wait for less than nothing either
	}
	after, most := read(debounceAfter, snapshot.UsualDebounce.After), read(debounceMax, snapshot.UsualDebounce.Most)
	if after > maxDebounceAfter {
		report(fmt.Sprintf("set it to %s or less, or requests may fail for a moment when routes change", maxDebounceAfter),
			"its environment variable %s is %s, but no write waits longer than %s for the control plane", debounceAfter, after, maxDebounceAfter)
	}
	out := snapshot.Debounce{After: min(after, maxDebounceAfter), Most: min(most, maxDebounceMax)}
	if out == snapshot.UsualDebounce {
		return nil
	}
	return &out
}

// durationOf is the duration in an environment variable of a container, as Istio reads
// it: usual if it is not set, or cannot be used, which problem explains.
func durationOf(c *corev1.Container, name string, usual time.Duration) (value time.Duration, problem string) {
	value = usual
	for _, e := range c.Env { // of two, the last one counts
		if e.Name != name {
			continue
		}
		d, err := time.ParseDuration(e.Value)
		switch {
		case e.ValueFrom != nil:
			value, problem = usual, "comes from elsewhere (valueFrom)"
		case err != nil:
			value, problem = usual, fmt.Sprintf("is %.40q, which is not a duration", e.Value)
		default:
			value, problem = d, ""
		}
	}
	return value, problem
}
