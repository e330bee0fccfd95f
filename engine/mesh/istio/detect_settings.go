package istio

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	meshconfig "istio.io/api/mesh/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	settingsKey = "mesh"
	// usualRoot is the root namespace of a MeshConfig that names none
	// (pkg/config/mesh, DefaultMeshConfig), wherever the control plane runs.
	usualRoot = "istio-system"
	// skipTrustDomain has a control plane's proxies accept callers of any
	// trust domain (pilot/pkg/features, SkipValidateTrustDomain).
	skipTrustDomain = "PILOT_SKIP_VALIDATE_TRUST_DOMAIN"
	// dnsCapture makes the sidecars answer DNS queries themselves.
	dnsCapture = "ISTIO_META_DNS_CAPTURE"
)

// settings are those of Istio's MeshConfig that discovery uses.
type settings struct {
	// rootNamespace is where configuration holds for the whole mesh; empty if not known.
	rootNamespace string
	// trustDomain is as written; empty means cluster.local.
	trustDomain string
	// aliases are trust domains that are the same to the mesh as its own; peers are
	// others whose callers it accepts.
	aliases, peers []string
	smartDNS       bool
	// exportTo is nil if objects without exportTo are for all namespaces.
	exportTo *discoveryv1.IstioExportTo
	// pathNormalization is empty for the default.
	pathNormalization string
	// outbound is the mode of outboundTrafficPolicy; empty for the default.
	outbound string
	// inbound is the mode of inboundTrafficPolicy; empty for the default.
	inbound string
	// selectors select the namespaces that are read; nil for all.
	selectors []metav1.LabelSelector
	// visibility is that of ServiceEntries; nil if only their exportTo decides.
	visibility *meshconfig.ServiceEntryVisibility
	// visible is what came of that for the namespace of a mesh that is stored.
	visible string
	// defaults are the parts of defaultTrafficPolicy that are set.
	defaults []string
	// endpoints are as in IstioMesh.EndpointSettings.
	endpoints []string
	// plain: enableAutoMtls is false.
	plain bool
	// localHosts are those of serviceSettings with clusterLocal, sharedHosts those without.
	localHosts, sharedHosts []string
	// ingress is nil for the defaults.
	ingress *discoveryv1.IstioIngress
	// roots are further bundles of root certificates, and remoteRoots says that there
	// may be others which are not known here. See multiRoot.
	roots       []string
	remoteRoots bool
	// isStored says that these are the settings with which the mesh is stored, which do
	// not have the roots.
	isStored bool
}

// settingsMapOf is the name of the ConfigMap with the settings of a control plane.
func settingsMapOf(revision string) string {
	if revision == defaultRevision {
		return settingsName
	}
	return settingsName + "-" + revision
}

// readSettings reads the settings of a control plane. Settings that cannot be read are
// reported and stay as they were last, as in the control plane itself; without that,
// they are Istio's defaults. If the mesh disappeared because of a mistake in its
// settings, so would everything that was generated for it. It returns false for settings
// that exist, for all that is known, and were never read: defaults would be a guess at the
// identities that a mesh trusts.
func readSettings(x *discovery.Index, namespace, revision string, pilot *corev1.Container, mesh snapshot.Ref) (settings, bool) {
	r, name := settingsReader{x, namespace, mesh}, settingsMapOf(revision)
	text, found, known := r.text(name)
	if !known {
		return lastSettings(x, mesh.Name, namespace)
	}
	second, below, known := r.shared(pilot)
	if !known {
		return lastSettings(x, mesh.Name, namespace)
	}
	if !found {
		hint := fmt.Sprintf("if revision %q is installed with other settings, put them there; the control plane reads them from the same place", revision)
		if last, ok := lastSettings(x, mesh.Name, namespace); ok {
			r.report(snapshot.Warning, name, fmt.Sprintf("there is no such ConfigMap with the key %q, so its last settings stay: %s", settingsKey, last), hint)
			return last, true
		}
		if below == "" {
			r.report(snapshot.Warning, name, fmt.Sprintf("there is no such ConfigMap with the key %q, so Istio's defaults are assumed: trust domain cluster.local, no smart DNS", settingsKey), hint)
			return settings{}, true
		}
		r.report(snapshot.Warning, name, fmt.Sprintf("there is no such ConfigMap with the key %q, so only the settings in ConfigMap %s and Istio's defaults are assumed", settingsKey, second), hint)
	}
	for _, of := range []struct{ name, text string }{{second, below}, {name, text}} {
		_, err := parseSettings(of.text)
		if err == nil {
			continue
		}
		config, _ := parseSettings(mergeSettings(below, text)) // what can be read of both
		config.rootNamespace = cmp.Or(config.rootNamespace, usualRoot)
		assumed := "these settings are assumed"
		if last, ok := lastSettings(x, mesh.Name, namespace); ok {
			config, assumed = last, "its last settings stay"
		}
		config.remoteRoots = true // its caCertificates, if any, are not known
		r.report(snapshot.Error, of.name, fmt.Sprintf("its key %q is not a valid MeshConfig (%v); %s: %s", settingsKey, err, assumed, config), "correct it: the control plane does not accept it either")
		return config, true
	}
	config, err := parseSettings(mergeSettings(below, text))
	if err != nil { // each of them is valid, so that both are
		r.report(snapshot.Error, name, fmt.Sprintf("together with ConfigMap %s it is not a valid MeshConfig (%v)", second, err), "correct them")
	}
	config.rootNamespace = cmp.Or(config.rootNamespace, usualRoot)
	return config, true
}

