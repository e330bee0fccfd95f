package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/testing"
	"sigs.k8s.io/gateway-api/pkg/consts"

	"istio.io/istio/pilot/pkg/config/kube/crd"
	"istio.io/istio/pilot/pkg/model"
	pilottest "istio.io/istio/pilot/test/xds"
	"istio.io/istio/pkg/cluster"
	"istio.io/istio/pkg/config/mesh"
	"istio.io/istio/pkg/kube"
	"istio.io/istio/pkg/log"
	"istio.io/istio/pkg/network"
	"istio.io/istio/pkg/test"
)

// world is one cluster as its istiod would see it.
type world struct {
	// Cluster and Network are those of the cluster.
	Cluster, Network string
	// Kubernetes and Istio are its objects, each a YAML document; all that Istio's own groups have are Istio's.
	Kubernetes, Istio []string
	// MeshConfig is YAML.
	MeshConfig string
	Proxies    []worldProxy
}

// worldProxy is a proxy that asks for its configuration.
type worldProxy struct {
	Name, Namespace, Address, Account string
	Labels                            map[string]string
	Gateway                           bool
}

// worlds reads worlds as lines of JSON, and prints for each a line with the configurations of its proxies by name, as the role
// xds prints them, or an error. They come from istiod's own registries and generators, in front of an API server in memory: that takes
// milliseconds.
func worlds([]string) int {
	for _, s := range log.Scopes() {
		s.SetOutputLevel(log.NoneLevel)
	}
	in, out := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return 0
		}
		var w world
		if err == nil {
			err = json.Unmarshal(line, &w)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "worlds: %v\n", err)
			return 1
		}
		answer := map[string]any{}
		if configs, err := w.configs(); err != nil {
			answer["error"] = err.Error()
		} else {
			answer["proxies"] = configs
		}
		if err := out.Encode(answer); err != nil {
			fmt.Fprintf(os.Stderr, "worlds: %v\n", err)
			return 1
		}
	}
}

func (w *world) configs() (map[string]any, error) {
	settings, err := mesh.ApplyMeshConfigDefaults(w.MeshConfig)
	if err != nil {
		return nil, fmt.Errorf("mesh config: %w", err)
	}
	objects, _, err := crd.ParseInputs(strings.Join(w.Istio, "\n---\n"))
	if err != nil {
		return nil, err
	}
	for i := range objects {
		objects[i].Domain = "cluster.local" // as the controller of a cluster sets it
	}
	out := map[string]any{}
	var inner error
	err = test.Wrap(func(t test.Failer) {
		s := pilottest.NewFakeDiscoveryServer(t, pilottest.FakeOptions{
			DefaultClusterName: cluster.ID(w.Cluster), KubernetesObjectString: strings.Join(w.Kubernetes, "\n---\n"),
			Configs: objects, MeshConfig: settings, KubeClientModifier: withBundleVersions,
		})
		for i := range w.Proxies {
			if out[w.Proxies[i].Name], inner = w.config(s, &w.Proxies[i]); inner != nil {
				return
			}
		}
	})
	return out, errors.Join(err, inner)
}

// withBundleVersions lets the CRDs of the Gateway API have the annotation without which istiod ignores some (Istio, minimumVersionFilter).
func withBundleVersions(c kube.Client) {
	metadata, ok := c.Metadata().(*fake.FakeMetadataClient)
	if !ok {
		return
	}
	metadata.PrependReactor("create", "customresourcedefinitions", func(action testing.Action) (bool, runtime.Object, error) {
		if create, ok := action.(testing.CreateAction); ok {
			if crd, ok := create.GetObject().(*metav1.PartialObjectMetadata); ok {
				crd.Annotations = map[string]string{consts.BundleVersionAnnotation: consts.BundleVersion}
			}
		}
		return false, nil, nil
	})
}

func (w *world) config(s *pilottest.FakeDiscoveryServer, p *worldProxy) (map[string][]json.RawMessage, error) {
	kind := model.SidecarProxy
	if p.Gateway {
		kind = model.Router
	}
	proxy := s.SetupProxy(&model.Proxy{
		Type: kind, IPAddresses: []string{p.Address}, ID: p.Name + "." + p.Namespace, ConfigNamespace: p.Namespace, Labels: p.Labels,
		DNSDomain: p.Namespace + ".svc.cluster.local",
		Metadata: &model.NodeMetadata{
			Namespace: p.Namespace, Labels: p.Labels, ServiceAccount: p.Account, ClusterID: cluster.ID(w.Cluster), Network: network.ID(w.Network),
		},
	})
	out := map[string][]json.RawMessage{"secrets": {}}
	for key, messages := range map[string][]proto.Message{
		"clusters": all(s.Clusters(proxy)), "endpoints": all(s.Endpoints(proxy)), "listeners": all(s.Listeners(proxy)), "routes": all(s.Routes(proxy)),
	} {
		slices.SortStableFunc(messages, func(a, b proto.Message) int { return strings.Compare(nameOf(a), nameOf(b)) })
		out[key] = []json.RawMessage{}
		for _, m := range messages {
			data, err := protojson.Marshal(m)
			if err != nil {
				return nil, fmt.Errorf("%s of %s: %w", key, p.Name, err)
			}
			out[key] = append(out[key], data)
		}
	}
	return out, nil
}

func all[T proto.Message](list []T) []proto.Message {
	out := make([]proto.Message, len(list))
	for i, m := range list {
		out[i] = m
	}
	return out
}
