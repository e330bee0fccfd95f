package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// assertNoKeys searches all that the run has put out for all private keys in Secrets: logs, metrics, the debug endpoint, what
// commands print, and all objects of both clusters but Secrets, with their statuses, annotations and events. It also fails if a
// Secret has a key that is not one of those that are to have it. More outputs are searched, too.
func (w *environment) assertNoKeys(more ...string) {
	w.t.Helper()
	search, holders := newKeySearch(), map[string]bool{}
	for _, c := range w.clusters {
		secrets, err := w.clients[c.Name()].List(w.t.Context(), core("secrets"), "")
		require.NoError(w.t, err)
		for i := range secrets {
			where := c.Name() + " " + secrets[i].GetNamespace() + "/" + secrets[i].GetName()
			if search.addAll(where, dataOf(w.t, &secrets[i])) {
				holders[where] = true
				assert.True(w.t, w.mayHold(c.Name(), &secrets[i]), "Secret %s of type %v has a private key", where, secrets[i].Object["type"])
			}
		}
	}
	// A root, and of each cluster what the agent made, what istiod uses, and what it used before.
	require.GreaterOrEqual(w.t, len(holders), 1+2*len(w.clusters), "there is something to look for: %v", holders)
	outputs := w.outputs()
	for i, text := range more {
		outputs[fmt.Sprint("output ", i)] = text
	}
	size := 0
	for name, text := range outputs {
		size += len(text)
		for _, found := range search.find(text) {
			assert.Fail(w.t, "a private key is out", "%s has %s", name, found)
		}
	}
	w.t.Logf("%d private keys of %d Secrets are in none of %d outputs of %d bytes", search.keys, len(holders), len(outputs), size)
}

// dataOf is the data of a Secret.
func dataOf(t require.TestingT, secret *unstructured.Unstructured) map[string][]byte {
	encoded, _, err := unstructured.NestedStringMap(secret.Object, "data")
	require.NoError(t, err)
	out := map[string][]byte{}
	for name, text := range encoded {
		out[name], err = base64.StdEncoding.DecodeString(text)
		require.NoError(t, err)
	}
	return out
}

// mayHold: the Secret is one of those that are to have a private key.
func (w *environment) mayHold(cluster string, secret *unstructured.Unstructured) bool {
	switch place := secret.GetNamespace() + "/" + secret.GetName(); place {
	case "istio-system/istio-ca-secret", "istio-system/cacerts", "istio-system/cacerts-before-meshctl":
		return true // what istiod signs with, or signed with
	case "istio-system/" + snapshot.GatewaySecret:
		return true // what gateways present
	case agents(cluster) + "/istiod-istio-system-" + cluster, agents(cluster) + "/istiod-istio-system-" + cluster + "-gateways":
		return secret.Object["type"] == "certificates.mesh.gloo.solo.io/generated_private_key"
	}
	// Roots are nowhere but in the management cluster.
	generated := secret.Object["type"] == "certificates.mesh.gloo.solo.io/generated_signing_cert"
	return cluster == "cluster-1" && secret.GetNamespace() == mgmt && (generated || secret.GetName() == usersRoot)
}

// outputs are what the run has put out.
func (w *environment) outputs() map[string]string {
	w.t.Helper()
	out := map[string]string{"the log of meshctl serve": w.serve.log.String()}
	for _, path := range []string{"/metrics", "/readyz", "/healthz"} {
		text, err := w.get(path)
		require.NoError(w.t, err)
		out["serve "+path] = text
	}
	dump, err := w.inspect("/debug/snapshot")
	require.NoError(w.t, err)
	out["serve /debug/snapshot"] = dump
	for agent, address := range agentAddresses(w.t) {
		for _, path := range []string{"/metrics", "/readyz", "/healthz"} {
			text, err := w.read("http://"+address+path, "")
			if err != nil {
				text = err.Error() // it is not ready; that is an output, too
			}
			out["agent "+agent+path] = text
		}
	}
	for _, args := range [][]string{
		{"describe", "virtualmesh"}, {"describe", "virtualmesh", "virtual-mesh"}, {"describe", "virtualmesh", "virtual-mesh", "-o", "yaml"},
		{"describe", "mesh"}, {"describe", "mesh", "istiod-istio-system-cluster-2", "-o", "json"}, {"cluster", "list"}, {"trust", "show"}, {"trust", "show", "-o", "json"},
	} {
		r := w.run(append(args, "--context", "cluster-1")...)
		out["meshctl "+strings.Join(args, " ")] = r.stdout + r.stderr
	}
	for _, c := range w.clusters {
		out["all objects of "+c.Name()] = allObjects(w.t, c)
		logs, err := filepath.Glob(filepath.Join(filepath.Dir(c.AuditLog()), "*"))
		require.NoError(w.t, err)
		for _, log := range logs { // istiod's and the API server's
			text, err := os.ReadFile(log)
			require.NoError(w.t, err)
			out[c.Name()+" "+filepath.Base(log)] = string(text)
		}
	}
	return out
}

// allObjects are all objects of a cluster but Secrets, as JSON.
func allObjects(t requireT, c *local.Cluster) string {
	var text strings.Builder
	listed := 0
	eachObject(t, c, func(kind schema.GroupVersionResource) bool { return kind != core("secrets") }, func(_ schema.GroupVersionResource, o *unstructured.Unstructured) {
		line, err := json.Marshal(o.Object)
		require.NoError(t, err)
		text.Write(line)
		text.WriteByte('\n')
		listed++
	})
	require.Greater(t, listed, 100, "all objects of %s", c.Name())
	return text.String()
}

// eachObject yields the objects of a cluster of the kinds that are wanted.
func eachObject(t requireT, c *local.Cluster, wanted func(schema.GroupVersionResource) bool, yield func(schema.GroupVersionResource, *unstructured.Unstructured)) {
	objects, err := c.Client()
	require.NoError(t, err)
	require.NoError(t, objects.Each(t.Context(), wanted, yield))
}

// requireT is a test that ends.
type requireT interface {
	require.TestingT
	Context() context.Context
}

// agentAddresses are the health addresses of the agents that this process has started, by their clusters.
func agentAddresses(t requireT) map[string]string {
	out := map[string]string{}
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, file := range processes {
		status, err := os.ReadFile(filepath.Join(filepath.Dir(file), "status"))
		if err != nil || !strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", os.Getpid())) {
			continue // it has ended, or is another's
		}
		line, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		args := strings.Split(string(line), "\x00")
		if len(args) < 2 || args[1] != "agent" {
			continue
		}
		flags := map[string]string{}
		for i := 2; i+1 < len(args); i += 2 {
			flags[args[i]] = args[i+1]
		}
		out[flags["--cluster-id"]] = flags["--health-bind"]
	}
	return out
}
