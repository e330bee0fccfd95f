package serve

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/demo/waittest"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestVerifierAnswersEachRequestOnce: a request is carried out once, a later one afterwards, and one that is too long never.
func TestVerifierAnswersEachRequestOnce(t *testing.T) {
	t.Parallel()
	asked := func(requests map[string]string) *snapshot.State {
		in := &snapshot.Input{Management: &snapshot.Management{}}
		for name, request := range requests {
			in.Management.KubernetesClusters = append(in.Management.KubernetesClusters, &multiclusterv1alpha1.KubernetesCluster{
				ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{cluster.VerifyAnnotation: request}},
			})
		}
		return &snapshot.State{Input: in}
	}
	states, done := make(chan *snapshot.State, 1), make(chan string, 10)
	state := asked(map[string]string{"west": "1", "east": strings.Repeat("x", cluster.MaxVerifyRequest+1)})
	v := &verifier{wake: make(chan struct{}, 1), verify: func(_ context.Context, cluster, request string) { done <- cluster + " " + request }}
	v.state = func() *snapshot.State {
		select {
		case state = <-states:
		default:
		}
		return state
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); v.run(ctx) }()
	v.notify()
	assert.Equal(t, "west 1", <-done)
	v.notify()
	states <- asked(map[string]string{"west": "2", "north": "1"})
	v.notify()
	waittest.Until(t, "both are answered, west after a pause", func() bool { return len(done) == 2 })
	assert.ElementsMatch(t, []string{"north 1", "west 2"}, []string{<-done, <-done})
	v.notify()
	stop()
	<-ended
	assert.Empty(t, done)
}
