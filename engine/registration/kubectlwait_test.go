package registration_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/registration/registrationtest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestKubectlWaits: kubectl wait ends for each kind with conditions once what meshctl says of an object is written, and not while that is
// that it is not ready.
func TestKubectlWaits(t *testing.T) {
	waittest.SkipIfShort(t, "starts an API server")
	t.Parallel()
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Log("not tested: kubectl is not on the PATH")
		return
	}
	server := registrationtest.APIServers(t, 1)[0]
	config, err := server.Config()
	require.NoError(t, err)
	sandboxtest.MakeNamespace(t, config, "waited")
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	wait := func(o *unstructured.Unstructured, patience string) *exec.Cmd {
		kind := o.GroupVersionKind()
		return exec.CommandContext(t.Context(), kubectl, "--kubeconfig", server.Kubeconfig(), "wait", "--for=condition=Ready", "--timeout", patience, "-n", "waited",
			kind.Kind+"."+kind.Version+"."+kind.Group+"/"+o.GetName())
	}
	told := toldOf(t)
	for _, kind := range []snapshot.Kind{
		snapshot.TrafficPolicy, snapshot.AccessPolicy, snapshot.VirtualMesh, snapshot.VirtualDestination, snapshot.ServiceDependency, snapshot.AccessLogRecord, snapshot.Settings,
		snapshot.KubernetesCluster,
	} {
		of := told[kind]
		require.NotNil(t, of.ready, "no case has a %s that is ready", kind)
		objects := client.Resource(kind.GroupVersionResource()).Namespace("waited")
		o, err := objects.Create(t.Context(), of.object, metav1.CreateOptions{})
		require.NoError(t, err, "%s", kind)
		say := func(status map[string]any) {
			o.Object["status"] = about(o, status)
			o, err = objects.UpdateStatus(t.Context(), o, metav1.UpdateOptions{})
			require.NoError(t, err, "%s", kind)
		}
		if kind != snapshot.KubernetesCluster { // what is wrong with one is known only while serve runs
			require.NotNil(t, of.unready, "no case has a %s that is not ready", kind)
			say(of.unready)
			out, err := wait(o, "1s").CombinedOutput()
			require.Error(t, err, "%s is not ready: %s", kind, out)
			assert.Contains(t, string(out), "timed out", "%s", kind)
		}
		ended := make(chan error, 1)
		waiting := wait(o, "60s")
		require.NoError(t, waiting.Start())
		go func() { ended <- waiting.Wait() }()
		say(of.ready)
		require.NoError(t, <-ended, "%s is ready", kind)

		o.SetLabels(map[string]string{"edited": "true"}) // which is no new generation
		o, err = objects.Update(t.Context(), o, metav1.UpdateOptions{})
		require.NoError(t, err, "%s", kind)
		out, err := wait(o, "30s").CombinedOutput()
		require.NoError(t, err, "%s is still ready: %s", kind, out)
	}
}

// told is an object, with what meshctl says of it, or of others of its kind, when it is ready and when it is not.
type told struct {
	object         *unstructured.Unstructured
	ready, unready map[string]any
}

// toldOf has the first of each kind in the cases of the translator.
func toldOf(t *testing.T) map[snapshot.Kind]*told {
	t.Helper()
	cases, err := filepath.Glob("../../testdata/translate/*/in")
	require.NoError(t, err)
	out := map[snapshot.Kind]*told{}
	for _, in := range cases {
		input, _, err := offline.Load(offline.Dir(in))
		require.NoError(t, err)
		for s := range engine.Translate(input).Output.Statuses.All() {
			of := out[s.Ref.Kind]
			if of == nil {
				of = &told{}
				out[s.Ref.Kind] = of
			}
			status, object := decoded(t, s.Value), input.Find(s.Ref)
			switch ready := readyOf(status); {
			case object == nil || s.Ref.Cluster != "":
			case ready == "True" && of.ready == nil:
				of.ready, of.object = status, &unstructured.Unstructured{Object: decoded(t, object)}
				of.object.Object["metadata"] = map[string]any{"name": s.Ref.Name, "namespace": "waited"}
				of.object.SetGroupVersionKind(s.Ref.Kind.Info().GroupVersionKind)
				delete(of.object.Object, "status")
			case ready == "False" && of.unready == nil:
				of.unready = status
			}
		}
	}
	return out
}

func decoded(t *testing.T, value any) (out map[string]any) {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}

func readyOf(status map[string]any) string {
	list, _ := status["conditions"].([]any)
	for _, c := range list {
		if condition, _ := c.(map[string]any); condition["type"] == "Ready" {
			value, _ := condition["status"].(string)
			return value
		}
	}
	return ""
}

// about is a status as that of an object: of its generation, and since now.
func about(o *unstructured.Unstructured, status map[string]any) map[string]any {
	status["observedGeneration"] = o.GetGeneration()
	list, _ := status["conditions"].([]any)
	for _, c := range list {
		condition, _ := c.(map[string]any)
		condition["observedGeneration"], condition["lastTransitionTime"] = o.GetGeneration(), time.Now().UTC().Format(time.RFC3339)
	}
	return status
}
