package offline

import (
	"path"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Files returns an Output as files that Load can read, by name: a folder for each
// cluster, and in it a file for each kind that has objects. Names use slashes.
func Files(out *snapshot.Output) (map[string][]byte, error) {
	files := map[string][]byte{}
	for cluster, objects := range out.ByCluster() {
		if cluster == "" {
			cluster = ManagementFolder
		}
		for len(objects) > 0 {
			kind, n := objects[0].Ref.Kind, 0
			for n < len(objects) && objects[n].Ref.Kind == kind {
				n++
			}
			data, err := snapshot.ObjectsYAML(objects[:n])
			if err != nil {
				return nil, err
			}
			files[path.Join(cluster, strings.ToLower(kind.String())+".yaml")] = data
			objects = objects[n:]
		}
	}
	return files, nil
}
