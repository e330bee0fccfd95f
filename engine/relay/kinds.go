package relay

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// coreGroup stands for the group of the first Kubernetes API, which has no name.
const coreGroup = "core"

// KindName is a kind on the wire: GROUP/VERSION/KIND. Another version is another kind, because its objects have other bytes.
func KindName(k snapshot.Kind) string {
	info := k.Info()
	group := info.Group
	if group == "" {
		group = coreGroup
	}
	return group + "/" + info.Version + "/" + info.Kind
}

// KindNamed is the kind of a name; false if this version knows none.
func KindNamed(name string) (snapshot.Kind, bool) {
	group, rest, _ := strings.Cut(name, "/")
	version, kind, ok := strings.Cut(rest, "/")
	if !ok {
		return snapshot.NoKind, false
	}
	switch group {
	case "":
		return snapshot.NoKind, false
	case coreGroup:
		group = ""
	}
	k, known := snapshot.KindOf(schema.GroupKind{Group: group, Kind: kind})
	return k, known && k.Info().Version == version
}
