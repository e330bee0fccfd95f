package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// guard holds the line between the hub and the cluster, whoever the hub is: it may read and write what the management plane does in a
// managed cluster by the table of kinds; of that, it writes only objects that it marks as its own, touches none that exists and is
// somebody else's, and does not delete most of them at once without saying that an edit explains it.
type guard struct {
	rules
	// link is the way to what exists.
	link  *mirror.Link
	brake brake
}

// allow returns an error for a request that the hub may not make.
func (g *guard) allow(r *relayv1.Request, now time.Time) error {
	of, changes, err := g.rules.allow(r)
	if err != nil || !changes {
		return err
	}
	conn := g.link.State().Conn
	if conn == nil {
		return errors.New("the agent has not read its cluster yet")
	}
	// What is not known to exist was written a moment ago: the hub knows no version of anything else.
	if o, exists := conn.Find(of); exists && !o.Ours() {
		return fmt.Errorf("%s is not marked as an object of the management plane %s, so it is somebody else's", of.Ref(g.cluster), g.plane.Namespace)
	}
	if r.GetMethod() != http.MethodDelete || r.GetExplained() {
		return nil
	}
	return g.brake.pass(now, func() int { return ours(conn) })
}

// ours counts the objects of the management plane.
func ours(conn *mirror.Connection) int {
	total := 0
	for _, o := range conn.All() {
		if o.Ours() && !o.Going {
			total++
		}
	}
	return total
}

// brake bounds the deletions that no edit explains.
type brake struct {
	mu sync.Mutex
	// passed are when deletions were let through.
	passed []time.Time
}

// Of what stands, brakePercent may be deleted within brakeWindow, and brakeLeast in any case.
const (
	brakeWindow  = 10 * time.Minute
	brakeLeast   = 10
	brakePercent = 50
)

// pass lets a deletion through, or returns why not. Standing counts the objects.
func (b *brake) pass(now time.Time, standing func() int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.passed = slices.DeleteFunc(b.passed, func(at time.Time) bool { return now.Sub(at) >= brakeWindow })
	if n := len(b.passed); n >= brakeLeast {
		if total := standing() + n; (n+1)*100 > total*brakePercent {
			return fmt.Errorf("%d of %d objects were deleted within %s, and no edit explains it: the agent deletes no more of them for now", n, total, brakeWindow)
		}
	}
	b.passed = append(b.passed, now)
	return nil
}

// rules are what the hub may ask for, whatever exists.
type rules struct {
	cluster string
	plane   snapshot.Plane
}

// allow returns an error for a request that the hub may not make, and the object that it changes, if it changes one.
func (s rules) allow(r *relayv1.Request) (of mirror.ID, changes bool, err error) {
	target, err := url.ParseRequestURI(r.GetPath())
	if err != nil || target.Host != "" || target.Scheme != "" || strings.HasPrefix(target.Path, "//") {
		return of, false, fmt.Errorf("%q is no path", r.GetPath())
	}
	if slices.Contains([]string{"/readyz", "/version"}, target.Path) && r.GetMethod() == http.MethodGet {
		return of, false, nil
	}
	of, sub, ok := objectAt(target.EscapedPath())
	if !ok {
		return of, false, fmt.Errorf("%s is the path of nothing that the management plane writes", target.Path)
	}
	written := of.Kind.Info().Access&snapshot.Write != 0
	switch method := r.GetMethod(); {
	case method == http.MethodGet && written:
		return of, false, nil
	case method == http.MethodPatch:
		return of, sub == "", s.allowPatch(r, of, sub)
	case method == http.MethodDelete && written:
		return of, true, s.allowDelete(r, of, sub)
	}
	return of, false, fmt.Errorf("%s is none of the verbs for %s", r.GetMethod(), target.Path)
}

// answered are the kinds of which the hub writes the status: it answers the agents' requests for certificates, and says what became of
// the policies that users of the cluster wrote.
func answered(k snapshot.Kind) bool {
	return k == snapshot.CertificateRequest || k.Info().Access&snapshot.InClusters != 0
}

// objectAt reads the path of an object, or of the objects, of a kind that the management plane writes or answers in managed clusters.
func objectAt(path string) (of mirror.ID, sub string, ok bool) {
	if strings.Contains(path, "%") || strings.Contains(path, "..") {
		return mirror.ID{}, "", false // no name of Kubernetes has to be escaped
	}
	for _, k := range snapshot.Kinds(snapshot.ManagedSide, snapshot.Write|snapshot.Watch|snapshot.InClusters) {
		if k.Info().Access&snapshot.Write == 0 && !answered(k) {
			continue
		}
		base := strings.Join(kube.Path(k, "", "", ""), "/")
		group := strings.TrimSuffix(base, "/"+k.Info().Resource)
		rest, found := strings.CutPrefix(path, group+"/")
		if !found {
			continue
		}
		parts := strings.Split(rest, "/")
		namespace := ""
		if len(parts) >= 2 && parts[0] == "namespaces" {
			namespace, parts = parts[1], parts[2:]
		}
		if len(parts) == 0 || parts[0] != k.Info().Resource || len(parts) > 3 || slices.Contains(parts, "") {
			continue
		}
		parts = append(parts, "", "")
		return mirror.ID{Kind: k, Namespace: namespace, Name: parts[1]}, parts[2], true
	}
	return mirror.ID{}, "", false
}

// written is what matters of the document of an apply.
type written struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string            `json:"name"`
		Namespace string            `json:"namespace"`
		Labels    map[string]string `json:"labels"`
	} `json:"metadata"`
}

// allowPatch allows an apply of an object that is marked as the management plane's and this cluster's, and that of a status.
func (s rules) allowPatch(r *relayv1.Request, of mirror.ID, sub string) error {
	var o written
	err := json.Unmarshal(r.GetBody(), &o)
	labels := o.Metadata.Labels
	switch {
	case r.GetContentType() != "application/apply-patch+yaml":
		return fmt.Errorf("only applies are passed on, and not %s", r.GetContentType())
	case err != nil:
		return fmt.Errorf("the document is not JSON: %w", err)
	case of.Name == "" || o.Metadata.Name != of.Name || o.Metadata.Namespace != of.Namespace:
		return fmt.Errorf("the document is that of %s/%s, and the path that of %s/%s", o.Metadata.Namespace, o.Metadata.Name, of.Namespace, of.Name)
	case sub == "status" && answered(of.Kind):
		return nil
	case sub != "" || answered(of.Kind):
		return fmt.Errorf("of a %s, the hub does not write %q", of.Kind, sub)
	case labels[mirror.OwnerLabel(of.Kind)] != s.plane.Namespace || labels[snapshot.ClusterLabel] != s.cluster:
		return fmt.Errorf("the object is not marked as that of the management plane %s for %s", s.plane.Namespace, s.cluster)
	case s.plane.ID != "" && labels[snapshot.PlaneLabel] != s.plane.ID:
		return fmt.Errorf("the object is marked as that of another management plane")
	}
	return nil
}

// allowDelete allows to delete one version of an object: the one that the hub has seen.
func (rules) allowDelete(r *relayv1.Request, of mirror.ID, sub string) error {
	if of.Name == "" || sub != "" {
		return fmt.Errorf("only single objects are deleted")
	}
	var options struct {
		Preconditions struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"preconditions"`
	}
	if err := json.Unmarshal(r.GetBody(), &options); err != nil || options.Preconditions.ResourceVersion == "" {
		return fmt.Errorf("a deletion has to say of which version of the object it is")
	}
	return nil
}
