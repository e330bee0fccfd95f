package snapshot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/yaml"
)

// manifest is an object as users write it.
type manifest struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       any      `json:"spec,omitempty"`
	Status     any      `json:"status,omitempty"`
}

type metadata struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

func manifestOf(r Ref) manifest {
	info := r.Kind.Info()
	return manifest{
		APIVersion: info.GroupVersion().String(),
		Kind:       info.Kind,
		Metadata:   metadata{Name: r.Name, Namespace: r.Namespace},
	}
}

// YAML is the object as a sink writes it, as one document without separator.
func (o *Object) YAML() ([]byte, error) { return marshal(o.Ref, o.manifest()) }

// JSON is the object as a sink writes it, on one line.
func (o *Object) JSON() ([]byte, error) {
	data, err := json.Marshal(o.manifest())
	if err != nil {
		return nil, fmt.Errorf("%s: write as JSON: %w", o.Ref, err)
	}
	return EscapeJSON(data), nil
}

func (o *Object) manifest() manifest {
	m := manifestOf(o.Ref)
	m.Metadata.Labels = maps.Clone(o.Content.Labels)
	if m.Metadata.Labels == nil {
		m.Metadata.Labels = map[string]string{}
	}
	m.Metadata.Labels[ClusterLabel] = o.Ref.Cluster
	m.Metadata.Annotations = o.Content.Annotations
	m.Spec = o.Content.Spec
	return m
}

// YAML is the status with the name of its object, as one document without separator.
func (s *Status) YAML() ([]byte, error) {
	m := manifestOf(s.Ref)
	data, err := json.Marshal(s.Value)
	if err == nil {
		err = json.Unmarshal(data, &m.Status)
	}
	if err != nil {
		return nil, fmt.Errorf("the status of %s: write as YAML: %w", s.Ref, err)
	}
	m.Status = Undated(m.Status)
	return marshal(s.Ref, m)
}

func marshal(r Ref, m manifest) ([]byte, error) {
	data, err := YAML(m)
	if err != nil {
		return nil, fmt.Errorf("%s: write as YAML: %w", r, err)
	}
	return data, nil
}

// ObjectsYAML writes objects as one stream of documents, in the order given.
func ObjectsYAML(objects []*Object) ([]byte, error) { return stream(objects, (*Object).YAML) }

// StatusesYAML writes statuses as one stream of documents, in the order given.
func StatusesYAML(statuses []*Status) ([]byte, error) { return stream(statuses, (*Status).YAML) }

func stream[T any](list []T, encode func(T) ([]byte, error)) ([]byte, error) {
	var out bytes.Buffer
	for i, each := range list {
		data, err := encode(each)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(data)
	}
	return out.Bytes(), nil
}

// ByCluster sorts the objects by Ref into the clusters they are for, without those that are Foreign.
func (o *Output) ByCluster() map[string][]*Object {
	clusters := map[string][]*Object{}
	for object := range o.Written {
		clusters[object.Ref.Cluster] = append(clusters[object.Ref.Cluster], object)
	}
	for _, objects := range clusters {
		slices.SortFunc(objects, func(a, b *Object) int { return a.Ref.Compare(b.Ref) })
	}
	return clusters
}

// YAML writes any value as YAML, with the field names of its JSON. Characters
// that act on a terminal come out as escapes.
func YAML(value any) ([]byte, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	if bytes.ContainsFunc(data, acts) || bytes.Contains(data, []byte(`\u202`)) { // which encoding/json has escaped
		return escapedYAML(data)
	}
	return yaml.JSONToYAML(data)
}

// Manifest is an object of an API type as one document without separator, with
// its kind, and without what only an API server needs.
func Manifest(r Ref, object any) ([]byte, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("%s: write as YAML: %w", r, err)
	}
	var fields struct {
		Metadata map[string]any `json:"metadata"`
		Spec     any            `json:"spec,omitempty"`
		Status   any            `json:"status,omitempty"`
	}
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("%s: write as YAML: %w", r, err)
	}
	for _, field := range []string{"managedFields", "uid", "selfLink"} {
		delete(fields.Metadata, field)
	}
	info := r.Kind.Info()
	m := map[string]any{"apiVersion": info.GroupVersion().String(), "kind": info.Kind, "metadata": fields.Metadata}
	if fields.Spec != nil {
		m["spec"] = fields.Spec
	}
	if fields.Status != nil {
		m["status"] = fields.Status
	}
	out, err := YAML(m)
	if err != nil {
		return nil, fmt.Errorf("%s: write as YAML: %w", r, err)
	}
	return out, nil
}
