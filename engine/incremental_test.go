package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// smallWorld has two services in each of two clusters, and a policy of each kind.
func smallWorld() *snapshot.Input {
	return enginetest.World(enginetest.Size{Services: 2, Clusters: 2, FederateEvery: 1, Policies: 1})
}

// with is an Input with an object.
func with(t *testing.T, in *snapshot.Input, cluster string, o snapshot.APIObject) *snapshot.Input {
	t.Helper()
	out, err := in.With(cluster, o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func copyOf(o snapshot.APIObject) snapshot.APIObject {
	return o.DeepCopyObject().(snapshot.APIObject)
}

// TestLabelsAreTheLatest: a Plan keeps policies and VirtualMeshes of which only labels changed; lists show the new labels.
func TestLabelsAreTheLatest(t *testing.T) {
	t.Parallel()
	in := smallWorld()
	in = with(t, in, "", &enterprisev1beta1.ServiceDependency{ObjectMeta: metav1.ObjectMeta{Name: "all", Namespace: snapshot.DefaultNamespace}})
	translator := engine.New(engine.Options{})
	translator.Translate(in)
	labels := map[string]string{"team": "shop"}
	kinds := []snapshot.Kind{snapshot.VirtualMesh, snapshot.TrafficPolicy, snapshot.AccessPolicy, snapshot.ServiceDependency}
	for _, kind := range kinds {
		o := copyOf(in.Management.List(kind).At(0))
		o.SetLabels(labels)
		in = with(t, in, "", o)
	}
	index := explain.New(translator.Translate(in))
	for _, kind := range kinds {
		assert.Equal(t, labels, index.List(kind).Rows[0].Labels, "%s", kind)
	}
}
