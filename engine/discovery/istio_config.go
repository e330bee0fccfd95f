package discovery

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	meshconfig "istio.io/api/mesh/v1alpha1"
	"sigs.k8s.io/yaml"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	istioConfigKey = "mesh"
	// istioDefaultRoot is the root namespace of a MeshConfig that names none
	// (pkg/config/mesh, DefaultMeshConfig), wherever the control plane runs.
	istioDefaultRoot = "istio-system"
	// istioSkipTrustDomain has a control plane's proxies accept callers of any
	// trust domain (pilot/pkg/features, SkipValidateTrustDomain).
	istioSkipTrustDomain = "PILOT_SKIP_VALIDATE_TRUST_DOMAIN"
	// istioDNSCapture makes the sidecars answer DNS queries themselves.
	istioDNSCapture = "ISTIO_META_DNS_CAPTURE"
)

// istioConfig are the settings of Istio's MeshConfig that discovery uses.
type istioConfig struct {
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
	// roots are further bundles of root certificates, and remoteRoots says that there
	// may be others which are not known here. See istioMultiRoot.
	roots       []string
	remoteRoots bool
	// isStored says that these are the settings with which the mesh is stored, which do
	// not have the roots.
	isStored bool
}

// istioConfigMapOf is the name of the ConfigMap with the settings of a control plane.
func istioConfigMapOf(revision string) string {
	if revision == istioDefault {
		return istioConfigMapName
	}
	return istioConfigMapName + "-" + revision
}

// istioConfig reads the settings of a control plane. Settings that cannot be read are
// reported and stay as they were last, as in the control plane itself; without that,
// they are Istio's defaults. If the mesh disappeared because of a mistake in its
// settings, so would everything that was generated for it. It returns false for settings
// that exist, for all that is known, and were never read: defaults would be a guess at the
// identities that a mesh trusts.
func (x *Index) istioConfig(namespace, revision string, mesh snapshot.Ref) (istioConfig, bool) {
	name := istioConfigMapOf(revision)
	issue := snapshot.Issue{
		Code: snapshot.MeshUnreadable, Severity: snapshot.Error, Target: mesh,
		Ref: snapshot.Ref{Kind: snapshot.ConfigMap, Cluster: x.Cluster, Namespace: namespace, Name: name},
	}
	cm, unread := x.configMap(namespace, name)
	switch {
	case unread == nil:
	case cm != nil:
		x.reportUnread(*unread, mesh, "so its settings stay as they were read last")
	default:
		last, ok := x.lastIstioConfig(mesh.Name, namespace)
		if ok {
			x.reportUnread(*unread, mesh, "so the mesh keeps its last settings: "+last.String())
		} else {
			x.reportUnread(*unread, mesh, "so its control plane is left out: the trust domain is not known")
		}
		return last, ok
	}
	text, found := "", false
	if cm != nil {
		text, found = cm.Data[istioConfigKey]
	}
	if !found {
		issue.Severity = snapshot.Warning
		issue.Hint = fmt.Sprintf("if revision %q is installed with other settings, put them there; the control plane reads them from the same place", revision)
		if last, ok := x.lastIstioConfig(mesh.Name, namespace); ok {
			issue.Message = fmt.Sprintf("there is no such ConfigMap with the key %q, so its last settings stay: %s", istioConfigKey, last)
			x.Report(issue)
			return last, true
		}
		issue.Message = fmt.Sprintf("there is no such ConfigMap with the key %q, so Istio's defaults are assumed: trust domain cluster.local, no smart DNS", istioConfigKey)
		x.Report(issue)
		return istioConfig{}, true
	}
	config, err := parseIstioConfig(text)
	config.rootNamespace = cmp.Or(config.rootNamespace, istioDefaultRoot)
	if err != nil {
		assumed := "these settings are assumed"
		if last, ok := x.lastIstioConfig(mesh.Name, namespace); ok {
			config, assumed = last, "its last settings stay"
		}
		config.remoteRoots = true // its caCertificates, if any, are not known
		issue.Message = fmt.Sprintf("its key %q is not a valid MeshConfig (%v); %s: %s", istioConfigKey, err, assumed, config)
		issue.Hint = "correct it: the control plane does not accept it either"
		x.Report(issue)
	}
	return config, true
}

// lastIstioConfig are the settings with which a mesh is stored; false if there are none.
func (x *Index) lastIstioConfig(mesh, namespace string) (istioConfig, bool) {
	last := x.storedMesh(mesh, namespace)
	if last == nil || last.Spec.Istio == nil {
		return istioConfig{}, false
	}
	spec := last.Spec.Istio
	return istioConfig{
		rootNamespace: cmp.Or(spec.RootNamespace, namespace), trustDomain: spec.TrustDomain, aliases: spec.TrustDomainAliases,
		// What a variable of the control plane adds, it adds again.
		peers:    slices.DeleteFunc(slices.Clone(spec.PeerTrustDomains), func(peer string) bool { return peer == discoveryv1.AnyTrustDomain }),
		smartDNS: spec.SmartDnsProxyingEnabled, exportTo: spec.DefaultExportTo, pathNormalization: spec.PathNormalization, isStored: true,
	}, true
}

// String describes c in an issue.
func (c istioConfig) String() string {
	domain, dns := c.trustDomain, "no smart DNS"
	if domain == "" {
		domain = "cluster.local"
	}
	if c.smartDNS {
		dns = "smart DNS"
	}
	return "trust domain " + domain + ", " + dns
}

// parseIstioConfig reads MeshConfig YAML as Istio does, but ignores unknown fields and
// values, which a newer Istio may have. With an error it returns what could be read.
func parseIstioConfig(text string) (istioConfig, error) {
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return istioConfig{}, fmt.Errorf("not YAML: %w", err)
	}
	if string(raw) == "null" {
		return istioConfig{}, nil
	}
	var config meshconfig.MeshConfig
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(raw, &config); err != nil {
		return salvageIstioConfig(raw), protoError(err)
	}
	out := istioConfig{
		rootNamespace: config.GetRootNamespace(),
		trustDomain:   config.GetTrustDomain(),
		aliases:       sortedSet(config.GetTrustDomainAliases()),
		smartDNS:      isTrue(config.GetDefaultConfig().GetProxyMetadata()[istioDNSCapture]),
		exportTo: exportToOf(discoveryv1.IstioExportTo{
			Services:         sortedSet(config.GetDefaultServiceExportTo()),
			VirtualServices:  sortedSet(config.GetDefaultVirtualServiceExportTo()),
			DestinationRules: sortedSet(config.GetDefaultDestinationRuleExportTo()),
		}),
	}
	if n := config.GetPathNormalization().GetNormalization(); n != meshconfig.MeshConfig_ProxyPathNormalization_DEFAULT {
		out.pathNormalization = n.String()
	}
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

// ReadProxyMetadata reports whether a variable that a MeshConfig sets for proxies is read.
func ReadProxyMetadata(name string) bool { return name == istioDNSCapture }

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

// salvageIstioConfig reads the fields that matter when another one is wrong.
func salvageIstioConfig(raw []byte) istioConfig {
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
	var out istioConfig
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
		out.smartDNS = isTrue(fmt.Sprint(dns.DefaultConfig.ProxyMetadata[istioDNSCapture]))
	}
	return out
}

// isTrue reads a setting as Istio's agent does: "true", "1", "T" and so on.
func isTrue(s string) bool {
	b, err := strconv.ParseBool(s)
	return err == nil && b
}
