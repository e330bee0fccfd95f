package istio

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// secretSettings are the settings of a MeshConfig in which users put tokens: headers of
// providers, access to collectors (istio.io: MeshConfig). None of them is read.
var secretSettings = []string{"extensionProviders", "defaultConfig.tracing"}

// invalidSettings stand for settings that are no YAML: those are reported, whatever they say.
const invalidSettings = "{ # was not valid YAML, and is not recorded\n"

// redact leaves out what may be secret of the settings in a ConfigMap. Other keys that are read have root certificates, which are
// public.
func redact(cm *corev1.ConfigMap) {
	if text, found := cm.Data[settingsKey]; found {
		cm.Data[settingsKey] = redactSettings(text)
	}
}

// redactSettings leaves out what may be secret of settings in YAML.
func redactSettings(text string) string {
	var settings map[string]any
	if err := yaml.Unmarshal([]byte(text), &settings); err != nil {
		return invalidSettings
	}
	changed := false
	for _, name := range secretSettings {
		changed = leaveOut(settings, strings.Split(name, ".")) || changed
	}
	if config, ok := settings["defaultConfig"].(map[string]any); ok {
		if metadata, ok := config["proxyMetadata"].(map[string]any); ok {
			for name := range metadata { // variables of all proxies
				if name != dnsCapture {
					delete(metadata, name)
					changed = true
				}
			}
		}
	}
	if !changed {
		return text
	}
	data, err := yaml.Marshal(settings)
	if err != nil {
		return invalidSettings
	}
	return string(data)
}

// leaveOut removes a field, and reports whether it was there.
func leaveOut(from map[string]any, path []string) bool {
	for len(path) > 1 {
		next, ok := from[path[0]].(map[string]any)
		if !ok {
			return false
		}
		from, path = next, slices.Clone(path[1:])
	}
	_, found := from[path[0]]
	delete(from, path[0])
	return found
}
