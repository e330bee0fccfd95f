package discovery

import (
	"strings"
	"testing"
)

func FuzzParseImage(f *testing.F) {
	for _, seed := range []string{
		"", "auto", "registry.example/istio/pilot:1.31.1", "pilot@" + someDigest, "registry:5000/a/b:c@" + someDigest,
		"[::1]:5000/x", "a//b", ":tag", "@", "localhost/x", "UPPER/x", strings.Repeat("a/", 200) + "b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		img, ok := ParseImage(s)
		if !ok {
			if img != (Image{}) {
				t.Fatalf("no image, but %+v", img)
			}
			return
		}
		if img.Base() == "" || strings.Contains(img.Base(), "/") {
			t.Fatalf("base %q of %q", img.Base(), s)
		}
		if img.Version != "" && !strings.Contains(s, img.Version) {
			t.Fatalf("version %q is not in %q", img.Version, s)
		}
	})
}
