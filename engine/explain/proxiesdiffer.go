package explain

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// compare finds where what the proxies do differs from what follows from objects. What one of them does not know differs from nothing.
func (t *trace) compare() {
	p, w := t.out, t.why
	p.Differences = append(p.Differences, t.routeDiffers()...)
	p.Differences = append(p.Differences, t.settingsDiffer()...)
	p.Differences = append(p.Differences, t.accessDiffers()...)
	if len(p.Differences) == 0 && w.Verdict != Unknown && p.Verdict != Unknown && w.Verdict != p.Verdict {
		p.Differences = append(p.Differences, ProxyDifference{What: "verdict", Objects: string(w.Verdict) + ": " + w.Reason, Proxies: string(p.Verdict) + ": " + p.Reason, By: t.routedBy()})
	}
	p.Agrees = len(p.Differences) == 0
	for i := range p.Differences {
		d := &p.Differences[i]
		if len(d.By) > 0 {
			continue
		}
		if d.at == nil {
			d.at = p.Caller
		}
		if d.Perhaps = t.patches(d.at); len(d.Perhaps) == 0 {
			t.note("no object is named where the proxies differ: if what they hold does not change soon, ask whether their control plane reads the objects: meshctl check")
		}
	}
	if len(p.Differences) == 0 && p.Verdict == Unknown && p.Caller != nil {
		if patches := t.patches(p.Caller); len(patches) > 0 {
			t.note("the configuration of the caller's proxy is changed by " + firstOf(patches))
		}
	}
}

// patches are the objects that may change what the proxy of a pod holds, and leave no name there.
func (t *trace) patches(pod *ProxyPod) (out []string) {
	namespaces := []string{pod.Namespace}
	for _, m := range t.state.Plan.Meshes {
		if m.Cluster == pod.Cluster && m.RootNamespace != "" && !slices.Contains(namespaces, m.RootNamespace) {
			namespaces = append(namespaces, m.RootNamespace)
		}
	}
	for _, kind := range t.names.Patches {
		for _, namespace := range namespaces {
			names, err := t.proxies.Patches(*pod, kind, namespace)
			if err != nil {
				t.note(err.Error())
			}
			for _, name := range names {
				out = append(out, fmt.Sprintf("%s %s/%s/%s", kind.Kind, pod.Cluster, namespace, name))
			}
		}
	}
	return out
}

// routedBy is what the route of the proxy comes from.
func (t *trace) routedBy() []snapshot.Ref {
	if t.out.Origin == (snapshot.Ref{}) {
		return nil
	}
	return []snapshot.Ref{t.out.Origin}
}

// routeDiffers compares where requests go. Where endpoints decide about shares, there is nothing to compare.
func (t *trace) routeDiffers() []ProxyDifference {
	if t.out.sent.Stopped != "" || len(t.out.sent.Passage.Doubts) > 0 || len(t.why.Outcomes) == 0 {
		return nil
	}
	said, done := map[snapshot.ProxyTarget]float64{}, map[snapshot.ProxyTarget]float64{}
	for i := range t.why.Outcomes {
		switch o := &t.why.Outcomes[i]; {
		case o.Idle || o.Priority > 0:
			// A cluster of proxies has all of them, by priority.
			said[snapshot.ProxyTarget{Host: o.Host, Port: o.Port, Subset: o.Subset}] += 0
		case o.Share == nil, o.Verdict == Unknown && o.Destination == (snapshot.Ref{}):
			return nil
		default:
			said[snapshot.ProxyTarget{Host: o.Host, Port: o.Port, Subset: o.Subset}] += *o.Share
		}
	}
	counted := map[string]bool{}
	for i := range t.out.Outcomes {
		if o := &t.out.Outcomes[i]; !counted[o.Target] {
			counted[o.Target] = true
			target := snapshot.ProxyTarget{Host: o.Host, Port: o.Port, Subset: o.Subset}
			if o.Host == "" {
				target.Host = o.Target
			}
			done[target] += o.Share
		}
	}
	same := len(said) == len(done)
	for target, share := range said {
		same = same && math.Abs(share-done[target]) < 0.01
	}
	if same {
		return nil
	}
	return []ProxyDifference{{What: "route", Objects: sharesText(said), Proxies: sharesText(done), By: t.routedBy()}}
}

