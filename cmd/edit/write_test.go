package edit

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/asktest"
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/create"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/wizards"
	"github.com/meshctl/meshctl/wizards/wizardtest"
)

// server is an API server with one TrafficPolicy.
type server struct {
	mu     sync.Mutex
	object *object
	// before an update is looked at.
	before  func(*object)
	updates int
}

const status409 = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"message":"the object has been modified"}`

// ServeHTTP is part of http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case !strings.HasSuffix(r.URL.Path, "/trafficpolicies/patient"):
		w.WriteHeader(http.StatusNotFound)
		return
	case r.Method == http.MethodPut:
		if s.before != nil {
			s.before(s.object)
			s.before = nil
		}
		var given object
		if json.NewDecoder(r.Body).Decode(&given.Object) != nil || given.GetResourceVersion() != s.object.GetResourceVersion() {
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(status409))
			return
		}
		s.updates++
		s.object = given.DeepCopy()
		next(s.object)
	}
	_ = json.NewEncoder(w).Encode(s.object.Object)
}

// next gives an object another resourceVersion.
func next(o *object) {
	n, _ := strconv.Atoi(o.GetResourceVersion())
	o.SetResourceVersion(strconv.Itoa(n + 1))
}

// patient is the policy of the case, stored in a server, with the options to edit it.
func patient(t *testing.T, script *wizardtest.Script) (*server, *Options, *snapshot.Input, *cmdutil.Streams, func() string) {
	t.Helper()
	documents, err := inFile(filepath.Join(bookinfo, "management", "policies.yaml"), snapshot.TrafficPolicy)
	require.NoError(t, err)
	s := &server{object: documents[1].object}
	s.object.SetResourceVersion("7")
	s.object.SetLabels(map[string]string{"team": "books"})
	at := httptest.NewServer(s)
	t.Cleanup(at.Close)
	config := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"a",
		"clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"a","context":{"cluster":"c"}}]}`, at.URL), 0o600))
	streams, _, _, errs := cmdutil.TestStreams()
	f := cmdutil.NewFactory(streams)
	read, err := cmdutil.ReadFolder(streams, bookinfo)
	require.NoError(t, err)
	o := &Options{Options: create.Options{
		Streams: streams, Now: asktest.Now, Factory: f, Checker: asktest.Checker,
		Form: wizards.TrafficPolicy(), Name: "patient", MgmtNamespace: "gloo-mesh", Answers: wizards.Answers{}, Verb: "edit", Asks: script != nil,
		Kube: cmdutil.KubeFlags{Kubeconfig: config},
	}}
	if script != nil {
		o.Prompter = script
	}
	return s, o, read.Input, streams, errs.String
}

// timeout is that of the stored policy.
func (s *server) timeout() any {
	policy := s.object.Object["spec"].(map[string]any)["policy"].(map[string]any)
	return policy["requestTimeout"]
}

// upTo answers the questions before the one about the timeout.
func upTo(script *wizardtest.Script, namespace ...string) *wizardtest.Script {
	return script.
		Presets("Requests to which services?", "matcher").
		PresetsAll("In which namespaces?", namespace...).PresetsAll("In which clusters?").PresetsAll("With which labels?", "app=reviews").
		Presets("Requests from which workloads?", "matcher").
		PresetsAll("In which namespaces?", "bookinfo").PresetsAll("In which clusters?").PresetsAll("With which labels?").
		Presets("Which requests?", "all").PresetsAll("What should happen", "policy.requestTimeout")
}

// TestSomebodyWasFaster: what they changed is shown, and the questions come again with both changes.
func TestSomebodyWasFaster(t *testing.T) {
	t.Parallel()
	script := upTo(wizardtest.New(t), "bookinfo").
		Accepts("How long may a request take", "10s").
		GoesBack("What next?").
		Types("How long may a request take", "4s").
		Picks("What next?", "apply")
	upTo(script, "bookinfo", "default").
		Accepts("How long may a request take", "4s").
		Says("policy.requestTimeout: 10s → 4s").
		Picks("What next?", "apply")
	s, o, in, _, said := patient(t, script)
	s.before = func(there *object) {
		there.Object["spec"].(map[string]any)["destinationSelector"].([]any)[0].(map[string]any)["kubeServiceMatcher"].(map[string]any)["namespaces"] = []any{"bookinfo", "default"}
		next(there)
	}
	require.NoError(t, o.runFound(t, in), said())
	assert.Equal(t, 1, s.updates)
	assert.Equal(t, "4s", s.timeout())
	assert.Contains(t, said(), "TrafficPolicy gloo-mesh/patient changed while you edited it")
	assert.Contains(t, said(), "destinationSelector[0].kubeServiceMatcher.namespaces: bookinfo → bookinfo,default")
	assert.NotContains(t, said(), "Both of you changed")
	assert.Equal(t, map[string]string{"team": "books"}, s.object.GetLabels())
	data, err := json.Marshal(s.object.Object["spec"])
	require.NoError(t, err)
	assert.Contains(t, string(data), `["bookinfo","default"]`, "their change is kept")
}

// TestAStatusIsNoChange: serve writes the status at any time.
func TestAStatusIsNoChange(t *testing.T) {
	t.Parallel()
	s, o, in, _, said := patient(t, nil)
	o.Apply, o.Answers = true, wizards.Answers{"timeout": {"4s"}}
	s.before = func(there *object) {
		there.Object["status"] = map[string]any{"state": "ACCEPTED"}
		next(there)
	}
	require.NoError(t, o.runFound(t, in), said())
	assert.Equal(t, "4s", s.timeout())
}

// TestNobodyIsAskedInAScript: what somebody else wrote stays.
func TestNobodyIsAskedInAScript(t *testing.T) {
	t.Parallel()
	s, o, in, _, _ := patient(t, nil)
	o.Apply, o.Answers = true, wizards.Answers{"timeout": {"4s"}}
	s.before = func(there *object) {
		there.Object["spec"].(map[string]any)["policy"].(map[string]any)["requestTimeout"] = "6s"
		next(there)
	}
	require.ErrorContains(t, o.runFound(t, in), "TrafficPolicy gloo-mesh/patient changed while it was edited, and nothing was written; run the command again")
	assert.Zero(t, s.updates)
	assert.Equal(t, "6s", s.timeout())
}

// runFound edits the object that is found.
func (o *Options) runFound(t *testing.T, in *snapshot.Input) error {
	t.Helper()
	doc, err := o.find(t.Context(), wizards.NewCatalog(in, o.Now()))
	require.NoError(t, err)
	return o.run(t.Context(), in, doc)
}
