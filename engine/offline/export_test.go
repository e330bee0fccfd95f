package offline_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// exported are the files of what users wrote.
func exported(t *testing.T, m *snapshot.Management) (fstest.MapFS, []offline.Exported) {
	t.Helper()
	objects, err := offline.Export(m)
	require.NoError(t, err)
	files := fstest.MapFS{"management/none.yaml": &fstest.MapFile{Data: []byte("# No object.\n")}}
	for i := range objects {
		data, err := objects[i].YAML()
		require.NoError(t, err)
		require.NotContains(t, files, "management/"+objects[i].File())
		files["management/"+objects[i].File()] = &fstest.MapFile{Data: data}
	}
	return files, objects
}

// TestExportedIsLoaded: of each case, the same objects are loaded from what is exported, and exported again from these.
func TestExportedIsLoaded(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir("../../testdata/translate")
	require.NoError(t, err)
	kinds := map[snapshot.Kind]bool{}
	for _, entry := range entries {
		in, _, err := offline.Load(offline.Dir(filepath.Join("../../testdata/translate", entry.Name(), "in")))
		require.NoError(t, err)
		for _, o := range in.Management.TrafficPolicies {
			// As an API server and kubectl leave it.
			o.UID, o.ResourceVersion = "PLANTED", "PLANTED"
			o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "PLANTED"}}
			o.Annotations = map[string]string{
				"kubectl.kubernetes.io/last-applied-configuration": "PLANTED", "team": "a",
				snapshot.ReleaseAnnotation: "PLANTED", snapshot.TrustAcceptAnnotation: "PLANTED", snapshot.TrustRotateAnnotation: "PLANTED",
			}
			o.Finalizers = []string{"PLANTED"}
		}
		files, objects := exported(t, in.Management)
		again, issues, err := offline.Load(files)
		require.NoError(t, err, entry.Name())
		assert.Empty(t, issues, entry.Name())
		resaved, same := exported(t, again.Management)
		assert.Equal(t, files, resaved, entry.Name())
		assert.Equal(t, objects, same, entry.Name())
		for i := range objects {
			kinds[objects[i].Ref.Kind] = true
			was, is := in.Find(objects[i].Ref), again.Find(objects[i].Ref)
			require.NotNil(t, is, "%s: %s", entry.Name(), objects[i].Ref)
			assert.Equal(t, specOf(t, was), specOf(t, is), "%s: %s", entry.Name(), objects[i].Ref)
			assert.Equal(t, was.GetLabels(), is.GetLabels())
			if objects[i].Ref.Kind == snapshot.TrafficPolicy {
				assert.Equal(t, map[string]string{"team": "a"}, is.GetAnnotations(), "what users wrote stays")
			}
		}
		for name, file := range files {
			text := string(file.Data)
			for _, noted := range []string{"PLANTED", "status:", "creationTimestamp", "generation:", "uid:"} {
				assert.NotContains(t, text, noted, "%s: %s", entry.Name(), name)
			}
		}
	}
	for _, kind := range []snapshot.Kind{
		snapshot.KubernetesCluster, snapshot.Settings, snapshot.VirtualMesh, snapshot.TrafficPolicy, snapshot.AccessPolicy,
		snapshot.VirtualDestination, snapshot.ServiceDependency, snapshot.Destination, snapshot.Role,
	} {
		assert.True(t, kinds[kind], "no case exports a %s", kind)
	}
	assert.False(t, kinds[snapshot.Mesh] || kinds[snapshot.Workload], "users do not write them")
}

// specOf is what a user wrote of an object, as it is in memory.
func specOf(t *testing.T, o snapshot.APIObject) any {
	t.Helper()
	objects, err := offline.Export(managementOf(t, o))
	require.NoError(t, err)
	require.Len(t, objects, 1)
	return objects[0].Manifest["spec"]
}

// managementOf has one object.
func managementOf(t *testing.T, o snapshot.APIObject) *snapshot.Management {
	t.Helper()
	m := &snapshot.Management{}
	for _, list := range m.Lists {
		if list.Set([]snapshot.APIObject{o}) == nil {
			return m
		}
	}
	t.Fatalf("%T is in no list", o)
	return nil
}
