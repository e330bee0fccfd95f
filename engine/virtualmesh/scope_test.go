package virtualmesh

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestScope: where policies count, what is noted for the next server, and why.
func TestScope(t *testing.T) {
	t.Parallel()
	const own = snapshot.DefaultNamespace
	server := func(kept ...string) *multiclusterv1alpha1.Server {
		return &multiclusterv1alpha1.Server{Version: "v1", KeptNamespaces: kept}
	}
	settings := func(namespace string, named []string) *settingsv1.Settings {
		return &settingsv1.Settings{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "settings"}, Spec: settingsv1.SettingsSpec{PolicyNamespaces: named}}
	}
	for name, c := range map[string]struct {
		server *multiclusterv1alpha1.Server
		// observed are namespaces with a policy that the status of a Destination has, and settings what there is.
		observed []string
		settings []*settingsv1.Settings
		counts   []string
		kept     []string
		record   []string
	}{
		"a new installation":                     {observed: []string{"tenant"}, record: []string{own}},
		"an upgrade":                             {server: server(), observed: []string{"b", own, "a"}, kept: []string{"a", "b"}, record: []string{"a", "b", own}},
		"after it, statuses decide nothing":      {server: server("a", own), observed: []string{"a", "b"}, kept: []string{"a"}, record: []string{"a", own}},
		"nothing was in force elsewhere":         {server: server(own), observed: []string{"a"}, record: []string{own}},
		"Settings name some":                     {server: server("a", own), settings: []*settingsv1.Settings{settings(own, []string{"b"})}, counts: []string{"b"}, record: []string{own}},
		"Settings name the own one":              {server: server("a", own), settings: []*settingsv1.Settings{settings(own, []string{own})}, record: []string{own}},
		"Settings name none":                     {server: server("a", own), settings: []*settingsv1.Settings{settings(own, []string{})}, record: []string{own}},
		"Settings are silent":                    {server: server("a", own), settings: []*settingsv1.Settings{settings(own, nil)}, kept: []string{"a"}, record: []string{"a", own}},
		"Settings say everywhere":                {server: server(own), settings: []*settingsv1.Settings{settings(own, []string{"*"})}, counts: []string{"a", "b", "c"}, record: []string{own}},
		"Settings of a tenant say everywhere":    {server: server(own), settings: []*settingsv1.Settings{settings("c", []string{"*"})}, record: []string{own}},
		"Settings that were in force say so now": {server: server("c", own), settings: []*settingsv1.Settings{settings("c", []string{"*"})}, kept: []string{"c"}, record: []string{"c", own}},
	} {
		m := &snapshot.Management{Namespace: own, Settings: c.settings}
		m.KubernetesClusters = append(m.KubernetesClusters, &multiclusterv1alpha1.KubernetesCluster{Status: multiclusterv1alpha1.KubernetesClusterStatus{Server: c.server}})
		for _, namespace := range c.observed {
			destination := &discoveryv1.Destination{}
			destination.Status.AppliedAccessPolicies = []discoveryv1.AppliedAccessPolicy{{Ref: commonv1.ObjectRef{Namespace: namespace, Name: "policy"}}}
			m.Destinations = append(m.Destinations, destination)
		}
		scope := ScopeOf(m)
		assert.Equal(t, c.record, scope.Record(), name)
		assert.True(t, scope.Counts(own), name)
		for _, namespace := range []string{"a", "b", "c"} {
			issues := scope.Issues(snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: namespace, Name: "policy"})
			switch {
			case slices.Contains(c.counts, namespace):
				assert.Empty(t, issues, "%s: %s", name, namespace)
				assert.True(t, scope.Counts(namespace), "%s: %s", name, namespace)
			case slices.Contains(c.kept, namespace):
				require.Len(t, issues, 1, "%s: %s", name, namespace)
				assert.Equal(t, snapshot.NamespaceKept, issues[0].Code, name)
				assert.True(t, scope.Counts(namespace), "%s: %s", name, namespace)
			default:
				require.Len(t, issues, 1, "%s: %s", name, namespace)
				assert.Equal(t, snapshot.NamespaceNotNamed, issues[0].Code, name)
				assert.False(t, scope.Counts(namespace), "%s: %s", name, namespace)
			}
		}
	}
}

// TestSettingsInForce: the oldest of the management plane's namespace; others only where there are none, and some were in
// force before.
func TestSettingsInForce(t *testing.T) {
	t.Parallel()
	m := &snapshot.Management{Namespace: "own"}
	m.KubernetesClusters = append(m.KubernetesClusters, &multiclusterv1alpha1.KubernetesCluster{
		Status: multiclusterv1alpha1.KubernetesClusterStatus{Server: &multiclusterv1alpha1.Server{Version: "v1", KeptNamespaces: []string{"kept", "own"}}},
	})
	add := func(namespace, name string, year int) *settingsv1.Settings {
		s := &settingsv1.Settings{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)}}
		m.Settings = append(m.Settings, s)
		return s
	}
	assert.Nil(t, SettingsInForce(m))
	add("tenant", "settings", 2020)
	assert.Nil(t, SettingsInForce(m))
	kept := add("kept", "settings", 2021)
	assert.Equal(t, kept, SettingsInForce(m))
	younger := add("own", "younger", 2026)
	assert.Equal(t, younger, SettingsInForce(m))
	assert.Equal(t, add("own", "older", 2025), SettingsInForce(m))
}
