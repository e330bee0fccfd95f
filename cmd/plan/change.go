package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/admission"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/offline"
)

// standardInput is the name of the file -.
const standardInput = "standard input"

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
			data, err := offline.ReadAll(o.Streams.In)
			if err != nil {
				return nil, nil, fmt.Errorf("reading standard input: %w", err)
			}
			read(standardInput, data)
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
		data, err := offline.ReadFile(name)
		if err != nil {
			return fmt.Errorf("%s cannot be read: %w", name, err)
		}
		yield(name, data)
		return nil
	}
	folder := offline.Bounded(offline.Dir(name))
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

// edits are the manifests to write or, with --delete, to delete.
func (o *Options) edits(manifests []offline.Manifest) []explain.Edit {
	out := make([]explain.Edit, len(manifests))
	for i, m := range manifests {
		out[i] = explain.Edit{Ref: m.Ref}
		if !o.Delete {
			out[i].Object = m.Object
		}
	}
	return out
}
