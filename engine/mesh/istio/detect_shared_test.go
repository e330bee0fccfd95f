package istio

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/discovery/clustertest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestMergeSettings: settings over others, as Istio merges them.
func TestMergeSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		below, above string
		want         settings
	}{
		"only above":                        {above: "trustDomain: a", want: settings{trustDomain: "a"}},
		"only below":                        {below: "trustDomain: b", want: settings{trustDomain: "b"}},
		"above wins":                        {below: "trustDomain: b\nrootNamespace: r", above: "trustDomain: a", want: settings{trustDomain: "a", rootNamespace: "r"}},
		"null says nothing":                 {below: "trustDomain: b", above: "trustDomain: null", want: settings{trustDomain: "b"}},
		"another name of the field":         {below: "trust_domain: b", above: "trustDomain: a", want: settings{trustDomain: "a"}},
		"another name of the field above":   {below: "trustDomain: b", above: "trust_domain: a", want: settings{trustDomain: "a"}},
		"both names":                        {below: "x: 1", above: "trust_domain: a\ntrustDomain: b", want: settings{trustDomain: "b"}},
		"aliases are added":                 {below: "trustDomainAliases: [b]", above: "trustDomainAliases: [a]", want: settings{aliases: []string{"a", "b"}}},
		"aliases by another name are added": {below: "trust_domain_aliases: [b]", above: "trustDomainAliases: [a]", want: settings{aliases: []string{"a", "b"}}},
		"lists are replaced": {
			below: "defaultServiceExportTo: [\".\"]", above: "defaultServiceExportTo: [other]",
			want: settings{exportTo: &discoveryv1.IstioExportTo{Services: []string{"other"}}},
		},
		"lists are emptied": {below: "defaultServiceExportTo: [\".\"]", above: "defaultServiceExportTo: []"},
		"metadata of proxies is merged": {
			below: "defaultConfig: {proxyMetadata: {ISTIO_META_DNS_CAPTURE: \"true\"}}", above: "defaultConfig: {proxyMetadata: {OTHER: x}}", want: settings{smartDNS: true},
		},
		"metadata of proxies is replaced by name": {
			below: "defaultConfig: {proxyMetadata: {ISTIO_META_DNS_CAPTURE: \"true\"}}", above: "defaultConfig: {proxy_metadata: {ISTIO_META_DNS_CAPTURE: \"false\"}}",
		},
		"messages are replaced": {
			below: "pathNormalization: {normalization: MERGE_SLASHES}", above: "pathNormalization: {}",
		},
		"not YAML below":  {below: "a:\n\tb: 1", above: "trustDomain: a", want: settings{trustDomain: "a"}},
		"comment only":    {below: "# nothing", above: "trustDomain: a", want: settings{trustDomain: "a"}},
		"a list below":    {below: "- a", above: "trustDomain: a", want: settings{trustDomain: "a"}},
		"nothing at all":  {},
		"comments in two": {below: "# one", above: "# two"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseSettings(mergeSettings(c.below, c.above))
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}

// TestSharedSettings: the ConfigMap that a control plane names is asked for, and what is wrong with it is said.
func TestSharedSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env    corev1.EnvVar
		shared *string
		unread bool
		want   string // the trust domain; empty if the control plane is left out
		issue  string
	}{
		"below its own":     {env: corev1.EnvVar{Name: sharedSettings, Value: "users"}, shared: new("trustDomain: b.example"), want: "b.example"},
		"not named":         {env: corev1.EnvVar{Name: "OTHER", Value: "users"}, shared: new("trustDomain: b.example"), want: "cluster.local"},
		"not there":         {env: corev1.EnvVar{Name: sharedSettings, Value: "users"}, want: "cluster.local", issue: "goes on without it"},
		"not valid":         {env: corev1.EnvVar{Name: sharedSettings, Value: "users"}, shared: new("trustDomain: [a]"), want: "cluster.local", issue: "not a valid MeshConfig"},
		"never read":        {env: corev1.EnvVar{Name: sharedSettings, Value: "users"}, unread: true, issue: "left out"},
		"name is elsewhere": {env: corev1.EnvVar{Name: sharedSettings, ValueFrom: &corev1.EnvVarSource{}}, shared: new("trustDomain: b.example"), want: "cluster.local", issue: "gets its value from elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := clustertest.New("cluster-1")
			d := b.Istiod(defaultRevision)
			pilot := pilotOf(d)
			pilot.Env = append(pilot.Env, c.env)
			b.ConfigMaps[0].Data[settingsKey] = "rootNamespace: istio-system"
			if c.shared != nil {
				cm := b.ConfigMaps[0].DeepCopy()
				cm.Name, cm.Data = "users", map[string]string{settingsKey: *c.shared}
				b.ConfigMaps = append(b.ConfigMaps, cm)
			}
			if c.unread {
				b.Unread = []snapshot.Unread{{Ref: configMapRef("users"), Reason: "no"}}
			}
			assert.Equal(t, c.env.Value != "" && c.env.Name == sharedSettings, len(detectors.ConfigMaps(b.Cluster)) == 3, "it is asked for")
			found := discovery.Discover(b.Cluster, discovery.Options{Detectors: detectors})
			if c.want == "" {
				assert.Empty(t, found.Meshes)
			} else {
				require.Len(t, found.Meshes, 1)
				plan := &snapshot.MeshPlan{Mesh: found.Meshes[0], TrustDomain: snapshot.DefaultTrustDomain}
				describe(plan)
				assert.Equal(t, c.want, plan.TrustDomain)
			}
			if c.issue == "" {
				assert.Empty(t, found.Issues)
				return
			}
			require.Len(t, found.Issues, 1)
			assert.Contains(t, found.Issues[0].Message, c.issue)
		})
	}
}
