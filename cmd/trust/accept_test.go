package trust

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func TestAccept(t *testing.T) {
	t.Parallel()
	mesh := func(name, domain string, aliases ...string) *discoveryv1.Mesh {
		m := &discoveryv1.Mesh{ObjectMeta: metav1.ObjectMeta{Namespace: "gloo-mesh", Name: name}}
		m.Spec.Istio = &discoveryv1.IstioMesh{TrustDomain: domain, TrustDomainAliases: aliases}
		return m
	}
	meshes := []*discoveryv1.Mesh{mesh("one", "one.example"), mesh("two", "two.example", "old.example"), mesh("stranger", "three.example")}
	root := strings.Repeat("ab", 32)
	for name, c := range map[string]struct {
		before  string
		claims  []string
		meshes  []*discoveryv1.Mesh
		value   string
		refused string
	}{
		"what all have":                   {value: "one=one.example two=two.example,old.example"},
		"one of them":                     {claims: []string{"two=new.example"}, value: "two=new.example"},
		"a root":                          {claims: []string{strings.ToUpper(root)}, value: root},
		"beside others":                   {before: root + " one=one.example", claims: []string{"two=two.example"}, value: root + " one=one.example two=two.example"},
		"a trust domain that another had": {before: "one=a.example,b.example", claims: []string{"two=b.example"}, value: "one=a.example two=b.example"},
		"again":                           {before: "one=one.example two=two.example,old.example", value: ""},
		"garbage":                         {claims: []string{"one"}, refused: `"one" is neither MESH=TRUSTDOMAIN nor the fingerprint of a root`},
		"no trust domain":                 {claims: []string{"one="}, refused: "is neither"},
		"not a member":                    {claims: []string{"stranger=three.example"}, refused: "mesh stranger is not a member"},
		"one for two":                     {meshes: []*discoveryv1.Mesh{meshes[0], mesh("two", "one.example")}, refused: "one and two have a trust domain in common"},
		"nothing is said":                 {meshes: []*discoveryv1.Mesh{mesh("one", "")}, refused: "no member says"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vm := &networkingv1.VirtualMesh{ObjectMeta: metav1.ObjectMeta{Namespace: "gloo-mesh", Name: "vm", Annotations: map[string]string{snapshot.TrustAcceptAnnotation: c.before}}}
			vm.Spec.Meshes = []commonv1.ObjectRef{{Namespace: "gloo-mesh", Name: "one"}, {Namespace: "gloo-mesh", Name: "two"}}
			vm.Spec.MtlsConfig = &networkingv1.MTLSConfig{Shared: &networkingv1.SharedTrust{TrustDomainPerMesh: true}}
			all := meshes
			if c.meshes != nil {
				all = c.meshes
			}
			got, err := accept(vm, all, c.claims)
			if c.refused != "" {
				require.ErrorContains(t, err, c.refused)
				return
			}
			require.NoError(t, err)
			if c.value == "" {
				assert.Empty(t, got.annotations)
				return
			}
			assert.Equal(t, c.value, *got.annotations[snapshot.TrustAcceptAnnotation])
			assert.Contains(t, acceptPlan(vm, got), "  "+strings.Fields(c.value)[0]+"\n")
		})
	}
}
