package istio

import (
	"reflect"
	"testing"
)

func FuzzParseSettings(f *testing.F) {
	for _, seed := range []string{
		"", "null", "- a", "5", "trustDomain: cluster.local", "trust_domain: a", "trustDomain: [a]", "a: &a [*a]",
		"defaultConfig:\n  proxyMetadata:\n    ISTIO_META_DNS_CAPTURE: \"true\"\n", "defaultConfig: 5", "\t", "a: \"b",
		"extensionProviders: [{name: x, hologram: {}}]", "connectTimeout: 10s\nrootNamespace: istio-system",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		config, err := parseSettings(text)
		again, errAgain := parseSettings(text)
		if !reflect.DeepEqual(config, again) || (err == nil) != (errAgain == nil) {
			t.Fatalf("%v, %v, then %v, %v", config, err, again, errAgain)
		}
		if config.trustDomain != "" && text == "" {
			t.Fatalf("%q out of nothing", config.trustDomain)
		}
	})
}
