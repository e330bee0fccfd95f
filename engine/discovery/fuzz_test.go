package discovery

import (
	"reflect"
	"strings"
	"testing"
)

func FuzzParseIstioConfig(f *testing.F) {
	for _, seed := range []string{
		"", "null", "- a", "5", "trustDomain: cluster.local", "trust_domain: a", "trustDomain: [a]", "a: &a [*a]",
		"defaultConfig:\n  proxyMetadata:\n    ISTIO_META_DNS_CAPTURE: \"true\"\n", "defaultConfig: 5", "\t", "a: \"b",
		"extensionProviders: [{name: x, hologram: {}}]", "connectTimeout: 10s\nrootNamespace: istio-system",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		config, err := parseIstioConfig(text)
		again, errAgain := parseIstioConfig(text)
		if !reflect.DeepEqual(config, again) || (err == nil) != (errAgain == nil) {
			t.Fatalf("%v, %v, then %v, %v", config, err, again, errAgain)
		}
		if config.trustDomain != "" && text == "" {
			t.Fatalf("%q out of nothing", config.trustDomain)
		}
	})
}

func FuzzParseImage(f *testing.F) {
	for _, seed := range []string{
		"", "auto", "registry.example/istio/pilot:1.31.1", "pilot@" + someDigest, "registry:5000/a/b:c@" + someDigest,
		"[::1]:5000/x", "a//b", ":tag", "@", "localhost/x", "UPPER/x", strings.Repeat("a/", 200) + "b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		img, ok := parseImage(s)
		if !ok {
			if img != (image{}) {
				t.Fatalf("no image, but %+v", img)
			}
			return
		}
		if img.base() == "" || strings.Contains(img.base(), "/") {
			t.Fatalf("base %q of %q", img.base(), s)
		}
		if img.version != "" && !strings.Contains(s, img.version) {
			t.Fatalf("version %q is not in %q", img.version, s)
		}
	})
}
