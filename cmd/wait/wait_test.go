package wait

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// objectOf is a TrafficPolicy of a generation with a status.
func objectOf(t *testing.T, generation int64, status string) *unstructured.Unstructured {
	t.Helper()
	object := map[string]any{"apiVersion": "networking.mesh.gloo.solo.io/v1", "kind": "TrafficPolicy"}
	if status != "" {
		var value map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(status), &value))
		object["status"] = value
	}
	out := &unstructured.Unstructured{Object: object}
	out.SetName("shift")
	out.SetGeneration(generation)
	return out
}

const accepted = `
observedGeneration: 2
conditions:
- {type: Accepted, status: "True", reason: Accepted, observedGeneration: 2}
- {type: InForce, status: "False", reason: WriteFailed, message: not in force in cluster-2, observedGeneration: 2}
- {type: Ready, status: "False", reason: WriteFailed, message: not in force in cluster-2, observedGeneration: 2}
`

const refused = `
observedGeneration: 2
conditions:
- {type: Accepted, status: "False", reason: FieldInvalid, message: policy.mirror names no service, observedGeneration: 2}
- {type: InForce, status: "False", reason: NotAccepted, observedGeneration: 2}
- {type: Ready, status: "False", reason: FieldInvalid, observedGeneration: 2}
`

const ready = `
observedGeneration: 2
conditions:
- {type: Accepted, status: "True", reason: Accepted, observedGeneration: 2}
- {type: InForce, status: "True", reason: InForce, observedGeneration: 2}
- {type: Ready, status: "True", reason: Ready, observedGeneration: 2}
`

func TestLook(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		generation   int64
		status, goal string
		want         state
		why          string
	}{
		"no status":                 {1, "", "Ready", pending, "`meshctl serve` has not processed it yet"},
		"status of an earlier edit": {3, ready, "Ready", pending, "`meshctl serve` has processed generation 2 of it, and not yet 3"},
		"condition of an earlier edit": {2, "observedGeneration: 2\nconditions: [{type: Ready, status: \"True\", observedGeneration: 1}]", "Ready", pending,
			"its status has no condition Ready: the `meshctl serve` that wrote it may be older"},
		"accepted":               {2, accepted, "Accepted", met, ""},
		"accepted, not in force": {2, accepted, "InForce", pending, "not in force in cluster-2 (WriteFailed)"},
		"in force":               {2, ready, "InForce", met, ""},
		"rejected":               {2, refused, "Accepted", rejected, "policy.mirror names no service (FieldInvalid)"},
		"rejected, not in force": {2, refused, "InForce", rejected, "policy.mirror names no service (FieldInvalid)"},
		"rejected, not ready":    {2, refused, "Ready", rejected, "policy.mirror names no service (FieldInvalid)"},
		"broken":                 {2, "observedGeneration: {}", "Ready", pending, ""},
	} {
		got, why := look(objectOf(t, c.generation, c.status), c.goal)
		assert.Equal(t, c.want, got, name)
		if c.why != "" {
			assert.Equal(t, c.why, why, name)
		}
	}
}

// TestWait: what comes out of a wait, with which exit code.
func TestWait(t *testing.T) {
	t.Parallel()
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "trafficpolicies"}, "shift")
	ref := snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "gloo-mesh", Name: "shift"}
	for name, c := range map[string]struct {
		objects []*unstructured.Unstructured
		err     error
		goal    string
		timeout time.Duration
		code    int
		says    string
	}{
		"at once":               {[]*unstructured.Unstructured{objectOf(t, 2, ready)}, nil, "in-force", time.Minute, 0, "TrafficPolicy gloo-mesh/shift is in force.\n"},
		"later":                 {[]*unstructured.Unstructured{objectOf(t, 3, ready), objectOf(t, 2, ready)}, nil, "ready", time.Minute, 0, "generation 2 of it, and not yet 3"},
		"rejected":              {[]*unstructured.Unstructured{objectOf(t, 2, refused)}, nil, "in-force", time.Minute, cmdutil.ExitFindings, "it is rejected: policy.mirror names no service (FieldInvalid)"},
		"too late":              {[]*unstructured.Unstructured{objectOf(t, 2, accepted)}, nil, "in-force", 0, cmdutil.ExitFailure, "after 0s, it is not so that it is in force: not in force in cluster-2 (WriteFailed)"},
		"no answer, then there": {[]*unstructured.Unstructured{nil, objectOf(t, 2, ready)}, nil, "ready", time.Minute, 0, "connection reset"},
		"no answer":             {[]*unstructured.Unstructured{nil}, nil, "ready", 0, cmdutil.ExitFailure, "reading it: connection reset; check the context, the network and that the server runs"},
		"no right":              {nil, apierrors.NewForbidden(schema.GroupResource{Resource: "trafficpolicies"}, "shift", errors.New("no")), "ready", 0, cmdutil.ExitFailure, "check the context and your permissions there"},
		"deleted":               {nil, gone, "in-force", time.Minute, cmdutil.ExitNotFound, "it does not exist any more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			streams, _, out, errs := cmdutil.TestStreams()
			o := &Options{Streams: streams, For: c.goal, Timeout: c.timeout}
			looks := 0
			err := o.wait(t.Context(), ref, func(context.Context) (*unstructured.Unstructured, error) {
				if c.err != nil {
					return nil, c.err
				}
				looks++
				if object := c.objects[min(looks, len(c.objects))-1]; object != nil {
					return object, nil
				}
				return nil, errors.New("connection reset")
			})
			assert.Equal(t, c.code, cmdutil.ExitCode(err), "%v", err)
			text := errs.String()
			if err != nil {
				text += err.Error()
			}
			assert.Contains(t, text, c.says)
			assert.Empty(t, out.String())
		})
	}
}