// sharesText lists targets, the one with the largest share first: "75% reviews.bookinfo.svc.cluster.local:9080 (v1)".
func sharesText(shares map[snapshot.ProxyTarget]float64) string {
	targets := slices.SortedFunc(maps.Keys(shares), func(a, b snapshot.ProxyTarget) int {
		return cmp.Or(cmp.Compare(shares[b], shares[a]), strings.Compare(a.Host, b.Host), cmp.Compare(a.Port, b.Port), strings.Compare(a.Subset, b.Subset))
	})
	texts := make([]string, len(targets))
	for i, target := range targets {
		texts[i] = snapshot.Percent(shares[target]) + " " + target.Host
		if target.Port != 0 {
			texts[i] += fmt.Sprintf(":%d", target.Port)
		}
		if target.Subset != "" {
			texts[i] += " (" + target.Subset + ")"
		}
	}
	if len(texts) == 0 {
		return "nowhere"
	}
	return strings.Join(texts, ", ")
}

// settingsDiffer compares the timeout, and whether the caller's proxy answers some requests itself.
func (t *trace) settingsDiffer() (out []ProxyDifference) {
	sent := t.out.sent
	if sent.Route == nil || len(sent.Targets) == 0 || t.why.Verdict == Unknown && t.why.Route == nil {
		return nil
	}
	said := map[string]string{"timeout": "none", "abort": "none"}
	if t.why.Route != nil {
		for _, s := range t.why.Route.Settings {
			said[s.Name] = s.Value
		}
	}
	if sent.Route.Route.Timeout != "" {
		done, wanted := parseDuration(sent.Route.Route.Timeout), parseDuration(said["timeout"])
		if done != wanted {
			out = append(out, ProxyDifference{What: "timeout", Objects: said["timeout"], Proxies: shortOrNone(done), By: t.routedBy()})
		}
	}
	abort, share := sent.Passage.Abort, "none"
	if abort != nil {
		share = fmt.Sprintf("%s get status %d", snapshot.Percent(abort.Percentage.Percent()), abort.HTTPStatus)
	}
	if (abort != nil) != (said["abort"] != "none") {
		out = append(out, ProxyDifference{What: "abort", Objects: said["abort"], Proxies: share, By: t.routedBy()})
	}
	return out
}

// parseDuration reads one; 0 if there is none.
func parseDuration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return d
}

func shortOrNone(d time.Duration) string {
	if d == 0 {
		return "none"
	}
	return d.String()
}

// accessDiffers compares, for each pod that was asked, whether it lets requests in.
func (t *trace) accessDiffers() (out []ProxyDifference) {
	for i := range t.out.Outcomes {
		o := &t.out.Outcomes[i]
		said := t.saidOf(o)
		if said == nil || said.Verdict == Unknown || o.Verdict == Unknown || said.Verdict == o.Verdict {
			continue
		}
		out = append(out, ProxyDifference{What: "access", Objects: string(said.Verdict) + ": " + said.Reason, Proxies: string(o.Verdict) + ": " + o.Reason, By: o.By, at: o.Pod})
	}
	return out
}

// saidOf is what follows from objects for a target, if that is the same for all of its pods; else nil.
func (t *trace) saidOf(o *ProxyOutcome) *Outcome {
	var found *Outcome
	for i := range t.why.Outcomes {
		said := &t.why.Outcomes[i]
		if said.Host != o.Host || said.Port != o.Port || said.Subset != o.Subset || said.Idle {
			continue
		}
		if found != nil && found.Verdict != said.Verdict {
			return nil
		}
		found = said
	}
	return found
}
