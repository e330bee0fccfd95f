package explain

import (
	"fmt"
	"strings"

	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Proxies are where the proxies of pods are read. Errors are for people: they name the pod and say what to do.
type Proxies interface {
	// Pods are those that run, of a namespace of a cluster, with some labels; by name.
	Pods(cluster, namespace string, labels map[string]string) ([]ProxyPod, error)
	// Config is the configuration that the proxy of a pod holds.
	Config(pod ProxyPod, port uint32) (*envoy.Config, error)
	// Patches are the names of the objects of a kind in a namespace that are for a pod, ascending.
	Patches(pod ProxyPod, kind snapshot.ProxyPatch, namespace string) ([]string, error)
}

// ProxyPod is a pod of which the proxy is asked.
type ProxyPod struct {
	Cluster   string            `json:"cluster"`
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Labels    map[string]string `json:"-"`
	// Owner is what controls it, and IPs its addresses. Containers are the names of those that run in it.
	Owner      string   `json:"-"`
	IPs        []string `json:"-"`
	Containers []string `json:"-"`
	// Gateway: its proxy is none of an application beside it. Ambient: a proxy of its node has its connections, instead of a sidecar.
	Gateway bool `json:"-"`
	Ambient bool `json:"-"`
}

func (p *ProxyPod) String() string { return p.Cluster + "/" + p.Namespace + "/" + p.Name }

// InProxies is what proxies do with a request, by the configuration that they hold: what is in force, as far as it is evaluated.
// Certificates are taken for valid, endpoints for those that Envoy counts as healthy.
type InProxies struct {
	Verdict Verdict `json:"verdict"`
	// Reason is the verdict in a sentence.
	Reason string `json:"reason"`
	// Agrees: nothing of this differs from what follows from objects. An unknown answer agrees with any.
	Agrees      bool              `json:"agrees"`
	Differences []ProxyDifference `json:"differences"`
	// Caller is the pod whose proxy sends the request; nil if none was read.
	Caller *ProxyPod `json:"caller,omitempty"`
	// VirtualHost and Route are the names that the proxy has for what takes the request, and Origin is the object that they come from.
	VirtualHost string       `json:"virtualHost,omitempty"`
	Route       string       `json:"route,omitempty"`
	Origin      snapshot.Ref `json:"origin,omitzero"`
	// Outcomes are where the requests end, one for each pod that was asked, the largest share first.
	Outcomes []ProxyOutcome `json:"outcomes"`
	// Notes are what is worth knowing besides: updates that proxies refused, and what was left out.
	Notes []string `json:"notes,omitempty"`

	sent *envoy.Sent
}

// IsAllowed reports whether all of these requests are known to be let in: by the proxies, if they were asked, and by what follows from the
// objects, if all that decides was read.
func (w *Why) IsAllowed() bool {
	if w.Proxies == nil {
		return w.Verdict == Allowed && w.NotRead == ""
	}
	return w.Proxies.Verdict == Allowed && w.Proxies.Agrees
}

// ProxyOutcome is what becomes of the requests for one target at one pod.
type ProxyOutcome struct {
	// Share of the requests of the target, in percent, and Target its name in proxies.
	Share  float64 `json:"share"`
	Target string  `json:"target"`
	// Host, Port and Subset are what it is for; empty if it is for none of the mesh's services.
	Host   string `json:"host,omitempty"`
	Port   uint32 `json:"port,omitempty"`
	Subset string `json:"subset,omitempty"`
	// Gateway is the pod whose proxy passes connections on, and Pod the called one; nil if none is, or none was read.
	Gateway *ProxyPod `json:"gateway,omitempty"`
	Pod     *ProxyPod `json:"pod,omitempty"`
	// Identity is what the caller presents; empty if it presents none.
	Identity string `json:"identity,omitempty"`
	// Verdict is never Partly.
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason"`
	// By are the objects that decide.
	By []snapshot.Ref `json:"by,omitempty"`
}

// ProxyDifference is one between what follows from objects and what proxies hold.
type ProxyDifference struct {
	// What differs: verdict, route, timeout, abort or access.
	What string `json:"what"`
	// Objects and Proxies say what follows from the one and the other.
	Objects string `json:"objects"`
	Proxies string `json:"proxies"`
	// By are the objects that make it, as proxies name them; none if they do not.
	By []snapshot.Ref `json:"by,omitempty"`
	// Perhaps are objects that may make it, if By are none: they leave no name in proxies.
	Perhaps []string `json:"perhaps,omitempty"`

	at *ProxyPod
}

// sections are what proxies hold, on the page of an answer.
func (p *InProxies) sections() []Section {
	agrees := "the same as follows from the objects"
	switch {
	case p.Verdict == Unknown && p.Agrees:
		agrees = "not known"
	case !p.Agrees:
		agrees = snapshot.Count(len(p.Differences), "difference") + " to what follows from the objects"
	}
	head := facts("In the proxies",
		[2]string{"They do", string(p.Verdict)}, [2]string{"Because", p.Reason}, [2]string{"That is", agrees}, [2]string{"Caller", podText(p.Caller)},
		[2]string{"Route", strings.TrimSpace(p.VirtualHost + prefixed(", route ", p.Route) + prefixed(", of ", refText(p.Origin)))},
	)
	ends := Section{Title: "Where it ends, by the proxies", Header: []string{"SHARE", "TARGET", "GATEWAY", "POD", "ACCESS", "BY"}}
	for i := range p.Outcomes {
		o := &p.Outcomes[i]
		ends.Rows = append(ends.Rows, []string{snapshot.Percent(o.Share), o.target(), podText(o.Gateway), podText(o.Pod), strings.ToLower(string(o.Verdict)), refsText(o.By)})
	}
	differ := Section{Title: "Differences", Header: []string{"WHAT", "BY THE OBJECTS", "IN THE PROXIES", "BY"}}
	for _, d := range p.Differences {
		differ.Rows = append(differ.Rows, []string{d.What, d.Objects, d.Proxies, refsText(d.By) + prefixed("perhaps ", firstOf(d.Perhaps))})
	}
	notes := Section{Title: "Notes on the proxies", Header: []string{"NOTE"}}
	for _, note := range p.Notes {
		notes.Rows = append(notes.Rows, []string{note})
	}
	out := []Section{head}
	for _, s := range []Section{differ, ends, notes} {
		if len(s.Rows) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// target is what the requests are for: the host and port, and the subset.
func (o *ProxyOutcome) target() string {
	if o.Host == "" {
		return o.Target
	}
	text := fmt.Sprintf("%s:%d", o.Host, o.Port)
	if o.Subset != "" {
		text += " (" + o.Subset + ")"
	}
	return text
}

func podText(p *ProxyPod) string {
	if p == nil {
		return ""
	}
	return p.String()
}

func refText(ref snapshot.Ref) string {
	if ref == (snapshot.Ref{}) {
		return ""
	}
	return ref.String()
}

func refsText(refs []snapshot.Ref) string {
	texts := make([]string, len(refs))
	for i, ref := range refs {
		texts[i] = ref.String()
	}
	return firstOf(texts)
}
