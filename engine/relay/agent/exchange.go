package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/relay/pump"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// exchanger carries out the hub's requests to the cluster, with the credential of the agent.
type exchanger struct {
	client *http.Client
	base   *url.URL
	rules  rules
	signal chan struct{}
	// verifier answers what is not asked of the API server.
	verifier verifier

	mu      sync.Mutex
	answers []*relayv1.Answer
	cancels map[uint64]context.CancelFunc
}

func newExchanger(config *rest.Config, r rules) (*exchanger, error) {
	client, err := rest.HTTPClientFor(kube.Unlimited(config))
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	return &exchanger{client: client, base: base, rules: r, signal: make(chan struct{}, 1), cancels: map[uint64]context.CancelFunc{}}, nil
}

// begin forgets what was asked for on another stream.
func (e *exchanger) begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answers = nil
	for id, cancel := range e.cancels {
		cancel()
		delete(e.cancels, id)
	}
}

// receive begins to carry out a request.
func (e *exchanger) receive(ctx context.Context, r *relayv1.Request) {
	if r.GetId() == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.GetCancel() {
		if cancel := e.cancels[r.GetId()]; cancel != nil {
			cancel()
		}
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	e.cancels[r.GetId()] = cancel
	go func() {
		defer cancel()
		a := e.carryOut(ctx, r)
		a.Id = r.GetId()
		e.mu.Lock()
		delete(e.cancels, r.GetId())
		e.answers = append(e.answers, a)
		e.mu.Unlock()
		pump.Signal(e.signal)
	}()
}

// next is the next answer.
func (e *exchanger) next() (*relayv1.Answer, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.answers) == 0 {
		return nil, false
	}
	first := e.answers[0]
	e.answers = e.answers[1:]
	return first, true
}

// maxAnswer is the largest answer that is passed on, in bytes.
const maxAnswer = 3 << 20

// carryOut asks the API server, if the hub may ask for that.
func (e *exchanger) carryOut(ctx context.Context, r *relayv1.Request) *relayv1.Answer {
	if answer := e.verifier.answer(ctx, r); answer != nil {
		return answer
	}
	if err := e.rules.allow(r); err != nil {
		return refusal(err)
	}
	target, err := e.base.Parse(r.GetPath())
	if err != nil {
		return refusal(err)
	}
	request, err := http.NewRequestWithContext(ctx, r.GetMethod(), target.String(), bytes.NewReader(r.GetBody()))
	if err != nil {
		return refusal(err)
	}
	request.Header.Set("Accept", "application/json")
	if r.GetContentType() != "" {
		request.Header.Set("Content-Type", r.GetContentType())
	}
	response, err := e.client.Do(request)
	if err != nil {
		return &relayv1.Answer{Error: kube.Reason(e.base.String(), err)}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return &relayv1.Answer{Error: kube.Reason(e.base.String(), err)}
	case len(body) > maxAnswer:
		return &relayv1.Answer{Error: fmt.Sprintf("the answer has more than %d bytes", maxAnswer)}
	}
	return &relayv1.Answer{
		Status: uint32(response.StatusCode), Body: body, ContentType: response.Header.Get("Content-Type"), //nolint:gosec // 100 to 599
		RetryAfter: response.Header.Get("Retry-After"), Warnings: response.Header.Values("Warning"),
	}
}

// refusal is the agent's own answer to what the hub may not ask for.
func refusal(err error) *relayv1.Answer {
	body, _ := json.Marshal(map[string]any{ // plain values
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": http.StatusForbidden,
		"message": "the agent does not pass this on: " + err.Error(),
	})
	return &relayv1.Answer{Status: http.StatusForbidden, ContentType: "application/json", Body: body}
}

// rules are what the hub may ask for: what the management plane reads and writes in a managed cluster by the table of kinds, and of
// what it writes, only objects that it marks as its own. The agent keeps to them, whoever the hub is.
type rules struct {
	cluster string
	plane   snapshot.Plane
}

