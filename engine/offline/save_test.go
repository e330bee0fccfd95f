package offline_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestSavedIsLoaded: what is saved of each case is loaded again, and the same follows from it.
func TestSavedIsLoaded(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir("../../testdata/translate")
	require.NoError(t, err)
	for _, entry := range entries {
		t.Run(entry.Name(), func(t *testing.T) {
			t.Parallel()
			in, _, err := offline.Load(offline.Dir(filepath.Join("../../testdata/translate", entry.Name(), "in")))
			require.NoError(t, err)
			in.Version, in.Gone, in.Management.PlaneID = "v1.2.3", []string{"gone"}, "plane"
			in.Logging = &snapshot.Logging{Workloads: []snapshot.Ref{{Kind: snapshot.Workload, Namespace: "gloo-mesh", Name: "a"}}}
			in.Roots = []*snapshot.VirtualMeshRoots{{
				VirtualMesh: snapshot.Ref{Kind: snapshot.VirtualMesh, Namespace: "gloo-mesh", Name: "vm"}, Signs: "abc", Problem: "none",
				Roots: []*snapshot.Root{{Fingerprint: "abc", PEM: "cert", NotAfter: time.Unix(1_800_000_000, 0).UTC(), Gateways: true, Secret: snapshot.Ref{Name: "s"}}},
			}}
			for _, c := range in.Clusters {
				c.Unread = append(c.Unread, snapshot.Unread{Ref: snapshot.Ref{Cluster: c.Name, Kind: snapshot.ConfigMap, Name: "istio"}, Denied: true, Reason: "forbidden"})
			}
			recorded := &offline.Snapshot{Input: in, Recorded: time.Unix(1_700_000_000, 0), Served: true}
			out := engine.Translate(in).Output
			files, err := offline.Save(recorded, out)
			require.NoError(t, err)
			var archive bytes.Buffer
			require.NoError(t, offline.WriteArchive(&archive, files))
			read, err := offline.ReadArchive(archive.Bytes())
			require.NoError(t, err)
			assert.Empty(t, read.Issues)
			assert.True(t, recorded.Recorded.Equal(read.Recorded))
			assert.True(t, read.Served)
			again := read.Input
			assert.Equal(t, in.Roots, again.Roots)
			assert.Equal(t, in.Logging, again.Logging)
			resaved, err := offline.Save(read, out)
			require.NoError(t, err)
			assert.Equal(t, files, resaved)
			before, err := offline.Files(out)
			require.NoError(t, err)
			after, err := offline.Files(engine.Translate(again).Output)
			require.NoError(t, err)
			assert.Equal(t, before, after)
			for name, data := range before {
				outputsAre(t, data, files[offline.OutputsFolder+"/"+strings.TrimSuffix(name, ".yaml")+".json"])
			}
		})
	}
}

// outputsAre compares a stream of YAML documents with a List in JSON.
func outputsAre(t *testing.T, documents, list []byte) {
	t.Helper()
	var saved struct{ Items []json.RawMessage }
	require.NoError(t, json.Unmarshal(list, &saved))
	want := strings.Split(string(documents), "---\n")
	require.Len(t, saved.Items, len(want))
	for i, item := range saved.Items {
		assert.YAMLEq(t, want[i], string(item))
	}
}

func TestReadArchiveMistakes(t *testing.T) {
	t.Parallel()
	_, err := offline.ReadArchive([]byte("no archive"))
	require.ErrorContains(t, err, "it is no archive of meshctl: zip: ")
	var empty bytes.Buffer
	require.NoError(t, offline.WriteArchive(&empty, nil))
	_, err = offline.ReadArchive(empty.Bytes())
	require.ErrorContains(t, err, "no folder in it")
	in := &snapshot.Input{Management: &snapshot.Management{Namespace: "n"}, Clusters: []*snapshot.Cluster{{Name: "management"}}}
	_, err = offline.Save(&offline.Snapshot{Input: in}, &snapshot.Output{})
	require.ErrorContains(t, err, "register it under another name")
}

// TestEditedRecord: what was recorded is still read after it was edited, and mistakes have their line.
func TestEditedRecord(t *testing.T) {
	t.Parallel()
	const namespace = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a","labels":{"x":"1,\\n{"}}}`
	list := func(items string) string { return `{"apiVersion":"v1","kind":"List","items":[` + items + "\n]}\n" }
	load := func(t *testing.T, text string) (*snapshot.Input, error) {
		t.Helper()
		in, _, err := offline.Load(fstest.MapFS{"c/namespace.json": &fstest.MapFile{Data: []byte(text)}})
		return in, err
	}
	const service = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"s","namespace":"a"},"spec":{"ports":[{"port":%s}]}}`
	for name, text := range map[string]string{
		"as recorded":   list("\n" + fmt.Sprintf(service, "80") + ",\n" + namespace),
		"over lines":    list("\n" + strings.Replace(fmt.Sprintf(service, "80"), `"spec"`, "\n\"spec\"", 1) + ",\n" + namespace),
		"other order":   list("\n" + `{"metadata":{"name":"s","namespace":"a"},"kind":"Service","apiVersion":"v1","spec":{"ports":[{"port":80}]}}`),
		"list in lists": list("\n" + list("\n"+fmt.Sprintf(service, "80"))),
		"as by kubectl": "{\n \"kind\": \"List\", \"apiVersion\": \"v1\", \"items\": [" + fmt.Sprintf(service, "80") + "]\n}\n",
	} {
		in, err := load(t, text)
		require.NoError(t, err, name)
		require.Len(t, in.Clusters[0].Services, 1, name)
		assert.Equal(t, int32(80), in.Clusters[0].Services[0].Spec.Ports[0].Port, name)
	}
	for name, c := range map[string]struct{ text, want string }{
		"wrong type":       {list("\n" + namespace + ",\n" + fmt.Sprintf(service, `"x"`)), "c/namespace.json:3: document 1: Service: field spec.ports.port is a string, but must be a whole number"},
		"no object":        {list("\n" + namespace + ",\n{}"), "c/namespace.json:3: document 1: has no apiVersion or no kind; begin it with both"},
		"broken at an end": {list("\n" + namespace + ",\n" + `{"apiVersion":"v1","kind":"Service","metadata":{}`), "c/namespace.json:"},
	} {
		_, err := load(t, c.text)
		if assert.Error(t, err, name) {
			assert.True(t, strings.HasPrefix(err.Error(), c.want), "%s: %s", name, err)
		}
	}
}
