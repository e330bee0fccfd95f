package offline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// The names of the files that Save writes beside those of objects. A folder that begins with a dot
// is not read by Load.
const (
	managementFile = "management.yaml"
	clusterFile    = "cluster.yaml"
	// OutputsFolder has what followed from the input when it was saved.
	OutputsFolder = ".outputs"
)

// Save returns what was recorded, and what follows from it, as files from which Load reads the same
// Input. Names use slashes.
func Save(recorded *Snapshot, out *snapshot.Output) (map[string][]byte, error) {
	in := recorded.Input
	files := map[string][]byte{}
	for _, c := range in.Clusters {
		if c.Name == ManagementFolder {
			return nil, fmt.Errorf("cluster %s cannot be saved: that is the name of the folder of the management plane; register it under another name", c.Name)
		}
		if err := saveLists(files, c.Name, c); err != nil {
			return nil, err
		}
		data, err := described("Cluster", describedCluster(c))
		if err != nil {
			return nil, err
		}
		files[path.Join(c.Name, clusterFile)] = data
	}
	if err := saveLists(files, ManagementFolder, in.Management); err != nil {
		return nil, err
	}
	data, err := described("Management", describedManagement(recorded))
	if err != nil {
		return nil, err
	}
	files[path.Join(ManagementFolder, managementFile)] = data
	outputs, err := Files(out)
	if err != nil {
		return nil, err
	}
	for name, data := range outputs {
		files[path.Join(OutputsFolder, name)] = data
	}
	return files, nil
}

// saveLists writes a file for each kind that has objects.
func saveLists(files map[string][]byte, folder string, lists snapshot.ObjectLists) error {
	for kind, list := range lists.Lists {
		var b bytes.Buffer
		for i := range list.Len() {
			data, err := whole(kind, redacted(list.At(i)))
			if err != nil {
				return fmt.Errorf("%s: %w", snapshot.RefOf(kind, list.At(i)), err)
			}
			b.WriteString("---\n")
			b.Write(data)
		}
		if b.Len() > 0 {
			files[path.Join(folder, strings.ToLower(kind.String())+".yaml")] = b.Bytes()
		}
	}
	return nil
}

// whole is an object with all that is known of it.
func whole(kind snapshot.Kind, object any) ([]byte, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	info := kind.Info()
	for name, value := range map[string]string{"apiVersion": info.GroupVersion().String(), "kind": info.Kind} {
		if fields[name], err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	return snapshot.YAML(fields)
}

// described is a document that describes a folder.
func described(kind string, spec map[string]any) ([]byte, error) {
	return snapshot.YAML(map[string]any{"apiVersion": selfGroup.String(), "kind": kind, "spec": spec})
}

func describedCluster(c *snapshot.Cluster) map[string]any {
	spec := map[string]any{"domain": c.Domain, "sync": c.Sync, "reason": c.Reason, "webhooksUnknown": c.WebhooksUnknown}
	var list []unread
	for _, u := range c.Unread {
		list = append(list, unread(u))
	}
	if len(list) > 0 {
		spec["unread"] = list
	}
	return spec
}

func describedManagement(recorded *Snapshot) map[string]any {
	in := recorded.Input
	spec := map[string]any{
		"namespace": in.Management.Namespace, "refuseIntersecting": in.RefuseIntersecting, "planeID": in.Management.PlaneID,
		"version": in.Version, "recorded": recorded.Recorded.UTC().Format(time.RFC3339), "served": recorded.Served,
	}
	var failures []failure
	for _, f := range in.Failures {
		failures = append(failures, failure(f))
	}
	var all []roots
	for _, r := range in.Roots {
		of := roots{VirtualMesh: r.VirtualMesh, Signs: r.Signs, Problem: r.Problem}
		for _, each := range r.Roots {
			of.Roots = append(of.Roots, root(*each))
		}
		all = append(all, of)
	}
	if len(failures) > 0 {
		spec["failures"] = failures
	}
	if len(all) > 0 {
		spec["roots"] = all
	}
	if len(in.Gone) > 0 {
		spec["gone"] = in.Gone
	}
	return spec
}
