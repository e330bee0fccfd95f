package offline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// document is one object of a file.
type document struct {
	at   place
	gvk  schema.GroupVersionKind
	json []byte
}

// place is a position in a folder.
type place struct {
	file string
	// doc counts the documents of the file from 1.
	doc int
	// first is the line of the file on which the document begins, from 1.
	first int
	// text is the document, to find lines in.
	text []byte
	// path leads to the object inside the document: none, or that of an item of a List.
	path []string
}

// errorf makes an error that begins with file and line of the field at path
// (of the object, if the path is empty).
func (p place) errorf(path []string, format string, args ...any) error {
	line := p.line(append(append([]string(nil), p.path...), path...))
	return fmt.Errorf("%s:%d: document %d: %w", p.file, line, p.doc, fmt.Errorf(format, args...))
}

// line finds the line of a field, or of the deepest part of its path that exists.
func (p place) line(path []string) int {
	var root yamlv3.Node
	if err := yamlv3.Unmarshal(p.text, &root); err != nil || len(root.Content) == 0 {
		return p.first
	}
	node, line := root.Content[0], root.Content[0].Line
	for _, step := range path {
		key, value := child(node, step)
		if key == nil {
			break
		}
		node, line = value, key.Line
	}
	return p.first + line - 1
}

// child is the member of a mapping or the item of a sequence, and the node
// whose line a reader would call its own.
func child(node *yamlv3.Node, step string) (key, value *yamlv3.Node) {
	switch node.Kind {
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i], node.Content[i+1]
			}
		}
	case yamlv3.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i < len(node.Content) {
			return node.Content[i], node.Content[i]
		}
	case yamlv3.AliasNode:
		return child(node.Alias, step)
	}
	return nil, nil
}

// split cuts a file into its documents, without those that are empty.
func split(file string, data []byte) []place {
	var (
		places []place
		text   bytes.Buffer
		first  = 1
	)
	flush := func() {
		if len(bytes.TrimSpace(withoutComments(text.Bytes()))) > 0 {
			places = append(places, place{
				file: file, doc: len(places) + 1, first: first, text: bytes.Clone(text.Bytes()),
			})
		}
		text.Reset()
	}
	for i, line := range bytes.SplitAfter(data, []byte("\n")) {
		trimmed := bytes.TrimRight(line, " \t\r\n")
		if bytes.Equal(trimmed, []byte("---")) || bytes.HasPrefix(line, []byte("--- ")) {
			flush()
			first = i + 2
			continue
		}
		text.Write(line)
	}
	flush()
	return places
}

// withoutComments leaves out the lines that are comments only.
func withoutComments(text []byte) []byte {
	var out []byte
	for line := range bytes.Lines(text) {
		if !bytes.HasPrefix(bytes.TrimSpace(line), []byte("#")) {
			out = append(out, line...)
		}
	}
	return out
}

// header is what every object begins with; items make it a List.
type header struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Items      []json.RawMessage `json:"items"`
}

// parse reads the documents of a file and the items of its Lists. It returns an
// error for each document that cannot be read, and all others.
func parse(file string, data []byte) ([]document, []error) {
	var (
		documents []document
		errs      []error
	)
	for _, at := range split(file, data) {
		raw, head, err := read(at)
		var found []document
		if err == nil {
			found, err = unpack(at, raw, head)
		}
		if err != nil {
			errs = append(errs, err)
		}
		documents = append(documents, found...)
	}
	return documents, errs
}

// read gives a document as JSON, and its header. JSON is read without the parser of YAML, which takes
// ten times as long.
func read(at place) (raw []byte, head header, err error) {
	raw = at.text
	if items, recorded := splitList(raw); recorded {
		return raw, header{APIVersion: "v1", Kind: "List", Items: items}, nil
	}
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) && json.Unmarshal(raw, &head) == nil {
		return raw, head, nil
	}
	if raw, err = yaml.YAMLToJSONStrict(at.text); err != nil {
		return nil, head, syntaxError(at, err)
	}
	head, err = headerOf(at, raw)
	return raw, head, err
}

func headerOf(at place, raw []byte) (head header, err error) {
	if err := json.Unmarshal(raw, &head); err != nil {
		return header{}, at.errorf(nil, "is not a Kubernetes object; begin it with apiVersion and kind")
	}
	return head, nil
}

// recordedHeader is how an object begins that Save has written.
var recordedHeader = regexp.MustCompile(`^\{"apiVersion":"([^"\\]+)","kind":"([^"\\]+)"[,}]`)

// itemHeader reads how an item of a List begins. Of what Save has written, the rest is not read.
func itemHeader(at place, raw []byte) (header, error) {
	if m := recordedHeader.FindSubmatch(raw); m != nil && !bytes.HasSuffix(m[2], []byte("List")) {
		return header{APIVersion: string(m[1]), Kind: string(m[2])}, nil
	}
	return headerOf(at, raw)
}

// unpack makes one document of an object and several of a List.
func unpack(at place, raw []byte, head header) ([]document, error) {
	if head.Items != nil && strings.HasSuffix(head.Kind, "List") {
		var (
			documents = make([]document, 0, len(head.Items))
			errs      []error
		)
		for i, item := range head.Items {
			inner := at
			inner.path = append(append([]string(nil), at.path...), "items", strconv.Itoa(i))
			itsHead, err := itemHeader(inner, item)
			var found []document
			if err == nil {
				found, err = unpack(inner, item, itsHead)
			}
			errs = append(errs, err)
			documents = append(documents, found...)
		}
		return documents, errors.Join(errs...)
	}
	if head.Kind == "" || head.APIVersion == "" {
		return nil, at.errorf(nil, "has no apiVersion or no kind; begin it with both")
	}
	version, err := schema.ParseGroupVersion(head.APIVersion)
	if err != nil {
		return nil, at.errorf([]string{"apiVersion"}, "apiVersion %q is not of the form group/version", head.APIVersion)
	}
	return []document{{at: at, gvk: version.WithKind(head.Kind), json: raw}}, nil
}

// yamlLine finds the line that YAML parsers put into their messages.
var yamlLine = regexp.MustCompile(`(?:error converting YAML to JSON: )?(?:yaml: )?(?:unmarshal errors:\s+)?line (\d+): `)

// syntaxError turns a parser's error, whose lines count from the document's
// begin, into one that counts from the file's.
func syntaxError(at place, err error) error {
	text := err.Error()
	line := at.first
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		// The pattern matches digits only.
		n, _ := strconv.Atoi(m[1])
		line += n - 1
		text = strings.Replace(text, m[0], "", 1)
	}
	text = strings.TrimPrefix(text, "error converting YAML to JSON: ")
	return fmt.Errorf("%s:%d: document %d: not YAML: %s", at.file, line, at.doc, strings.TrimPrefix(text, "yaml: "))
}