// lastSettings are the settings with which a mesh is stored; false if there are none.
func lastSettings(x *discovery.Index, mesh, namespace string) (settings, bool) {
	last := x.StoredMesh(mesh, namespace)
	if last == nil || last.Spec.Istio == nil {
		return settings{}, false
	}
	spec := last.Spec.Istio
	return settings{
		rootNamespace: cmp.Or(spec.RootNamespace, namespace), trustDomain: spec.TrustDomain, aliases: spec.TrustDomainAliases,
		// What a variable of the control plane adds, it adds again.
		peers:    slices.DeleteFunc(slices.Clone(spec.PeerTrustDomains), func(peer string) bool { return peer == discoveryv1.AnyTrustDomain }),
		smartDNS: spec.SmartDnsProxyingEnabled, exportTo: spec.DefaultExportTo, pathNormalization: spec.PathNormalization, isStored: true,
		outbound: spec.OutboundTrafficPolicy, inbound: spec.InboundTrafficPolicy, selectors: spec.DiscoverySelectors, visible: spec.ServiceEntryVisibility,
		defaults: spec.DefaultTrafficPolicy, endpoints: spec.EndpointSettings, plain: spec.PlainByDefault, ingress: spec.Ingress,
		localHosts: spec.LocalHosts, sharedHosts: spec.SharedHosts,
	}, true
}

// String describes c in an issue.
func (c settings) String() string {
	domain, dns := c.trustDomain, "no smart DNS"
	if domain == "" {
		domain = "cluster.local"
	}
	if c.smartDNS {
		dns = "smart DNS"
	}
	return "trust domain " + domain + ", " + dns
}

// parseSettings reads MeshConfig YAML as Istio does, but ignores unknown fields and
// values, which a newer Istio may have. With an error it returns what could be read.
func parseSettings(text string) (settings, error) {
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return settings{}, fmt.Errorf("not YAML: %w", err)
	}
	if string(raw) == "null" {
		return settings{}, nil
	}
	var config meshconfig.MeshConfig
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(raw, &config); err != nil {
		return salvageSettings(raw), protoError(err)
	}
	out := settings{
		rootNamespace: config.GetRootNamespace(),
		trustDomain:   config.GetTrustDomain(),
		aliases:       sortedSet(config.GetTrustDomainAliases()),
		smartDNS:      isTrue(config.GetDefaultConfig().GetProxyMetadata()[dnsCapture]),
		exportTo: exportToOf(discoveryv1.IstioExportTo{
			Services:         sortedSet(config.GetDefaultServiceExportTo()),
			VirtualServices:  sortedSet(config.GetDefaultVirtualServiceExportTo()),
			DestinationRules: sortedSet(config.GetDefaultDestinationRuleExportTo()),
		}),
	}
	if n := config.GetPathNormalization().GetNormalization(); n != meshconfig.MeshConfig_ProxyPathNormalization_DEFAULT {
		out.pathNormalization = n.String()
	}
	readFilters(&config, &out)
	var peers []string
	for _, root := range config.GetCaCertificates() {
		peers = append(peers, root.GetTrustDomains()...)
		if root.GetPem() != "" {
			out.roots = append(out.roots, root.GetPem())
		} else if root.GetSpiffeBundleUrl() != "" {
			out.remoteRoots = true
		}
	}
	out.peers = sortedSet(peers)
	return out, nil
}

// exportToOf is nil if everything is exported to all namespaces.
func exportToOf(e discoveryv1.IstioExportTo) *discoveryv1.IstioExportTo {
	for _, list := range []*[]string{&e.Services, &e.VirtualServices, &e.DestinationRules} {
		if slices.Contains(*list, "*") {
			*list = nil
		}
	}
	if len(e.Services)+len(e.VirtualServices)+len(e.DestinationRules) == 0 {
		return nil
	}
	return &e
}

// sortedSet is list without repetitions and empty strings, ascending; nil if
// nothing is left.
func sortedSet(list []string) []string {
	var out []string
	for _, s := range list {
		if s != "" {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// protoError is err with a text that is the same in every build (protojson varies its
// spaces), and without the position in JSON, which is not what the user wrote.
func protoError(err error) error {
	text := strings.ReplaceAll(err.Error(), "\u00a0", " ")
	if _, rest, ok := strings.Cut(text, "): "); ok {
		text = rest
	}
	return errors.New(text)
}

// salvageSettings reads the fields that matter when another one is wrong.
func salvageSettings(raw []byte) settings {
	var domain struct {
		TrustDomain string `json:"trustDomain"`
	}
	var root struct {
		RootNamespace string `json:"rootNamespace"`
	}
	var aliases struct {
		TrustDomainAliases []string `json:"trustDomainAliases"`
	}
	var dns struct {
		DefaultConfig struct {
			ProxyMetadata map[string]any `json:"proxyMetadata"`
		} `json:"defaultConfig"`
	}
	var out settings
	if yaml.Unmarshal(raw, &domain) == nil {
		out.trustDomain = domain.TrustDomain
	}
	if yaml.Unmarshal(raw, &root) == nil {
		out.rootNamespace = root.RootNamespace
	}
	if yaml.Unmarshal(raw, &aliases) == nil {
		out.aliases = sortedSet(aliases.TrustDomainAliases)
	}
	if yaml.Unmarshal(raw, &dns) == nil {
		out.smartDNS = isTrue(fmt.Sprint(dns.DefaultConfig.ProxyMetadata[dnsCapture]))
	}
	return out
}

// isTrue reads a setting as Istio's agent does: "true", "1", "T" and so on.
func isTrue(s string) bool {
	b, err := strconv.ParseBool(s)
	return err == nil && b
}
