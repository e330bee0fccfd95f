package e2e

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/waittest"
)

// faults begin a fault each, and return what ends it.
var faults = map[string]func(*soak) (end func()){
	"API server killed":                (*soak).killsAPIServer,
	"API server paused":                (*soak).pausesAPIServer,
	"token revoked":                    (*soak).revokesToken,
	"credential damaged":               (*soak).damagesCredential,
	"CRD deleted":                      (*soak).deletesDefinition,
	"generated object edited":          (*soak).editsGenerated,
	"generated object deleted":         (*soak).deletesGenerated,
	"user's object of the same name":   (*soak).takesName,
	"control plane and gateway forged": func(s *soak) func() { return s.forges("tenant", forgeries) },
	"Service over others' pods":        func(s *soak) func() { return s.forges("guest", openOverOthers) },
	"name of another":                  func(s *soak) func() { return s.forges("tenant", sameName) },
	"control plane deleted":            (*soak).deletesControlPlane,
	"serve killed":                     func(s *soak) func() { return s.endsServe(syscall.SIGKILL) },
	"serve ended":                      func(s *soak) func() { return s.endsServe(syscall.SIGTERM) },
	"serve paused":                     (*soak).pausesServe,
}

// restarts are the faults after which the management plane is another process.
var restarts = map[string]bool{"serve killed": true, "serve ended": true}

// gaps are the faults after which the management plane may have begun again, without
// knowledge of what was edited meanwhile.
var gaps = map[string]bool{"serve killed": true, "serve ended": true, "serve paused": true, "API server killed": true, "API server paused": true}

// gracePeriod is the default of withdrawals.gracePeriod in the Settings.
const gracePeriod = 5 * time.Minute

func (s *soak) anyCluster() *local.Cluster { return s.clusters[s.random.IntN(len(s.clusters))] }

func (s *soak) killsAPIServer() func() {
	c := s.anyCluster()
	s.tally.note("API server of %s killed", c.Name())
	require.NoError(s.t, c.Kill(s.t.Context(), local.APIServer))
	return func() { require.NoError(s.t, c.Restart(s.t.Context(), local.APIServer)) }
}

func (s *soak) pausesAPIServer() func() {
	c := s.anyCluster()
	s.tally.note("API server of %s paused", c.Name())
	for _, p := range c.Processes() {
		if p.Name == local.APIServer {
			require.NoError(s.t, syscall.Kill(p.PID, syscall.SIGSTOP))
			return func() { require.NoError(s.t, syscall.Kill(p.PID, syscall.SIGCONT)) }
		}
	}
	require.FailNow(s.t, "there is no API server", c.Name())
	return nil
}

// revokesToken: the API server refuses the token until an administrator registers the
// cluster again. It may take it for 10 s more, which only a long run waits for.
func (s *soak) revokesToken() func() {
	s.delete("cluster-2", core("serviceaccounts"), mgmt, "cluster-2")
	if s.limits.lasts >= 5*time.Minute {
		s.until("the token is refused", func(context.Context) error {
			text, err := s.get("/metrics")
			if err == nil && !strings.Contains(text, `meshctl_cluster_sync{cluster="cluster-2",state="stale"} 1`) {
				err = errors.New("the cluster is read")
			}
			return err
		})
	}
	return func() {
		s.must("cluster", "register", "cluster-2", "--remote-context", "cluster-2", "--mgmt-context", "cluster-1")
	}
}

// damagesCredential: a bad credential does not take the place of a good one.
func (s *soak) damagesCredential() func() {
	good := s.token("cluster-2")
	s.fillSecret(base64.StdEncoding.EncodeToString([]byte("{[this is no kubeconfig")))
	return func() { s.fillSecret(good) }
}

func (s *soak) fillSecret(kubeconfig string) {
	s.t.Helper()
	_, err := s.dynamic["cluster-1"].Resource(core("secrets")).Namespace(mgmt).
		Patch(s.t.Context(), "cluster-2", types.MergePatchType, fmt.Appendf(nil, `{"data":{"kubeconfig":%q}}`, kubeconfig), metav1.PatchOptions{})
	require.NoError(s.t, err)
}

// deletesDefinition deletes a CustomResourceDefinition of ours, and creates it again
// with the objects that users had.
func (s *soak) deletesDefinition() func() {
	kinds := []schema.GroupVersionResource{
		kube.Policies("trafficpolicies"), kube.Policies("accesspolicies"), kube.Policies("virtualmeshes"), virtualDestinations,
	}
	kind := kinds[s.random.IntN(len(kinds))]
	name := kind.Resource + "." + kind.Group
	s.tally.note("CRD %s deleted", name)
	s.editor.leave(kind, true)
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	client := s.clients["cluster-1"]
	crd, err := client.Get(s.t.Context(), crds, "", name)
	require.NoError(s.t, err)
	users, err := client.List(s.t.Context(), kind, "")
	require.NoError(s.t, err)
	require.NoError(s.t, client.Delete(s.t.Context(), crds, "", name))
	s.until(name+" is gone", func(ctx context.Context) error {
		if _, err := client.Get(ctx, crds, "", name); err == nil {
			return fmt.Errorf("it exists")
		}
		return nil
	})
	return func() {
		objects := []*unstructured.Unstructured{remade(crd)}
		for _, o := range users {
			objects = append(objects, remade(&o))
		}
		s.until(name+" exists again", func(ctx context.Context) error { return client.Apply(ctx, objects...) })
		s.editor.leave(kind, false)
	}
}

