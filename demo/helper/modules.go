package helper

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
)

var (
	//go:embed sandbox.txtar
	sandboxSources []byte
	//go:embed osm.txtar
	osmSources []byte
	//go:embed dataplane.txtar
	dataplaneSources []byte
)

// Names are the binaries that can be built; each is a module in demo/NAME, whose
// archive here is NAME.txtar.
func Names() []string { return []string{sandbox().name, osm().name, dataplane().name} }

// Build returns the path of the binary with Kubernetes and Istio. It builds the
// binary if this version is not in the cache, which takes minutes and is reported
// to progress.
//
// The binary lives in the user's cache folder under a name made from its
// sources, the Go version and the platform, so that an old one is never used
// instead of a new one. Only a `go` on the PATH is required.
func Build(ctx context.Context, progress Progress) (string, error) {
	return sandbox().binary(ctx, progress)
}

// BuildOSM is like Build for the binary with the control plane of Open Service
// Mesh. Beside the binary is a folder crds with the CRDs of Open Service Mesh.
func BuildOSM(ctx context.Context, progress Progress) (string, error) {
	return osm().binary(ctx, progress)
}

// BuildDataplane is like Build for the binary that runs proxies. Beside the binary
// is a folder bootstrap with Istio's template for the configuration of Envoy. Most
// of its packages are in the sandbox's binary, too, so it is built after that one.
func BuildDataplane(ctx context.Context, progress Progress) (string, error) {
	return dataplane().binary(ctx, progress)
}

// module is one of the binaries, and the Go module that it is built from.
type module struct {
	name    string
	sources []byte
	// versions are variables set by the linker.
	versions func(module) ([]string, error)
	// copied are folders to copy beside the binary.
	copied []copied
}

// copied is a folder inside a module that the binary is built from, and the name
// of its copy.
type copied struct{ module, folder, as string }

func sandbox() module {
	return module{name: "sandbox", sources: sandboxSources, versions: sandboxVersions}
}

func osm() module {
	const path = "github.com/openservicemesh/osm"
	return module{
		name: "osm", sources: osmSources,
		versions: func(m module) ([]string, error) {
			v, err := m.version(path)
			return []string{"-X " + path + "/pkg/version.Version=" + v}, err
		},
		copied: []copied{{path, "cmd/osm-bootstrap/crds", "crds"}},
	}
}

func dataplane() module {
	return module{
		name: "dataplane", sources: dataplaneSources,
		versions: func(m module) ([]string, error) {
			v, err := m.version("istio.io/api")
			return []string{"-X istio.io/istio/pkg/version.buildVersion=" + strings.TrimPrefix(v, "v")}, err
		},
		copied: []copied{{"istio.io/istio", "tools/packaging/common", "bootstrap"}},
	}
}

// sandboxVersions set the versions of the components, as their release builds do:
// clients fail to parse the version of a Kubernetes without one.
func sandboxVersions(module) ([]string, error) {
	v, err := ReadVersions()
	if err != nil {
		return nil, err
	}
	major, rest, _ := strings.Cut(strings.TrimPrefix(v.Kubernetes, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	const (
		kubernetes = "k8s.io/component-base/version."
		istio      = "istio.io/istio/pkg/version."
	)
	return []string{
		"-X " + kubernetes + "gitVersion=" + v.Kubernetes,
		"-X " + kubernetes + "gitMajor=" + major,
		"-X " + kubernetes + "gitMinor=" + minor,
		"-X " + istio + "buildVersion=" + v.Istio,
		"-X " + istio + "buildHub=docker.io/istio",
		"-X " + istio + "buildTag=" + v.Istio,
	}, nil
}

func (m module) linkerFlags() (string, error) {
	versions, err := m.versions(m)
	if err != nil {
		return "", fmt.Errorf("helper binary: %w", err)
	}
	return strings.Join(append([]string{"-s -w"}, versions...), " "), nil
}