// TestWaitForProxies: an object that is in force is waited for until its proxies have it, with the reason why they do not.
func TestWaitForProxies(t *testing.T) {
	t.Parallel()
	ref := snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "gloo-mesh", Name: "shift"}
	waits := &explain.Synced{Acknowledged: 12, Proxies: 13, Waiting: []explain.WaitingProxy{{Cluster: "east", Namespace: "shop", Pod: "cart-1", Kinds: []string{"routes"}}}}
	rejects := &explain.Synced{Proxies: 1, Waiting: []explain.WaitingProxy{{Cluster: "east", Namespace: "shop", Pod: "cart-1", Kinds: []string{"routes"}, Refused: "no such cluster"}}}
	unknown := &explain.Synced{Unknown: []explain.UnknownSync{{Mesh: snapshot.Ref{Name: "istiod-west"}, Reason: "no context leads there"}}}
	all := &explain.Synced{Acknowledged: 13, Proxies: 13}
	for name, c := range map[string]struct {
		status  string
		synced  []*explain.Synced
		left    time.Duration
		timeout time.Duration
		code    int
		says    string
	}{
		"at once":             {ready, []*explain.Synced{all}, 0, time.Minute, 0, "TrafficPolicy gloo-mesh/shift is in force in all proxies.\n"},
		"later":               {ready, []*explain.Synced{waits, all}, 0, time.Minute, 0, "in proxies: 12 of 13; east/shop/cart-1 has not acknowledged routes"},
		"rejected by a proxy": {ready, []*explain.Synced{rejects}, 0, 0, cmdutil.ExitFailure, "east/shop/cart-1 rejects routes: no such cluster"},
		"not known":           {ready, []*explain.Synced{unknown}, 0, 0, cmdutil.ExitFailure, "mesh istiod-west not known: no context leads there; wait longer"},
		"not sent yet":        {ready, []*explain.Synced{all}, time.Second, 0, cmdutil.ExitFailure, "the control planes are about to send it"},
		"no proxy":            {ready, []*explain.Synced{{}}, time.Second, 0, 0, "is in force in all proxies."},
		"not in force":        {accepted, []*explain.Synced{all}, 0, 0, cmdutil.ExitFailure, "not in force in cluster-2 (WriteFailed)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			streams, _, out, errs := cmdutil.TestStreams()
			o := &Options{Streams: streams, For: inProxies, Timeout: c.timeout}
			asked := 0
			o.proxies = func(context.Context) (state, string) {
				asked++
				return lookAtProxies(c.synced[min(asked, len(c.synced))-1], c.left)
			}
			err := o.wait(t.Context(), ref, func(context.Context) (*unstructured.Unstructured, error) { return objectOf(t, 2, c.status), nil })
			assert.Equal(t, c.code, cmdutil.ExitCode(err), "%v", err)
			text := errs.String()
			if err != nil {
				text += err.Error()
			}
			assert.Contains(t, text, c.says)
			assert.Empty(t, out.String())
		})
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]snapshot.Kind{
		"tp/a": snapshot.TrafficPolicy, "TrafficPolicy/a": snapshot.TrafficPolicy, "virtualmesh/a": snapshot.VirtualMesh,
		"ap/a": snapshot.AccessPolicy, "vdest/a": snapshot.VirtualDestination, "sdep/a": snapshot.ServiceDependency,
	} {
		o := &Options{For: "ready"}
		require.NoError(t, o.parse(arg), arg)
		assert.Equal(t, want, o.Kind, arg)
		assert.Equal(t, "a", o.Name, arg)
	}
	for arg, want := range map[string]string{
		"reviews": "write KIND/NAME", "tp/": "write KIND/NAME", "trafficpolcy/a": "did you mean trafficpolicy/a?",
		"pod/a": "is no kind that can be waited for", "cluster/a": "wait for it with: --for ready",
	} {
		o := &Options{For: "in-force"}
		assert.ErrorContains(t, o.parse(arg), want, arg)
	}
	assert.ErrorContains(t, (&Options{For: "never"}).parse("tp/a"), "must be one of accepted, in-force, ready, in-proxies")
}
