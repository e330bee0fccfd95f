package apply

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// content is a snapshot.Content with its digest, which is computed once for all
// clusters.
type content struct {
	*snapshot.Content
	// refs counts the wanted objects that share it; only turn uses it.
	refs int

	once   sync.Once
	taken  atomic.Bool
	digest mirror.Digest
	err    error

	related sync.Once
	// named are the relations once they were asked for, and noted the annotations with them. If named is set before, they are
	// instead of those of the Content.
	named *mirror.Relations
	noted map[string]string
}

// get returns the digest of the content; an error means that it cannot be written.
func (c *content) get() (mirror.Digest, error) {
	c.once.Do(func() {
		var spec any
		if spec, c.err = mirror.Plain(c.Spec); c.err == nil {
			c.digest = mirror.ObjectDigest(c.Labels, c.annotations(), spec)
		}
		c.taken.Store(true)
	})
	return c.digest, c.err
}

// contents are the contents that are wanted.
type contents map[*snapshot.Content]*content

func (m contents) acquire(of *snapshot.Content) *content {
	c := m[of]
	if c == nil {
		c = &content{Content: of}
		m[of] = c
	}
	c.refs++
	return c
}

func (m contents) release(of *snapshot.Content) {
	c := m[of]
	if c == nil {
		return
	}
	if c.refs--; c.refs == 0 {
		delete(m, of)
	}
}

// relations are those of the content; a nil content has none.
func (c *content) relations() *mirror.Relations {
	if c == nil {
		return &mirror.Relations{}
	}
	c.relate()
	return c.named
}

// annotations are those of an object with the content. Nobody changes them.
func (c *content) annotations() map[string]string {
	c.relate()
	return c.noted
}

// relate computes the relations, once for all clusters.
func (c *content) relate() {
	c.related.Do(func() {
		if c.named == nil {
			named := mirror.RelationsOf(&c.Relations)
			c.named = &named
		}
		c.noted = c.Annotations
		if text := c.named.Annotation(); text != "" {
			c.noted = map[string]string{snapshot.RelationsAnnotation: text}
			maps.Copy(c.noted, c.Annotations)
		}
	})
}

// body is what is sent to an API server.
type body struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       any      `json:"spec,omitempty"`
	Status     any      `json:"status,omitempty"`
}

type metadata struct {
	Name            string            `json:"name"`
	Namespace       string            `json:"namespace,omitempty"`
	ResourceVersion string            `json:"resourceVersion"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
}

func newBody(of mirror.ID, version string) body {
	info := of.Kind.Info()
	return body{
		APIVersion: info.GroupVersion().String(), Kind: info.Kind,
		Metadata: metadata{Name: of.Name, Namespace: of.Namespace, ResourceVersion: version},
	}
}

// objectBody is the apply document of an object in a cluster, with the labels
// by which the sink recognizes it.
func objectBody(of mirror.ID, version string, c *content, cluster string, plane snapshot.Plane) ([]byte, error) {
	b := newBody(of, version)
	b.Metadata.Labels = make(map[string]string, len(c.Labels)+3)
	maps.Copy(b.Metadata.Labels, c.Labels)
	b.Metadata.Labels[mirror.OwnerLabel(of.Kind)] = plane.Namespace
	if plane.ID != "" && mirror.OwnerLabel(of.Kind) == snapshot.NetworkingOwnerLabel {
		b.Metadata.Labels[snapshot.PlaneLabel] = plane.ID
	}
	b.Metadata.Labels[snapshot.ClusterLabel] = cluster
	b.Metadata.Annotations = c.annotations()
	b.Spec = c.Spec
	raw, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("%s %s/%s cannot be written as JSON: %w", of.Kind, of.Namespace, of.Name, err)
	}
	return raw, nil
}

// statusBody is the apply document of a status.
func statusBody(of mirror.ID, version string, value any) ([]byte, error) {
	b := newBody(of, version)
	b.Status = value
	raw, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("the status of %s %s/%s cannot be written as JSON: %w", of.Kind, of.Namespace, of.Name, err)
	}
	return raw, nil
}
