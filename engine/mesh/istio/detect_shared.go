package istio

import (
	"encoding/json"
	"slices"

	meshconfig "istio.io/api/mesh/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// sharedSettings names a second ConfigMap with settings, in the namespace of the control plane, which has that of the control
// plane's own name put over it (Istio, Server.getConfigurationSources).
const sharedSettings = "SHARED_MESH_CONFIG"

// sharedMapOf is the name of the second ConfigMap of a control plane; empty if it has none. It is not known if the variable gets its
// value from elsewhere.
func sharedMapOf(pilot *corev1.Container) (name string, known bool) {
	at := slices.IndexFunc(pilot.Env, func(e corev1.EnvVar) bool { return e.Name == sharedSettings })
	if at < 0 {
		return "", true
	}
	return pilot.Env[at].Value, pilot.Env[at].ValueFrom == nil
}

// settingsReader reads the ConfigMaps with the settings of a control plane, and reports what is wrong with them.
type settingsReader struct {
	x         *discovery.Index
	namespace string
	mesh      snapshot.Ref
}

// text is that of a ConfigMap, and whether it is there. It is not known of one that was never read.
func (r *settingsReader) text(name string) (text string, found, known bool) {
	cm, unread := r.x.ConfigMap(r.namespace, name)
	switch {
	case unread == nil:
	case cm != nil:
		r.x.ReportUnread(*unread, r.mesh, "so its settings stay as they were read last")
	default:
		if last, ok := lastSettings(r.x, r.mesh.Name, r.namespace); ok {
			r.x.ReportUnread(*unread, r.mesh, "so the mesh keeps its last settings: "+last.String())
		} else {
			r.x.ReportUnread(*unread, r.mesh, "so its control plane is left out: the trust domain is not known")
		}
		return "", false, false
	}
	if cm != nil {
		text, found = cm.Data[settingsKey]
	}
	return text, found, true
}

// report reports a mistake in a ConfigMap.
func (r *settingsReader) report(severity snapshot.Severity, name, message, hint string) {
	r.x.Report(snapshot.Issue{
		Code: snapshot.MeshUnreadable, Severity: severity, Target: r.mesh, Message: message, Hint: hint,
		Ref: snapshot.Ref{Kind: snapshot.ConfigMap, Cluster: r.x.Cluster, Namespace: r.namespace, Name: name},
	})
}

// shared is the text of the second ConfigMap, of which a control plane needs none to be there. It is not known of one that was never
// read.
func (r *settingsReader) shared(pilot *corev1.Container) (name, text string, known bool) {
	name, isNamed := sharedMapOf(pilot)
	if !isNamed {
		r.report(snapshot.Warning, "", "the variable "+sharedSettings+" of the control plane gets its value from elsewhere, so the settings in the ConfigMap that it names are not known",
			"write the name of the ConfigMap into the Deployment of the control plane")
		return "", "", true
	}
	if name == "" {
		return "", "", true
	}
	text, found, known := r.text(name)
	if known && !found {
		r.report(snapshot.Warning, name, "the variable "+sharedSettings+" of the control plane names it, and there is no such ConfigMap with the key \""+settingsKey+"\": the control plane goes on without it",
			"create it, or remove the variable")
	}
	return name, text, known
}

// mergeSettings puts settings over others in YAML, as Istio does: a field replaces what was there, but for aliases of the trust
// domain, to which it adds, and for proxyMetadata, which is merged by name (Istio, mesh.ApplyMeshConfig). What is no mapping is
// ignored there.
func mergeSettings(below, above string) string {
	if below == "" {
		return above
	}
	out, over := settingsFields(below), settingsFields(above)
	if out == nil || over == nil {
		return above
	}
	for name, value := range over {
		switch name {
		case "trustDomainAliases":
			value = append(listOf(value), listOf(out[name])...)
		case "defaultConfig":
			value = mergedConfig(out[name], value)
		}
		out[name] = value
	}
	merged, err := json.Marshal(out)
	if err != nil {
		return above
	}
	return string(merged)
}

// settingsFields are the fields of settings in YAML, by their names in JSON; nil if it is no mapping.
func settingsFields(text string) map[string]any {
	fields := map[string]any{}
	if yaml.Unmarshal([]byte(text), &fields) != nil {
		return nil
	}
	known, out := (&meshconfig.MeshConfig{}).ProtoReflect().Descriptor().Fields(), make(map[string]any, len(fields))
	for name, value := range fields {
		if value == nil { // as if it were not there
			continue
		}
		if f := known.ByTextName(name); f != nil {
			if _, both := fields[f.JSONName()]; both && f.JSONName() != name {
				continue
			}
			name = f.JSONName()
		}
		out[name] = value
	}
	return out
}

// mergedConfig is a defaultConfig over another: of what is read of it, proxyMetadata is merged.
func mergedConfig(below, above any) any {
	const metadata = "proxyMetadata"
	under, ok := below.(map[string]any)
	over, isMap := above.(map[string]any)
	if !ok || !isMap {
		return above
	}
	out := map[string]any{}
	for _, config := range []map[string]any{under, over} {
		for name, value := range config {
			if name == "proxy_metadata" {
				name = metadata
			}
			if had, ok := out[name].(map[string]any); ok && name == metadata {
				if more, ok := value.(map[string]any); ok {
					value = merged(had, more)
				}
			}
			out[name] = value
		}
	}
	return out
}

// merged is a map over another.
func merged(below, above map[string]any) map[string]any {
	out := make(map[string]any, len(below)+len(above))
	for _, m := range []map[string]any{below, above} {
		for name, value := range m {
			out[name] = value
		}
	}
	return out
}

func listOf(value any) []any {
	list, _ := value.([]any)
	return list
}
