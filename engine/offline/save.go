package offline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// The names of the files that Save writes beside those of objects. A folder that begins with a dot
// is not read by Load.
const (
	managementFile = "management.yaml"
	clusterFile    = "cluster.yaml"
	// OutputsFolder has what followed from the input when it was saved.
	OutputsFolder = ".outputs"
	// changesFile has the timeline of changes that a server had kept.
	changesFile = ".changes/" + snapshot.ChangesKey
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
	if len(recorded.Changes) > 0 {
		text, err := recorded.Changes.JSON()
		if err != nil {
			return nil, err
		}
		files[changesFile] = []byte(text)
	}
	return files, saveOutputs(files, out)
}

// saveLists writes a file for each kind that has objects.
func saveLists(files map[string][]byte, folder string, lists snapshot.ObjectLists) error {
	for kind, list := range lists.Lists {
		data, err := listOf(list.Len(), func(i int) ([]byte, error) { return whole(kind, redacted(list.At(i))) })
		if err != nil {
			return err
		}
		if list.Len() > 0 {
			files[listFile(folder, kind)] = data
		}
	}
	return nil
}

// saveOutputs writes the objects of an Output: a folder for each cluster, and in it a file for each
// kind.
func saveOutputs(files map[string][]byte, out *snapshot.Output) error {
	for folder, objects := range byFolder(out) {
		for kind, of := range byKind(objects) {
			data, err := listOf(len(of), func(i int) ([]byte, error) { return of[i].JSON() })
			if err != nil {
				return err
			}
			files[listFile(path.Join(OutputsFolder, folder), kind)] = data
		}
	}
	return nil
}

func listFile(folder string, kind snapshot.Kind) string {
	return path.Join(folder, strings.ToLower(kind.String())+".json")
}

// How a List begins and ends that listOf writes.
const (
	listHead = `{"apiVersion":"v1","kind":"List","items":[`
	listTail = "\n]}\n"
)

// listOf is a List with an object on each line: JSON is read and written ten times as fast as YAML,
// and a line is found by grep.
func listOf(n int, object func(int) ([]byte, error)) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(listHead)
	for i := range n {
		data, err := object(i)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		b.Write(data)
	}
	b.WriteString(listTail)
	return b.Bytes(), nil
}

// splitList gives the items of what listOf has written, and false for anything else. It does not look
// into the lines: JSON has no line breaks in values, so lines that are objects each are the items.
func splitList(text []byte) (items []json.RawMessage, ok bool) {
	rest, begins := bytes.CutPrefix(text, []byte(listHead+"\n"))
	rest, ends := bytes.CutSuffix(rest, []byte(listTail))
	if !begins || !ends {
		return nil, false
	}
	for line := range bytes.SplitSeq(rest, []byte(",\n")) {
		if !bytes.HasPrefix(line, []byte("{")) || !bytes.HasSuffix(line, []byte("}")) || bytes.IndexByte(line, '\n') >= 0 {
			return nil, false
		}
		items = append(items, line)
	}
	return items, true
}

// whole is an object with all that is known of it, as JSON.
func whole(kind snapshot.Kind, object snapshot.APIObject) ([]byte, error) {
	if kind := object.GetObjectKind(); !kind.GroupVersionKind().Empty() { // not as an informer gives it
		object = object.DeepCopyObject().(snapshot.APIObject)
		object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	data, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", snapshot.RefOf(kind, object), err)
	}
	info := kind.Info()
	head := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,`, info.GroupVersion(), info.Kind)
	return append([]byte(head), snapshot.EscapeJSON(data)[1:]...), nil
}

// described is a document that describes a folder.
func described(kind string, spec map[string]any) ([]byte, error) {
	return snapshot.YAML(map[string]any{"apiVersion": selfGroup.String(), "kind": kind, "spec": spec})
}

func describedCluster(c *snapshot.Cluster) map[string]any {
	spec := map[string]any{"domain": c.Domain, "sync": c.Sync, "reason": c.Reason, "webhooksUnknown": c.WebhooksUnknown}
	if c.Reading {
		spec["reading"] = true
	}
	if c.Cause != "" {
		spec["cause"] = c.Cause
	}
	if len(c.Denied) > 0 {
		spec["denied"] = c.Denied
	}
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
	if uid := in.Management.ClusterUID; uid != "" {
		spec["clusterUID"] = uid
	}
	var failures []failure
	for _, f := range in.Failures {
		failures = append(failures, failure{Ref: f.Ref, Code: f.Code, Message: f.What, Hint: f.Hint, ReleaseCode: f.ReleaseCode, Parents: f.Parents})
	}
	var all []roots
	for _, r := range in.Roots {
		of := roots{VirtualMesh: r.VirtualMesh, Signs: r.Signs, Problem: r.Problem, Pins: r.Pins}
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
	if in.Logging != nil {
		spec["logging"] = append([]snapshot.Ref{}, in.Logging.Workloads...)
	}
	if len(in.Gone) > 0 {
		spec["gone"] = in.Gone
	}
	return spec
}
