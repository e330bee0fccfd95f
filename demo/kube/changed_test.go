package kube_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/errors"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
)

// TestChanged: whoever looks when something has changed, and only then, sees what is made and what is deleted.
func TestChanged(t *testing.T) {
	t.Parallel()
	config, err := sandboxtest.APIServers(t, 1)[0].Config()
	require.NoError(t, err)
	client, err := kube.New("cluster-1", config)
	require.NoError(t, err)
	changed := client.Changed(t.Context(), "default", kube.Secrets(), kube.Pods())
	there := false
	until := func(what string, want bool) {
		t.Helper()
		waittest.Until(t, what, func() bool {
			select {
			case <-changed:
				_, err := client.Get(t.Context(), kube.Secrets(), "default", "one")
				require.True(t, err == nil || errors.IsNotFound(err), "%v", err)
				there = err == nil
			default:
			}
			return there == want
		})
	}
	<-changed // the first one, before there is anything
	require.NoError(t, client.ApplyYAML(t.Context(), []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: one, namespace: default}\n")))
	until("the Secret is seen", true)
	require.NoError(t, client.Delete(t.Context(), kube.Secrets(), "default", "one"))
	until("it is seen that it is gone", false)
}
