package wizards

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "github.com/meshctl/meshctl/engine/api/rbac/v1"
	"github.com/meshctl/meshctl/engine/rbac"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// anything is what a Role has for any; it has to be written.
const anything = "*"

// anywhere is any namespace of any cluster.
const anywhere = "*.*"

// scopeOf is a kind that a Role is about.
type scopeOf struct {
	part, text string
	flags      []string
}

// scopesOfRole are the kinds that a Role is about, with the flags of their scopes.
func scopesOfRole() []scopeOf {
	return []scopeOf{
		{"trafficPolicyScopes", "TrafficPolicies", []string{"tp-actions", "tp-services", "tp-callers"}},
		{"accessPolicyScopes", "AccessPolicies", []string{"ap-services", "ap-callers"}},
		{"virtualMeshScopes", "VirtualMeshes", []string{"vm-actions", "vm-mesh"}},
		{"virtualDestinationScopes", "VirtualDestinations", []string{"vd-virtual-mesh", "vd-mesh", "vd-services", "vd-listed"}},
		{"accessLogRecordScopes", "AccessLogRecords", []string{"alr-workloads"}},
		{"wasmDeploymentScopes", "WasmDeployments", []string{"wasm-workloads"}},
	}
}

// Role is the form of Roles: one scope for each kind. Roles with several are edited as manifests.
func Role() *Form {
	f := &Form{Kind: snapshot.Role, sections: []section{{"Kinds", askScopes}, {"Scopes", askReach}}}
	var parts []string
	for _, s := range scopesOfRole() {
		parts = append(parts, s.part)
	}
	f.requires = []requirement{{strings.Join(parts, "|"), "what may be written, such as --tp-actions, --tp-services and --tp-callers, or --ap-services and --ap-callers"}}
	add := func(flag, path, usage string, c codec) {
		f.Fields = append(f.Fields, Field{Flag: flag, Path: path, Usage: usage, codec: c})
	}
	const place = "NAMESPACE.CLUSTER or NAME.NAMESPACE.CLUSTER, with * for any"
	add("tp-actions", "trafficPolicyScopes[0].trafficPolicyActions", "fields of TrafficPolicies that may be written: ALL, TRAFFIC_SHIFT, REQUEST_TIMEOUT, …", words("field"))
	add("tp-services", "trafficPolicyScopes[0].destinationSelectors", "services that TrafficPolicies may select: "+place, each("services", parseServices, formatServices))
	add("tp-callers", "trafficPolicyScopes[0].workloadSelectors", "callers whose requests they may change: NAMESPACE.CLUSTER[,LABEL=VALUE]", each("workloads", parseWorkloads, formatWorkloads))
	add("ap-services", "accessPolicyScopes[0].destinationSelectors", "services that AccessPolicies may select: "+place, each("services", parseServices, formatServices))
	add("ap-callers", "accessPolicyScopes[0].identitySelectors", "callers that they may name: "+place, each("accounts", parseIdentities, formatIdentities))
	add("vm-actions", "virtualMeshScopes[0].virtualMeshActions", "fields of VirtualMeshes that may be written: ALL, MTLS_CONFIG, FEDERATION, GLOBAL_ACCESS_POLICY", words("field"))
	add("vm-mesh", "virtualMeshScopes[0].meshRefs", "mesh that may be a member, as namespace/name, or */*", each("object", parseObject, formatObject))
	add("vd-virtual-mesh", "virtualDestinationScopes[0].virtualMeshRefs", "VirtualMesh in which VirtualDestinations may be visible, as namespace/name, or */*", each("object", parseObject, formatObject))
	add("vd-mesh", "virtualDestinationScopes[0].meshRefs", "mesh in which they may be visible, as namespace/name, or */*", each("object", parseObject, formatObject))
	add("vd-services", "virtualDestinationScopes[0].destinationSelectors", "services that may stand behind them by selectors: "+place, each("services", parseServices, formatServices))
	add("vd-listed", "virtualDestinationScopes[0].destinations", "services that may be listed behind them: "+place, each("services", parseListed, formatListed))
	add("alr-workloads", "accessLogRecordScopes[0].workloadSelectors", "workloads whose requests AccessLogRecords may log: NAMESPACE.CLUSTER[,LABEL=VALUE]", each("workloads", parseWorkloads, formatWorkloads))
	add("wasm-workloads", "wasmDeploymentScopes[0].workloadSelectors", "workloads on which WasmDeployments may be: NAMESPACE.CLUSTER[,LABEL=VALUE]", each("workloads", parseWorkloads, formatWorkloads))
	return f
}

