package translate

import (
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// printYAML writes one stream of documents; a comment before each names its cluster.
func printYAML(out io.Writer, objects []*snapshot.Object, statuses []*snapshot.Status) error {
	document := func(about string, encode func() ([]byte, error)) error {
		data, err := encode()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "---\n# %s\n%s", about, data)
		return err
	}
	for _, o := range objects {
		if err := document("cluster: "+clusterName(o.Ref.Cluster), o.YAML); err != nil {
			return err
		}
	}
	for _, s := range statuses {
		if err := document("status, cluster: "+clusterName(s.Ref.Cluster), s.YAML); err != nil {
			return err
		}
	}
	return nil
}

func clusterName(cluster string) string {
	if cluster == "" {
		return offline.ManagementFolder
	}
	return cluster
}

// Answer is what -o json prints.
type Answer struct {
	// Objects are the objects of each cluster, by its name; those of the management plane by "management".
	Objects map[string][]json.RawMessage `json:"objects"`
	// Statuses are those of objects in the management plane, with --statuses.
	Statuses []json.RawMessage `json:"statuses,omitempty"`
	// Issues are the problems that were found, the worst first.
	Issues []snapshot.Issue `json:"issues"`
}

func printJSON(out io.Writer, objects []*snapshot.Object, statuses []*snapshot.Status, issues []snapshot.Issue) error {
	a := Answer{Objects: map[string][]json.RawMessage{}, Issues: issues}
	if a.Issues == nil {
		a.Issues = []snapshot.Issue{}
	}
	for _, o := range objects {
		data, err := asJSON(o.YAML())
		if err != nil {
			return err
		}
		name := clusterName(o.Ref.Cluster)
		a.Objects[name] = append(a.Objects[name], data)
	}
	for _, s := range statuses {
		data, err := asJSON(s.YAML())
		if err != nil {
			return err
		}
		a.Statuses = append(a.Statuses, data)
	}
	return cmdutil.PrintJSON(out, a)
}

func asJSON(data []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return yaml.YAMLToJSON(data)
}

// statusesFile has the statuses.
const statusesFile = "statuses.yaml"

// writeFolder writes a file for each cluster and kind.
func writeFolder(dir string, objects []*snapshot.Object, statuses []*snapshot.Status) error {
	files, err := offline.Files(&snapshot.Output{Parts: snapshot.ListOf([]*snapshot.Part{{Objects: objects}})})
	if err != nil {
		return err
	}
	if len(statuses) > 0 {
		if files[statusesFile], err = snapshot.StatusesYAML(statuses); err != nil {
			return err
		}
	}
	return cmdutil.WriteFolder(dir, "translate", files)
}
