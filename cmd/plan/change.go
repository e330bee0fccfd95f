package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/admission"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// read reads the files. What an API server would refuse is an error.
func (o *Options) read(checker *admission.Checker) ([]offline.Manifest, map[schema.GroupKind]int, error) {
	var manifests []offline.Manifest
	var errs []error
	others := map[schema.GroupKind]int{}
	read := func(name string, data []byte) {
		list, left, err := offline.Manifests(name, data)
		errs = append(errs, err)
		for kind, n := range left {
			others[kind] += n
		}
		for i := range list {
			if first := slices.IndexFunc(manifests, func(m offline.Manifest) bool { return m.Ref == list[i].Ref }); first >= 0 {
				errs = append(errs, list[i].Errorf("metadata", "%s is in the files twice; remove one of them", list[i].Ref))
				continue
			}
			if !o.Delete { // of what is deleted, only the name matters
				errs = append(errs, check(checker, &list[i]))
			}
			manifests = append(manifests, list[i])
		}
	}
	for _, name := range o.Files {
		if name == "-" {
			data, err := io.ReadAll(o.Streams.In)
			if err != nil {
				return nil, nil, fmt.Errorf("reading standard input: %w", err)
			}
			read("standard input", data)
			continue
		}
		if err := eachFile(name, read); err != nil {
			return nil, nil, err
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	if len(manifests) == 0 {
		return nil, nil, cmdutil.NotFoundErrorf("%s: no manifest of a kind of the management plane, such as TrafficPolicy", strings.Join(o.Files, ", "))
	}
	return manifests, others, nil
}

func check(checker *admission.Checker, m *offline.Manifest) error {
	complaints, err := checker.Check(m.Written)
	if err != nil {
		return m.Errorf("", "%w", err)
	}
	errs := make([]error, len(complaints))
	for i, c := range complaints {
		errs[i] = m.Errorf(c.Field, "%s: %s", m.Ref, c)
	}
	return errors.Join(errs...)
}

// eachFile yields a file, or the manifests in a folder and below it.
func eachFile(name string, yield func(name string, data []byte)) error {
	info, err := os.Stat(name)
	if err != nil {
		return cmdutil.NotFoundErrorf("%s cannot be read: %w", name, err)
	}
	if !info.IsDir() {
		data, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("%s cannot be read: %w", name, err)
		}
		yield(name, data)
		return nil
	}
	folder := os.DirFS(name)
	return fs.WalkDir(folder, ".", func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(path.Ext(at))) {
			return err
		}
		data, err := fs.ReadFile(folder, at)
		if err != nil {
			return fmt.Errorf("%s cannot be read: %w", filepath.Join(name, at), err)
		}
		yield(filepath.Join(name, at), data)
		return nil
	})
}

// change applies or deletes the manifests.
func (o *Options) change(in *snapshot.Input, manifests []offline.Manifest) (*snapshot.Input, []explain.PlannedChange, error) {
	changes := make([]explain.PlannedChange, 0, len(manifests))
	for i := range manifests {
		m := &manifests[i]
		stored := in.Find(m.Ref)
		change := explain.PlannedChange{Ref: m.Ref, Verb: explain.Created}
		switch {
		case o.Delete && stored == nil:
			change.Verb = explain.Unchanged
		case o.Delete:
			change.Verb, in = explain.Deleted, in.Without(m.Ref)
		default:
			same, err := o.succeed(m.Object, stored)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", m.Ref, err)
			}
			if same {
				change.Verb = explain.Unchanged
				break
			}
			if stored != nil {
				change.Verb = explain.Changed
			}
			if in, err = in.With("", m.Object); err != nil {
				return nil, nil, err
			}
		}
		changes = append(changes, change)
	}
	return in, changes, nil
}

// succeed gives an object what an API server gives it: the status, age and generation of the one that
// it replaces. It reports whether both are the same.
func (o *Options) succeed(object, stored snapshot.APIObject) (same bool, err error) {
	if stored == nil {
		object.SetCreationTimestamp(metav1.NewTime(o.Now()))
		object.SetGeneration(1)
		return false, nil
	}
	object.SetCreationTimestamp(stored.GetCreationTimestamp())
	object.SetGeneration(stored.GetGeneration())
	object.SetUID(stored.GetUID())
	was, err := parts(stored)
	if err != nil {
		return false, err
	}
	is, err := parts(object)
	if err != nil {
		return false, err
	}
	if !equality.Semantic.DeepEqual(was["spec"], is["spec"]) {
		object.SetGeneration(stored.GetGeneration() + 1)
	} else if equality.Semantic.DeepEqual(stored.GetLabels(), object.GetLabels()) && equality.Semantic.DeepEqual(annotationsOf(stored), annotationsOf(object)) {
		return true, nil
	}
	status, err := json.Marshal(map[string]any{"status": was["status"]})
	if err != nil {
		return false, err
	}
	return false, json.Unmarshal(status, object)
}

// parts are the fields of an object.
func parts(o snapshot.APIObject) (map[string]any, error) {
	return runtime.DefaultUnstructuredConverter.ToUnstructured(o)
}

// annotationsOf leaves out what kubectl apply writes.
func annotationsOf(o snapshot.APIObject) map[string]string {
	out := map[string]string{}
	for key, value := range o.GetAnnotations() {
		if key != "kubectl.kubernetes.io/last-applied-configuration" {
			out[key] = value
		}
	}
	return out
}