// allow returns an error for a request that the hub may not make.
func (s rules) allow(r *relayv1.Request) error {
	target, err := url.ParseRequestURI(r.GetPath())
	if err != nil || target.Host != "" || target.Scheme != "" || strings.HasPrefix(target.Path, "//") {
		return fmt.Errorf("%q is no path", r.GetPath())
	}
	if slices.Contains([]string{"/readyz", "/version"}, target.Path) && r.GetMethod() == http.MethodGet {
		return nil
	}
	kind, namespace, name, sub, ok := objectAt(target.EscapedPath())
	if !ok {
		return fmt.Errorf("%s is the path of nothing that the management plane writes", target.Path)
	}
	switch r.GetMethod() {
	case http.MethodGet:
		return nil
	case http.MethodPatch:
		return s.allowPatch(r, kind, namespace, name, sub)
	case http.MethodDelete:
		if name == "" || sub != "" {
			return fmt.Errorf("only single objects are deleted")
		}
		return s.allowDelete(r)
	}
	return fmt.Errorf("%s is none of its verbs", r.GetMethod())
}

// objectAt reads the path of an object, or of the objects, of a kind that the management plane writes in managed clusters.
func objectAt(path string) (kind snapshot.Kind, namespace, name, sub string, ok bool) {
	if strings.Contains(path, "%") || strings.Contains(path, "..") {
		return snapshot.NoKind, "", "", "", false // no name of Kubernetes has to be escaped
	}
	for _, k := range snapshot.Kinds(snapshot.ManagedSide, snapshot.Write) {
		base := strings.Join(kube.Path(k, "", "", ""), "/")
		group := strings.TrimSuffix(base, "/"+k.Info().Resource)
		rest, found := strings.CutPrefix(path, group+"/")
		if !found {
			continue
		}
		parts := strings.Split(rest, "/")
		if len(parts) >= 2 && parts[0] == "namespaces" {
			namespace, parts = parts[1], parts[2:]
		}
		if len(parts) == 0 || parts[0] != k.Info().Resource || len(parts) > 3 || slices.Contains(parts, "") {
			namespace = ""
			continue
		}
		parts = append(parts, "", "")
		return k, namespace, parts[1], parts[2], true
	}
	return snapshot.NoKind, "", "", "", false
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

// allowPatch allows an apply of an object that is marked as the management plane's and this cluster's.
func (s rules) allowPatch(r *relayv1.Request, kind snapshot.Kind, namespace, name, sub string) error {
	var o written
	switch err := json.Unmarshal(r.GetBody(), &o); {
	case r.GetContentType() != "application/apply-patch+yaml":
		return fmt.Errorf("only applies are passed on, and not %s", r.GetContentType())
	case err != nil:
		return fmt.Errorf("the document is not JSON: %w", err)
	case name == "" || o.Metadata.Name != name || o.Metadata.Namespace != namespace:
		return fmt.Errorf("the document is that of %s/%s, and the path that of %s/%s", o.Metadata.Namespace, o.Metadata.Name, namespace, name)
	case sub == "status":
		return nil
	case sub != "":
		return fmt.Errorf("the subresource %s is not written", sub)
	case o.Metadata.Labels[mirror.OwnerLabel(kind)] != s.plane.Namespace || o.Metadata.Labels[snapshot.ClusterLabel] != s.cluster:
		return fmt.Errorf("the object is not marked as that of the management plane %s for %s", s.plane.Namespace, s.cluster)
	case s.plane.ID != "" && o.Metadata.Labels[snapshot.PlaneLabel] != s.plane.ID:
		return fmt.Errorf("the object is marked as that of another management plane")
	}
	return nil
}

// allowDelete allows to delete one version of an object: the one that the hub has seen.
func (s rules) allowDelete(r *relayv1.Request) error {
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
