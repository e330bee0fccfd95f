package offline

import (
	"iter"
	"path"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Files returns an Output as files that Load can read, by name: a folder for each
// cluster, and in it a file for each kind that has objects. Names use slashes.
func Files(out *snapshot.Output) (map[string][]byte, error) {
	files := map[string][]byte{}
	for folder, objects := range byFolder(out) {
		for kind, of := range byKind(objects) {
			data, err := snapshot.ObjectsYAML(of)
			if err != nil {
				return nil, err
			}
			files[path.Join(folder, strings.ToLower(kind.String())+".yaml")] = data
		}
	}
	return files, nil
}

// byFolder are the objects of an Output by folder, in the order of their Refs.
func byFolder(out *snapshot.Output) map[string][]*snapshot.Object {
	all := out.ByCluster()
	if objects, found := all[""]; found {
		delete(all, "")
		all[ManagementFolder] = objects
	}
	return all
}

// byKind divides objects that are in the order of their Refs.
func byKind(objects []*snapshot.Object) iter.Seq2[snapshot.Kind, []*snapshot.Object] {
	return func(yield func(snapshot.Kind, []*snapshot.Object) bool) {
		for len(objects) > 0 {
			kind, n := objects[0].Ref.Kind, 0
			for n < len(objects) && objects[n].Ref.Kind == kind {
				n++
			}
			if !yield(kind, objects[:n]) {
				return
			}
			objects = objects[n:]
		}
	}
}
