package serve

import (
	"encoding/json"
	"net/http"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// debugCluster is what is shown of a cluster's input: counts, not objects.
type debugCluster struct {
	Name   string         `json:"name"`
	Domain string         `json:"domain"`
	Sync   string         `json:"sync"`
	Reason string         `json:"reason,omitempty"`
	Counts map[string]int `json:"counts"`
}

// debugInput is a summary of an Input.
type debugInput struct {
	Namespace  string         `json:"namespace"`
	Management map[string]int `json:"management"`
	Clusters   []debugCluster `json:"clusters"`
	Failures   []debugFailure `json:"failures,omitempty"`
}

type debugFailure struct {
	Object  string `json:"object"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// debugObject is an object of the Output.
type debugObject struct {
	Kind        string            `json:"kind"`
	Cluster     string            `json:"cluster"`
	Namespace   string            `json:"namespace,omitempty"`
	Name        string            `json:"name"`
	Part        string            `json:"part"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Spec        any               `json:"spec,omitempty"`
	Parents     []string          `json:"parents,omitempty"`
}

// debugHandler serves contents of objects: it must stand behind a guard.
func (h *health) debugHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/snapshot", h.snapshot)
	for path, handler := range h.guarded {
		mux.Handle("POST "+path, handler)
	}
	return mux
}

// snapshot writes the latest translation: counts of the input, and the objects of
// the output except Secrets.
func (h *health) snapshot(w http.ResponseWriter, r *http.Request) {
	state := h.state()
	if state == nil {
		writeText(w, http.StatusServiceUnavailable, "not ready: no translation has finished yet")
		return
	}
	var body any
	switch part := r.URL.Query().Get("part"); part {
	case "":
		body = map[string]any{"input": inputOf(state.Input), "output": outputOf(state.Output), "issues": issuesOf(state.Output)}
	case "input":
		body = inputOf(state.Input)
	case "output":
		body = outputOf(state.Output)
	case "issues":
		body = issuesOf(state.Output)
	default:
		writeText(w, http.StatusBadRequest, "unknown part; choose input, output or issues")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(body) // an error means that the client is gone
}

func inputOf(in *snapshot.Input) debugInput {
	out := debugInput{Namespace: in.Management.Namespace, Management: lengths(in.Management), Clusters: []debugCluster{}}
	for _, c := range in.Clusters {
		out.Clusters = append(out.Clusters, debugCluster{
			Name: c.Name, Domain: c.DomainOrDefault(), Sync: c.Sync.String(), Reason: c.Reason, Counts: lengths(c),
		})
	}
	for _, f := range in.Failures {
		out.Failures = append(out.Failures, debugFailure{Object: f.Ref.String(), Code: string(f.Code), Message: f.Reason.String()})
	}
	return out
}

// lengths counts the objects of each kind, by the plural name of the kind.
func lengths(lists snapshot.ObjectLists) map[string]int {
	out := map[string]int{}
	for kind, list := range lists.Lists {
		out[kind.Info().Resource] = list.Len()
	}
	return out
}

func outputOf(output *snapshot.Output) []debugObject {
	out := []debugObject{}
	for part := range output.Parts.All() {
		for _, o := range part.Objects {
			if o.Ref.Kind == snapshot.Secret {
				continue
			}
			out = append(out, debugObject{
				Kind: o.Ref.Kind.String(), Cluster: o.Ref.Cluster, Namespace: o.Ref.Namespace, Name: o.Ref.Name, Part: part.Key,
				Labels: o.Content.Labels, Annotations: o.Content.Annotations, Spec: o.Content.Spec, Parents: refs(o.Content.Parents),
			})
		}
	}
	return out
}

func refs(of []snapshot.Ref) []string {
	var out []string
	for _, r := range of {
		out = append(out, r.String())
	}
	return out
}

// issuesOf is never nil, so that no issues are an empty list.
func issuesOf(output *snapshot.Output) []snapshot.Issue {
	return append([]snapshot.Issue{}, output.Issues...)
}
