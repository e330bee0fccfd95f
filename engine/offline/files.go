package offline

import (
	"path"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Files lays an Output out as Load would read it: for each cluster a folder,
// in it for each kind a file. Names use slashes. A kind without objects has no
// file.
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
