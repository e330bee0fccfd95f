// Package bundle collects what helps to find out what went wrong in a management plane: the states, events and logs of its
// pods in the clusters, without secrets. What cannot be collected is said, and is no error.
//
//   - bundle.go: the Bundle, which bounds what is collected
//   - cluster.go: what is read of a cluster
//   - redact.go: which texts are taken for secrets
package bundle

import (
	"encoding/json"
	"path"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Folder has what is collected beside the snapshot, in an archive or a folder. Its name begins with a dot, so that whoever
// opens the snapshot leaves it alone.
const Folder = ".support"

// Bundle is what was collected.
type Bundle struct {
	// Files are the contents by name, with slashes; all are below Folder.
	Files map[string][]byte
	Index Index

	// room is how many bytes may still be added.
	room int64
}

// Index lists what a bundle has, and what it does not have.
type Index struct {
	// Collected is when.
	Collected time.Time `json:"collected"`
	// Files are ascending by name.
	Files []File `json:"files"`
	// Missing is what could not be collected, in the order in which it was tried.
	Missing []Missing `json:"missing"`
}

// File is one that was collected.
type File struct {
	Name string `json:"name"`
	// Bytes is its size, before it is compressed.
	Bytes int64 `json:"bytes"`
	// Cut says what of it was left out, as a sentence; empty if nothing was.
	Cut string `json:"cut,omitempty"`
}

// Missing is something that could not be collected.
type Missing struct {
	// What is in words, such as "the logs of pod meshctl-0".
	What string `json:"what"`
	// Cluster is where; empty for the management cluster.
	Cluster string `json:"cluster,omitempty"`
	// Why is a sentence.
	Why string `json:"why"`
}

// New is an empty bundle that takes so many bytes, before they are compressed.
func New(now time.Time, bytes int64) *Bundle {
	return &Bundle{Files: map[string][]byte{}, Index: Index{Collected: now.UTC(), Files: []File{}, Missing: []Missing{}}, room: bytes}
}

// Add redacts a text and adds it, or as much of its end as there is room for.
func (b *Bundle) Add(name string, text []byte) {
	b.add(name, text, "")
}

// AddYAML is Add for a value.
func (b *Bundle) AddYAML(name string, value any) {
	data, err := snapshot.YAML(value)
	if err != nil {
		b.Miss(name, "", "it cannot be written as YAML: "+err.Error())
		return
	}
	b.Add(name, data)
}

// AddJSON is Add for a value. If what is left of it is no JSON any more, the bundle does not have it.
func (b *Bundle) AddJSON(name string, value any) {
	data, err := json.MarshalIndent(value, "", "  ")
	if err == nil {
		data = Redact(snapshot.EscapeJSON(data))
	}
	switch {
	case err != nil:
		b.Miss(name, "", "it cannot be written as JSON: "+err.Error())
	case !json.Valid(data):
		b.Miss(name, "", "it is no JSON any more without what may be a secret")
	case int64(len(data)) > b.room:
		b.Miss(name, "", "the bundle has no room left for it; allow more with --max-size")
	default:
		b.add(name, data, "")
	}
}

// Miss notes something that the bundle does not have.
func (b *Bundle) Miss(what, cluster, why string) {
	b.Index.Missing = append(b.Index.Missing, Missing{What: what, Cluster: cluster, Why: string(Redact([]byte(why)))})
}

func (b *Bundle) add(name string, text []byte, cut string) {
	text = Redact(text)
	if over := int64(len(text)) - b.room; over > 0 {
		text, cut = text[over:], "its beginning: the bundle has no room left for it"
	}
	b.room -= int64(len(text))
	name = path.Join(Folder, name)
	b.Files[name] = text
	b.Index.Files = append(b.Index.Files, File{Name: name, Bytes: int64(len(text)), Cut: cut})
}
