package policy

import (
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// pathIssues warns of allowedPaths from which a request can leave, because the proxies of
// a mesh compare it before the application decodes it. An exact path and an ending hold
// for every spelling (https://istio.io/latest/docs/ops/best-practices/security/#customize-your-system-on-path-normalization).
func pathIssues(rule *snapshot.AccessRule, mesh *snapshot.MeshPlan) []snapshot.Issue {
	passes := mesh.PassingPaths()
	at := slices.IndexFunc(rule.Paths, isLeft)
	if at < 0 || len(passes) == 0 {
		return nil
	}
	path := rule.Paths[at]
	below := strings.TrimSuffix(path[:strings.IndexAny(path, "*{")], "/") + "/"
	examples := make([]string, 0, len(passes))
	for _, up := range passes {
		examples = append(examples, below+up+"admin"+afterTemplate(path))
	}
	return []snapshot.Issue{snapshot.Warnf(snapshot.PathsNotNormalized,
		"set pathNormalization.normalization to "+snapshot.PathsDecoded+" in the meshConfig of mesh "+mesh.Ref.Name+
			"; what no mesh decodes, such as %252e or %c0%ae, the application must refuse itself",
		"mesh %s normalizes paths as %s, so that %s also allows %s, which lead out of %s in an application that decodes them",
		mesh.Ref.Name, mesh.PathNormalization, path, strings.Join(examples, ", "), below).At("allowedPaths")}
}

// isLeft reports whether requests can leave a path: what follows its beginning is any
// path, or any segment of one. Nothing is outside of /.
func isLeft(path string) bool {
	return strings.Contains(path, "{") || strings.HasSuffix(path, "*") && len(path) > len("/*")
}

// afterTemplate is what follows the template of a path with one.
func afterTemplate(path string) string {
	_, rest, _ := strings.Cut(path, "}")
	if strings.Contains(rest, "{") {
		return ""
	}
	return rest
}
