package webhook_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/webhook"
)

// BenchmarkWarnings is an answer with warnings where there are 1,000 services and 2,000 policies. Its limit is
// webhook.Budget, after which an answer has none.
func BenchmarkWarnings(b *testing.B) {
	state := engine.Translate(enginetest.World(enginetest.Size{Services: 500, Clusters: 2, FederateEvery: 1, Policies: 1000}))
	for name, object := range map[string]snapshot.APIObject{
		"one service":  enginetest.AccessPolicy(100_000, 7, 0),
		"one caller":   enginetest.TrafficPolicy(100_000, 7, 0, 3*time.Second),
		"all services": everywhere(),
	} {
		b.Run(name, func(b *testing.B) {
			kind, _ := snapshot.KindOfObject(object)
			object.GetObjectKind().SetGroupVersionKind(kind.Info().GroupVersionKind)
			text, err := yaml.Marshal(object)
			require.NoError(b, err)
			body, err := json.Marshal(admissionv1.AdmissionReview{Request: asked(b, admissionv1.Create, "ada", string(text), "")})
			require.NoError(b, err)
			w := webhook.New(webhook.Options{Namespace: home, State: func() *snapshot.State { return state }, Budget: time.Hour})
			post(b, w, webhook.WarningsPath, body) // it follows the translation ahead
			for b.Loop() {
				require.Equal(b, http.StatusOK, post(b, w, webhook.WarningsPath, body).Code)
			}
		})
	}
}

// everywhere is a policy on all services.
func everywhere() snapshot.APIObject {
	p := enginetest.TrafficPolicy(100_000, 7, 0, 3*time.Second)
	p.Spec.DestinationSelector = nil
	return p
}