// remade is an object as a user would create it again.
func remade(o *unstructured.Unstructured) *unstructured.Unstructured {
	again := &unstructured.Unstructured{Object: map[string]any{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "spec": o.Object["spec"]}}
	again.SetName(o.GetName())
	again.SetNamespace(o.GetNamespace())
	again.SetLabels(o.GetLabels())
	return again
}

// generatedRoute is an object of ours that exists throughout the run.
func (s *soak) generatedRoute() (cluster string, kind schema.GroupVersionResource) {
	return s.anyCluster().Name(), kube.Networking("virtualservices")
}

// editsGenerated: what somebody else changes in an object of ours is undone.
func (s *soak) editsGenerated() func() {
	cluster, kind := s.generatedRoute()
	_, err := s.dynamic[cluster].Resource(kind).Namespace("bookinfo").Patch(s.t.Context(), "ratings", types.JSONPatchType,
		[]byte(`[{"op":"replace","path":"/spec/hosts","value":["elsewhere.example"]}]`), metav1.PatchOptions{FieldManager: "somebody-else"})
	require.NoError(s.t, err)
	return func() {}
}

func (s *soak) deletesGenerated() func() {
	cluster, kind := s.generatedRoute()
	s.delete(cluster, kind, "bookinfo", "ratings")
	return func() {}
}

// takesName: a user's object stays that has the name of one of ours.
func (s *soak) takesName() func() {
	client, kind := s.clients["cluster-1"], kube.Networking("virtualservices")
	require.NoError(s.t, client.Delete(s.t.Context(), kube.Policies("trafficpolicies"), mgmt, "shop"))
	s.until("no object has the name", func(ctx context.Context) error {
		if _, err := client.Get(ctx, kind, "corner-tenant", "shop"); err == nil {
			return fmt.Errorf("it exists")
		}
		return nil
	})
	s.apply("cluster-1", []byte(ownRoute))
	was, err := client.Get(s.t.Context(), kind, "corner-tenant", "shop")
	require.NoError(s.t, err)
	s.apply("cluster-1", []byte(onOwnRoute))
	s.until("the policy says so", func(ctx context.Context) error {
		o, err := client.Get(ctx, kube.Policies("trafficpolicies"), mgmt, "shop")
		if err == nil && field(o, "status", "state") != "FAILED" {
			err = fmt.Errorf("status: %s", asJSON(field(o, "status")))
		}
		return err
	})
	return func() {
		is, err := client.Get(s.t.Context(), kind, "corner-tenant", "shop")
		require.NoError(s.t, err)
		if is.GetUID() != was.GetUID() || differenceOf(was, is) != "" {
			s.tally.violate("a user's VirtualService was changed: %s", differenceOf(was, is))
		}
		require.NoError(s.t, client.Delete(s.t.Context(), kind, "corner-tenant", "shop"))
	}
}

// forges creates objects as a user who may edit one namespace.
func (s *soak) forges(user, documents string) func() {
	config, err := s.anyCluster().Config()
	require.NoError(s.t, err)
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	client, err := kube.New(user, config)
	require.NoError(s.t, err)
	s.until(user+" may edit", func(ctx context.Context) error { return client.ApplyYAML(ctx, []byte(documents)) })
	return func() { require.NoError(s.t, client.DeleteYAML(s.t.Context(), []byte(documents))) }
}

func (s *soak) deletesControlPlane() func() {
	client := s.clients[s.anyCluster().Name()]
	istiod, err := client.Get(s.t.Context(), kube.Deployments(), "istio-system", "istiod")
	require.NoError(s.t, err)
	require.NoError(s.t, client.Delete(s.t.Context(), kube.Deployments(), "istio-system", "istiod"))
	return func() { require.NoError(s.t, client.Apply(s.t.Context(), remade(istiod))) }
}

func (s *soak) endsServe(how syscall.Signal) func() {
	s.signal(how)
	select {
	case err := <-s.serve.exited:
		if how == syscall.SIGTERM {
			assert.NoError(s.t, err, "%s", s.serve.log.String())
		}
	case <-time.After(4 * waittest.Soon()):
		require.FailNow(s.t, "meshctl serve does not end")
	}
	return func() {
		s.startServe(promptly...)
		s.health.server.Store(s.serve)
	}
}

func (s *soak) pausesServe() func() {
	s.signal(syscall.SIGSTOP)
	return func() { s.signal(syscall.SIGCONT) }
}

func (s *soak) signal(signal syscall.Signal) {
	s.t.Helper()
	require.NoError(s.t, s.serve.cmd.Process.Signal(signal))
}