// TrafficPolicyActions are the fields that a Role may let write in TrafficPolicies, and VirtualMeshActions those in VirtualMeshes.
func TrafficPolicyActions() []string {
	return asStrings(rbacv1.TrafficPolicyActionAll, rbacv1.TrafficPolicyActionTrafficShift, rbacv1.TrafficPolicyActionFaultInjection,
		rbacv1.TrafficPolicyActionRequestTimeout, rbacv1.TrafficPolicyActionRetries, rbacv1.TrafficPolicyActionCorsPolicy, rbacv1.TrafficPolicyActionMirror,
		rbacv1.TrafficPolicyActionHeaderManipulation, rbacv1.TrafficPolicyActionOutlierDetection, rbacv1.TrafficPolicyActionMtlsConfig)
}

// VirtualMeshActions are the fields that a Role may let write in VirtualMeshes.
func VirtualMeshActions() []string {
	return asStrings(rbacv1.VirtualMeshActionAll, rbacv1.VirtualMeshActionMtlsConfig, rbacv1.VirtualMeshActionFederation, rbacv1.VirtualMeshActionGlobalAccessPolicy)
}

func asStrings[S ~string](values ...S) []string {
	out := make([]string, 0, len(values))
	for _, v := range values {
		out = append(out, string(v))
	}
	return out
}

// place is where a scope reaches: what is between the dots, and labels.
type place struct {
	name, namespace, cluster string
	labels                   map[string]any
}

// parsePlace reads NAMESPACE.CLUSTER or, if named, NAME.NAMESPACE.CLUSTER; if labelled, labels may follow the former.
func parsePlace(s string, named, labelled bool) (place, error) {
	parts, err := splitCommas(s)
	if err != nil {
		return place{}, err
	}
	want := "NAMESPACE.CLUSTER"
	if labelled {
		want += "[,LABEL=VALUE]"
	}
	if named {
		want += " or NAME.NAMESPACE.CLUSTER"
	}
	wrong := fmt.Errorf("%q: must be %s, with * for any, such as bookinfo.cluster-1 or bookinfo.*", s, want)
	if len(parts) == 0 {
		return place{}, wrong
	}
	names := strings.Split(parts[0], ".")
	out := place{labels: map[string]any{}}
	switch {
	case slices.Contains(names, ""):
		return place{}, wrong
	case len(names) == 2:
		out.namespace, out.cluster = names[0], names[1]
	case len(names) == 3 && named && len(parts) == 1:
		out.name, out.namespace, out.cluster = names[0], names[1], names[2]
	default:
		return place{}, wrong
	}
	for _, label := range parts[1:] {
		key, value, ok := strings.Cut(label, "=")
		if !ok || key == "" || !labelled {
			return place{}, wrong
		}
		out.labels[key] = value
	}
	return out, nil
}

// matcher is the place as a matcher; labels have to be written for any.
func (p place) matcher() map[string]any {
	labels := p.labels
	if len(labels) == 0 {
		labels = map[string]any{anything: anything}
	}
	return map[string]any{"labels": labels, "namespaces": []any{p.namespace}, "clusters": []any{p.cluster}}
}

// ref is the place as a reference, of any name if it has none.
func (p place) ref() map[string]any {
	name := p.name
	if name == "" {
		name = anything
	}
	return map[string]any{"name": name, "namespace": p.namespace, "clusterName": p.cluster}
}

// parseServices reads services by their place, which may be selected by labels and by name, or by one of them.
func parseServices(s string) (any, error) {
	p, err := parsePlace(s, true, true)
	out := map[string]any{}
	if err == nil && p.name == "" {
		out["kubeServiceMatcher"] = p.matcher()
	}
	if len(p.labels) == 0 {
		out["kubeServiceRefs"] = map[string]any{"services": []any{p.ref()}}
	}
	return out, err
}

// parseWorkloads reads workloads by their place.
func parseWorkloads(s string) (any, error) {
	p, err := parsePlace(s, false, true)
	return map[string]any{"kubeWorkloadMatcher": p.matcher()}, err
}

// parseIdentities reads callers by their place, which may be selected by it and by name, or by name.
func parseIdentities(s string) (any, error) {
	p, err := parsePlace(s, true, false)
	out := map[string]any{"kubeServiceAccountRefs": map[string]any{"serviceAccounts": []any{p.ref()}}}
	if p.name == "" {
		out["kubeIdentityMatcher"] = map[string]any{"namespaces": []any{p.namespace}, "clusters": []any{p.cluster}}
	}
	return out, err
}

