package discovery

import (
	"fmt"
	"strings"

	"github.com/distribution/reference"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Image is what a container image's name tells, wherever it was pulled from.
type Image struct {
	// path is the repository without its registry, such as "istio/pilot".
	path string
	// Version is the tag, or the digest if there is no tag, or empty.
	Version string
}

// ParseImage takes an image reference apart; false if it is none.
func ParseImage(s string) (Image, bool) {
	ref, err := reference.ParseNormalizedNamed(s)
	if err != nil {
		return Image{}, false
	}
	out := Image{path: reference.Path(ref)}
	if tagged, ok := ref.(reference.Tagged); ok {
		out.Version = tagged.Tag()
	} else if digested, ok := ref.(reference.Digested); ok {
		out.Version = digested.Digest().String()
	}
	return out, true
}

// Base is the last part of the path.
func (i Image) Base() string { return i.path[strings.LastIndexByte(i.path, '/')+1:] }

// HasWord reports whether the base consists of words one of which is word:
// "istio-pilot" has "pilot", "autopilot" has not.
func (i Image) HasWord(word string) bool {
	for _, part := range strings.FieldsFunc(i.Base(), func(r rune) bool { return strings.ContainsRune("-_.", r) }) {
		if part == word {
			return true
		}
	}
	return false
}

// Version is the tag or digest of a control plane's image; an image with
// neither leaves the version empty, but hides no mesh.
func (x *Index) Version(image string, d *appsv1.Deployment, mesh snapshot.Ref) string {
	if img, ok := ParseImage(image); ok && img.Version != "" {
		return img.Version
	}
	x.Report(snapshot.Issue{
		Code: snapshot.MeshVersionUnknown, Severity: snapshot.Info, Ref: x.Ref(snapshot.Deployment, d), Target: mesh,
		Message: fmt.Sprintf("its image %q has neither tag nor digest, so the mesh's version is not known", image),
		Hint:    "name a version in the image; without one, another version may run after the next restart",
	})
	return ""
}
