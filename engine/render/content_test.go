package render

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestParentsOfManyPolicies: an API server takes the annotations of an object to which
// thousands of policies contribute.
func TestParentsOfManyPolicies(t *testing.T) {
	t.Parallel()
	contributors := []snapshot.Ref{{Kind: snapshot.Destination, Namespace: "gloo-mesh", Name: "reviews"}}
	for n := range 6000 {
		contributors = append(contributors, snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "gloo-mesh", Name: fmt.Sprintf("policy-%05d", n)})
	}
	c := NewContent("gloo-mesh", nil, contributors, contributors)
	assert.Empty(t, validation.ValidateAnnotations(c.Annotations, field.NewPath("metadata.annotations")))
	assert.Len(t, c.Parents, 6001, "all policies report a failure")

	var listed map[string][]commonv1.ObjectRef
	require.NoError(t, json.Unmarshal([]byte(c.Annotations[snapshot.ParentsAnnotation]), &listed))
	assert.Len(t, listed["discovery.mesh.gloo.solo.io/v1, Kind=Destination"], 1)
	policies := listed["networking.mesh.gloo.solo.io/v1, Kind=TrafficPolicy"]
	require.Len(t, policies, 100)
	assert.Equal(t, "policy-00000", policies[0].Name)
}
