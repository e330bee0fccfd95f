package netpolicy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/engine/netpolicy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestAsk has one connection, from web in namespace front to port 9080 of cart in namespace shop, and the specs of NetworkPolicies by
// namespace.
func TestAsk(t *testing.T) {
	t.Parallel()
	const toCart = "podSelector: {matchLabels: {app: cart}}\n"
	for name, c := range map[string]struct {
		shop, front []string
		want        netpolicy.Verdict
		by          []string
	}{
		"none":               {},
		"one for other pods": {shop: []string{"podSelector: {matchLabels: {app: other}}"}},
		"nothing in":         {shop: []string{"podSelector: {}"}, want: netpolicy.Stays, by: []string{"shop/0"}},
		"egress only":        {shop: []string{"podSelector: {}\npolicyTypes: [Egress]"}},
		"all in":             {shop: []string{"podSelector: {}\ningress: [{}]"}},
		"they add up":        {shop: []string{"podSelector: {}", toCart + "ingress: [{from: [{namespaceSelector: {}}]}]"}},
		"all of a namespace": {shop: []string{toCart + "ingress: [{from: [{namespaceSelector: {matchLabels: {team: front}}}]}]"}},
		"another namespace":  {shop: []string{toCart + "ingress: [{from: [{namespaceSelector: {matchLabels: {team: back}}}]}]"}, want: netpolicy.Stays, by: []string{"shop/0"}},
		"its own namespace":  {shop: []string{toCart + "ingress: [{from: [{podSelector: {}}]}]"}, want: netpolicy.Stays, by: []string{"shop/0"}},
		"pods there":         {shop: []string{toCart + "ingress: [{from: [{namespaceSelector: {}, podSelector: {matchLabels: {app: web}}}]}]"}},
		"other pods there":   {shop: []string{toCart + "ingress: [{from: [{namespaceSelector: {}, podSelector: {matchLabels: {app: db}}}]}]"}, want: netpolicy.Stays, by: []string{"shop/0"}},
		"the port":           {shop: []string{toCart + "ingress: [{ports: [{port: 9080}]}]"}},
		"a range":            {shop: []string{toCart + "ingress: [{ports: [{port: 9000, endPort: 9090}]}]"}},
		"another port":       {shop: []string{toCart + "ingress: [{ports: [{port: 80}]}]"}, want: netpolicy.Stays, by: []string{"shop/0"}},
		"another range":      {shop: []string{toCart + "ingress: [{ports: [{port: 80, endPort: 90}]}]"}, want: netpolicy.Stays, by: []string{"shop/0"}},
		"another protocol":   {shop: []string{toCart + "ingress: [{ports: [{port: 9080, protocol: UDP}]}]"}, want: netpolicy.Stays, by: []string{"shop/0"}},
		"a known name":       {shop: []string{toCart + "ingress: [{ports: [{port: http}]}]"}},
		"another known name": {shop: []string{toCart + "ingress: [{ports: [{port: admin}]}]"}, want: netpolicy.Stays, by: []string{"shop/0"}},
		"an unknown name":    {shop: []string{toCart + "ingress: [{ports: [{port: grpc}]}]"}, want: netpolicy.MayPass, by: []string{"shop/0"}},
		"the address":        {shop: []string{toCart + "ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8}}]}]"}},
		"excepted":           {shop: []string{toCart + "ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}}]}]"}, want: netpolicy.Stays, by: []string{"shop/0"}},
		"two of both sides": {
			shop: []string{"podSelector: {}"}, front: []string{"podSelector: {}\npolicyTypes: [Egress]"}, want: netpolicy.Stays, by: []string{"front/0", "shop/0"},
		},
		"nothing out":     {front: []string{"podSelector: {}\npolicyTypes: [Ingress, Egress]"}, want: netpolicy.Stays, by: []string{"front/0"}},
		"egress by rules": {front: []string{"podSelector: {}\negress: [{to: [{namespaceSelector: {matchLabels: {team: back}}}]}]"}, want: netpolicy.Stays, by: []string{"front/0"}},
		"out to the port": {front: []string{"podSelector: {}\negress: [{to: [{namespaceSelector: {}}], ports: [{port: http}]}]"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := &snapshot.Cluster{Name: "east"}
			for _, ns := range []string{"front", "shop"} {
				in.Namespaces = append(in.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns, Labels: map[string]string{"team": ns}}})
			}
			add := func(namespace string, specs []string) {
				for i, text := range specs {
					o := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: string(rune('0' + i))}}
					require.NoError(t, yaml.UnmarshalStrict([]byte(text), &o.Spec))
					in.NetworkPolicies = append(in.NetworkPolicies, o)
				}
			}
			add("front", c.front)
			add("shop", c.shop)
			verdict, by := netpolicy.New(in).Ask(
				netpolicy.Side{Namespace: "front", Labels: map[string]string{"app": "web"}, Addresses: []string{"10.1.2.3"}},
				netpolicy.Side{Namespace: "shop", Labels: map[string]string{"app": "cart"}, Ports: map[string]uint32{"http": 9080, "admin": 9081}}, 9080)
			assert.Equal(t, c.want, verdict)
			var names []string
			for _, ref := range by {
				assert.Equal(t, "east", ref.Cluster)
				names = append(names, ref.Namespace+"/"+ref.Name)
			}
			assert.Equal(t, c.by, names)
		})
	}
}

// TestOutside: who comes from outside of the cluster has no labels, and often an address that nobody knows.
func TestOutside(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]netpolicy.Verdict{
		"podSelector: {}\ningress: [{}]":                                                 netpolicy.Passes,
		"podSelector: {}\ningress: [{from: [{namespaceSelector: {}}]}]":                  netpolicy.Stays,
		"podSelector: {}\ningress: [{from: [{ipBlock: {cidr: 0.0.0.0/0}}]}]":             netpolicy.Passes,
		"podSelector: {}\ningress: [{from: [{ipBlock: {cidr: 192.0.2.0/24}}]}]":          netpolicy.MayPass,
		"podSelector: {}\ningress: [{from: [{ipBlock: {cidr: 0.0.0.0/0, except: []}}]}]": netpolicy.Passes,
	} {
		o := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}}
		require.NoError(t, yaml.UnmarshalStrict([]byte(text), &o.Spec))
		verdict, _ := netpolicy.New(&snapshot.Cluster{NetworkPolicies: []*networkingv1.NetworkPolicy{o}}).Ask(netpolicy.Side{}, netpolicy.Side{Namespace: "shop"}, 15443)
		assert.Equal(t, want, verdict, text)
	}
}