// parseListed reads services that may be listed.
func parseListed(s string) (any, error) {
	p, err := parsePlace(s, true, false)
	return map[string]any{"kubeService": p.ref()}, err
}

// The inverses may be incomplete: AnswersFor compares what comes back.

func formatServices(v any) (string, bool) {
	return formatPlace(v, "kubeServiceMatcher", "kubeServiceRefs", "services")
}
func formatWorkloads(v any) (string, bool) { return formatPlace(v, "kubeWorkloadMatcher", "", "") }
func formatIdentities(v any) (string, bool) {
	return formatPlace(v, "kubeIdentityMatcher", "kubeServiceAccountRefs", "serviceAccounts")
}

func formatListed(v any) (string, bool) {
	m, _ := v.(map[string]any)
	return formatRef(m["kubeService"])
}

// formatPlace is NAMESPACE.CLUSTER and labels for a selector with a matcher, and a reference otherwise.
func formatPlace(v any, matcher, refs, list string) (string, bool) {
	m, _ := v.(map[string]any)
	if of, ok := m[matcher].(map[string]any); ok {
		namespace, hasNamespace := single(of["namespaces"])
		cluster, hasCluster := single(of["clusters"])
		parts := []string{namespace + "." + cluster}
		labels, _ := of["labels"].(map[string]any)
		for _, key := range sortedKeys(labels) {
			if value, _ := labels[key].(string); key != anything {
				parts = append(parts, key+"="+value)
			}
		}
		return joinCommas(parts), hasNamespace && hasCluster
	}
	of, _ := m[refs].(map[string]any)
	elements, _ := of[list].([]any)
	if len(elements) != 1 {
		return "", false
	}
	return formatRef(elements[0])
}

// formatRef leaves out a name that is any.
func formatRef(v any) (string, bool) {
	text, ok := formatService(v)
	return strings.TrimPrefix(text, anything+"."), ok
}

// single is the element of a list that has one.
func single(v any) (string, bool) {
	list, _ := v.([]any)
	if len(list) != 1 {
		return "", false
	}
	text, ok := list[0].(string)
	return text, ok
}

// RoleBinding is the form of RoleBindings.
func RoleBinding() *Form {
	return &Form{
		Kind: snapshot.RoleBinding, sections: []section{{"Role", askWhichRole}, {"Subjects", askSubjects}},
		requires: []requirement{{"roleRef", "--role"}, {"subjects", "--subject, for each one who gets it"}},
		Fields: []Field{
			{Flag: "role", Path: "roleRef", Usage: "Role that is given, by its name or as namespace/name", codec: one("role", parseObject, formatObject)},
			{
				Flag: "subject", Path: "subjects", Usage: "who gets it: user=NAME, group=NAME or serviceaccount=NAMESPACE/NAME; may be repeated",
				codec: each("subject", parseSubject, formatSubject),
			},
		},
	}
}

// kindsOfSubjects are how people write them, and as they are in a RoleBinding.
var kindsOfSubjects = [][2]string{{"user", rbac.User}, {"group", rbac.Group}, {"serviceaccount", rbac.ServiceAccount}}

// parseSubject reads user=NAME, group=NAME or serviceaccount=NAMESPACE/NAME.
func parseSubject(s string) (any, error) {
	word, name, ok := strings.Cut(s, "=")
	for _, kind := range kindsOfSubjects {
		if !ok || name == "" || word != kind[0] {
			continue
		}
		if kind[1] != rbac.ServiceAccount {
			return map[string]any{"kind": kind[1], "name": name}, nil
		}
		namespace, account, ok := strings.Cut(name, "/")
		if ok && namespace != "" && account != "" {
			return map[string]any{"kind": kind[1], "name": account, "namespace": namespace}, nil
		}
	}
	return nil, fmt.Errorf("%q: must be user=NAME, group=NAME or serviceaccount=NAMESPACE/NAME, such as user=ada", s)
}

// formatSubject may be incomplete: AnswersFor compares what comes back.
func formatSubject(v any) (string, bool) {
	m, _ := v.(map[string]any)
	for _, kind := range kindsOfSubjects {
		name, isText := m["name"].(string)
		if m["kind"] != kind[1] {
			continue
		}
		if kind[1] == rbac.ServiceAccount {
			namespace, hasNamespace := m["namespace"].(string)
			return kind[0] + "=" + namespace + "/" + name, isText && hasNamespace
		}
		return kind[0] + "=" + name, isText
	}
	return "", false
}
