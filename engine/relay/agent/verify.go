package agent

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// verifier answers what the hub asks for to compare: what the agent reports, and what is in the cluster now.
type verifier struct{ replica *replica }

// answer is the answer to a request; nil if that is none to compare.
func (v verifier) answer(ctx context.Context, r *relayv1.Request) *relayv1.Answer {
	target, err := url.ParseRequestURI(r.GetPath())
	if err != nil || target.Path != relay.VerifyPath || r.GetMethod() != http.MethodGet {
		return nil
	}
	listed, unlisted, err := v.replica.local.List(ctx)
	if err != nil {
		return &relayv1.Answer{Error: "the cluster cannot be listed: " + err.Error()}
	}
	var body any
	if name := target.Query().Get(relay.VerifyKind); name != "" {
		body = v.kind(name, listed, unlisted)
	} else {
		body = v.all(listed, unlisted)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return &relayv1.Answer{Error: err.Error()}
	}
	if len(raw) > maxAnswer {
		return &relayv1.Answer{Error: "there are too many objects of the kind to name them"}
	}
	return &relayv1.Answer{Status: http.StatusOK, ContentType: "application/json", Body: raw}
}

func (v verifier) all(listed *snapshot.Cluster, unlisted map[snapshot.Kind]string) relay.Verification {
	out := relay.Verification{Cluster: relay.Sums{}, Unlisted: map[string]string{}}
	for kind, list := range listed.Lists {
		if why := unlisted[kind]; why != "" {
			out.Unlisted[relay.KindName(kind)] = why
			continue
		}
		out.Cluster[relay.KindName(kind)], _ = relay.HashesOf(encoded(list))
	}
	v.replica.mu.Lock()
	defer v.replica.mu.Unlock()
	v.replica.look()
	out.Agent = v.replica.sender.Sums()
	return out
}

func (v verifier) kind(name string, listed *snapshot.Cluster, unlisted map[snapshot.Kind]string) relay.VerifiedKind {
	var out relay.VerifiedKind
	if kind, known := relay.KindNamed(name); known && unlisted[kind] == "" {
		if list := listed.List(kind); list != nil {
			_, out.Cluster = relay.HashesOf(encoded(list))
		}
	}
	v.replica.mu.Lock()
	defer v.replica.mu.Unlock()
	v.replica.look()
	out.Agent = v.replica.sender.Hashes(name)
	return out
}

// encoded are objects as they are reported: those that cannot be sent are not.
func encoded(list snapshot.ObjectList) map[relay.Key][]byte {
	out := make(map[relay.Key][]byte, list.Len())
	for i := range list.Len() {
		o := list.At(i)
		if raw, err := relay.Encode(o); err == nil && len(raw) <= relay.MaxObject {
			out[relay.Key{Namespace: o.GetNamespace(), Name: o.GetName()}] = raw
		}
	}
	return out
}
