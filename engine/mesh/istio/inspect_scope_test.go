package istio

import (
	"testing"

	"github.com/stretchr/testify/assert"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestWhereRulesApply: for whom a DestinationRule takes effect follows from where it is
// and to whom it is exported, as Istio looks for it.
func TestWhereRulesApply(t *testing.T) {
	t.Parallel()
	private := &discoveryv1.IstioExportTo{DestinationRules: []string{"."}}
	for name, c := range map[string]struct {
		in       string
		exportTo []string
		defaults *discoveryv1.IstioExportTo
		want     string // as in a sentence; - for nobody
		hidden   bool
	}{
		"next to the service":                    {in: "shop"},
		"next to the service, for some":          {in: "shop", exportTo: []string{"b", "a", "b"}, want: ", for callers in namespaces a, b"},
		"next to the service, for many":          {in: "shop", exportTo: []string{"a", "b", "c", "d", "e"}, want: ", for callers in namespaces a, b, c and 2 more"},
		"next to the service, for itself":        {in: "shop", exportTo: []string{"."}, want: ", for callers in namespace shop"},
		"next to the service, by default":        {in: "shop", defaults: private, want: ", for callers in namespace shop"},
		"not by default":                         {in: "shop", exportTo: []string{"*"}, defaults: private},
		"next to the service, for nobody":        {in: "shop", exportTo: []string{"~"}, want: "-"},
		"of a tenant":                            {in: "tenant", want: ", for callers in namespace tenant"},
		"of a tenant, for itself":                {in: "tenant", exportTo: []string{"."}, want: ", for callers in namespace tenant"},
		"of a tenant, for others":                {in: "tenant", exportTo: []string{"shop"}, want: "-"},
		"in the root namespace":                  {in: "root", hidden: true},
		"in the root namespace, for itself":      {in: "root", exportTo: []string{"."}, want: ", for callers in namespace root"},
		"in the root namespace, for some":        {in: "root", exportTo: []string{"shop"}, want: ", for callers in namespace shop", hidden: true},
		"next to the control plane, not in root": {in: "istio-system", want: ", for callers in namespace istio-system"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := handWrittenObject{ref: snapshot.Ref{Kind: snapshot.DestinationRule, Cluster: "west", Namespace: c.in, Name: "a"}, exportTo: c.exportTo}
			to, hidden := o.ruleFor(&snapshot.HostQuery{
				Host: "cart.shop.svc.cluster.local", Home: "shop", Mesh: &snapshot.MeshPlan{Namespace: "istio-system", RootNamespace: "root", ExportTo: c.defaults},
			})
			got := to.phrase()
			if to.none() {
				got = "-"
			}
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.hidden, hidden)
		})
	}
}

// TestDefaultExportTo: what an object does not say, the settings of the mesh say.
func TestDefaultExportTo(t *testing.T) {
	t.Parallel()
	mesh := &snapshot.MeshPlan{ExportTo: &discoveryv1.IstioExportTo{Services: []string{"~"}, VirtualServices: []string{"."}, DestinationRules: []string{"shop"}}}
	seen := func(kind snapshot.Kind, exportTo ...string) callerNamespaces {
		return handWrittenObject{ref: snapshot.Ref{Kind: kind, Namespace: "tenant"}, exportTo: exportTo}.seenBy(mesh)
	}
	all := callerNamespaces{all: true}
	assert.True(t, seen(snapshot.ServiceEntry).none())
	assert.Equal(t, all, seen(snapshot.ServiceEntry, "*"))
	assert.Equal(t, callerNamespaces{names: []string{"tenant"}}, seen(snapshot.VirtualService))
	assert.Equal(t, all, seen(snapshot.DestinationRule), "of names in defaultDestinationRuleExportTo Istio reads none")
	mesh.ExportTo = nil
	assert.Equal(t, all, seen(snapshot.VirtualService))
	assert.Equal(t, all, seen(snapshot.ServiceEntry))

	assert.True(t, callerNamespaces{names: []string{"tenant"}}.among([]string{"shop"}).none())
	assert.Equal(t, callerNamespaces{names: []string{"tenant"}}, callerNamespaces{names: []string{"a", "tenant"}}.among([]string{"shop", "tenant"}))
	assert.Equal(t, all, all.among([]string{"shop"}))
	assert.Equal(t, callerNamespaces{names: []string{"tenant"}}, callerNamespaces{names: []string{"tenant"}}.among(nil))
}
