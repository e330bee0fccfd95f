package istio

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestWhatAgeDecidesKeepsItsAge: of two objects the mesh uses the older one.
func TestWhatAgeDecidesKeepsItsAge(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(time.Unix(1_700_000_000, 0))
	for kind, o := range map[snapshot.Kind]snapshot.APIObject{snapshot.ServiceEntry: &istionetworkingv1.ServiceEntry{}, snapshot.Sidecar: &istionetworkingv1.Sidecar{}} {
		o.SetCreationTimestamp(at)
		reads[kind](o)
		assert.Equal(t, at, o.GetCreationTimestamp(), kind.String())
	}
}
