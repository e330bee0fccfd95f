package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// xdsStream is one stream of discovery requests to a control plane.
type xdsStream struct {
	stream discovery.AggregatedDiscoveryService_StreamAggregatedResourcesClient
	node   *core.Node
	kinds  map[string]*xdsKind // by type URL
}

// xdsKind is one type of resource and what was received of it.
type xdsKind struct {
	// all is set if the control plane decides which resources there are; otherwise
	// they are requested by name.
	all bool
	// wanted are the names that others refer to, asked those of the last request.
	wanted, asked  map[string]bool
	version, nonce string
	// answered is true once there was an answer, which may have been empty.
	answered  bool
	resources map[string]proto.Message
}

func newXDSStream(stream discovery.AggregatedDiscoveryService_StreamAggregatedResourcesClient, node *core.Node) *xdsStream {
	s := &xdsStream{stream: stream, node: node, kinds: map[string]*xdsKind{}}
	for _, url := range []string{clusterType, endpointType, listenerType, routeType, secretType} {
		s.kinds[url] = &xdsKind{
			all:       url == clusterType || url == listenerType,
			wanted:    map[string]bool{},
			resources: map[string]proto.Message{},
		}
	}
	return s
}

// collect returns when every resource that another one refers to has been seen.
func (s *xdsStream) collect() error {
	for _, url := range []string{clusterType, listenerType} {
		if err := s.ask(url, ""); err != nil {
			return err
		}
	}
	for {
		missing := s.missing()
		if len(missing) == 0 {
			return s.stream.CloseSend()
		}
		response, err := s.stream.Recv()
		if err != nil {
			return fmt.Errorf("%w; still missing: %s", err, strings.Join(missing, ", "))
		}
		if err := s.take(response); err != nil {
			return err
		}
	}
}

// take stores an answer, acknowledges it, and requests what it refers to.
func (s *xdsStream) take(response *discovery.DiscoveryResponse) error {
	kind := s.kinds[response.TypeUrl]
	if kind == nil {
		return fmt.Errorf("was given %s, which it did not ask for", response.TypeUrl)
	}
	got := map[string]proto.Message{}
	for _, resource := range response.Resources {
		message, err := resource.UnmarshalNew()
		if err != nil {
			return fmt.Errorf("%s: %w", response.TypeUrl, err)
		}
		got[nameOf(message)] = message
	}
	if kind.all {
		kind.resources = got
	} else {
		// An answer to names may hold only those that changed.
		maps.Copy(kind.resources, got)
	}
	kind.answered, kind.version = true, response.VersionInfo
	if err := s.wantReferences(); err != nil {
		return err
	}
	if err := s.ask(response.TypeUrl, response.Nonce); err != nil {
		return err
	}
	for _, url := range []string{endpointType, routeType, secretType} {
		if other := s.kinds[url]; !maps.Equal(other.wanted, other.asked) {
			if err := s.ask(url, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// ask requests a type; with the nonce of an answer it acknowledges that, too.
func (s *xdsStream) ask(url, nonce string) error {
	kind := s.kinds[url]
	kind.asked = maps.Clone(kind.wanted)
	if nonce == "" {
		nonce = kind.nonce
	}
	kind.nonce = nonce
	return s.stream.Send(&discovery.DiscoveryRequest{
		Node: s.node, TypeUrl: url, VersionInfo: kind.version, ResponseNonce: nonce,
		ResourceNames: slices.Sorted(maps.Keys(kind.asked)),
	})
}

// wantReferences computes which names are referred to.
func (s *xdsStream) wantReferences() error {
	wanted := map[string]map[string]bool{endpointType: {}, routeType: {}, secretType: {}}
	for _, url := range []string{clusterType, listenerType} {
		for _, message := range s.kinds[url].resources {
			if err := references(message, func(url, name string) { wanted[url][name] = true }); err != nil {
				return err
			}
		}
	}
	for url, names := range wanted {
		s.kinds[url].wanted = names
		maps.DeleteFunc(s.kinds[url].resources, func(name string, _ proto.Message) bool { return !names[name] })
	}
	return nil
}

// missing names what is referred to and was not received.
func (s *xdsStream) missing() []string {
	var out []string
	for _, url := range slices.Sorted(maps.Keys(s.kinds)) {
		kind := s.kinds[url]
		if kind.all && !kind.answered {
			out = append(out, "all of "+url)
		}
		for _, name := range slices.Sorted(maps.Keys(kind.wanted)) {
			if kind.resources[name] == nil {
				out = append(out, url+" "+name)
			}
		}
	}
	return out
}

// config is what is printed: each list ascending by name.
func (s *xdsStream) config() (map[string][]json.RawMessage, error) {
	out := map[string][]json.RawMessage{}
	for key, url := range map[string]string{
		"clusters": clusterType, "endpoints": endpointType, "listeners": listenerType, "routes": routeType, "secrets": secretType,
	} {
		out[key] = []json.RawMessage{}
		resources := s.kinds[url].resources
		for _, name := range slices.Sorted(maps.Keys(resources)) {
			data, err := protojson.Marshal(withoutKeys(resources[name]))
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", url, name, err)
			}
			out[key] = append(out[key], data)
		}
	}
	return out, nil
}
