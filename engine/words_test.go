package engine_test

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// neutral are the packages that are for all kinds of mesh.
var neutral = []string{
	"engine/access", "engine/apply", "engine/cluster", "engine/discovery", "engine/inventory", "engine/kube", "engine/mirror", "engine/offline",
	"engine/policy", "engine/reading", "engine/render", "engine/serve", "engine/snapshot", "engine/status", "engine/virtualmesh", "engine/watch",
}

var (
	// wordsOfMeshes name a kind of mesh, or its parts.
	wordsOfMeshes = regexp.MustCompile(`(?i)istio|envoy|\b(osm|openservicemesh|smi-spec)\b`)
	// fieldsOfMeshes are fields and values of our own API that do.
	fieldsOfMeshes = regexp.MustCompile(`\b(mtls|discovery)\.istio\.|\bISTIO_MUTUAL\b`)
)

// sayMeshes are the texts in neutral code that name a kind of mesh. The list can only shrink.
var sayMeshes = map[string]int{
	"engine/snapshot/kind.go": 7, // the table of kinds has the rows of all
	"engine/snapshot/mesh.go": 2, // the types of meshes in the API
}

// TestWordsOfAMeshStayInItsRoom: what a mesh calls its objects, labels and settings stands in its folder (Dialect, Detector).
func TestWordsOfAMeshStayInItsRoom(t *testing.T) {
	t.Parallel()
	found := map[string]int{}
	eachSource(t, func(path string, _ *token.FileSet, file *ast.File) {
		if !underAny(filepath.ToSlash(filepath.Dir(path)), neutral) {
			return
		}
		found[path] = 0
		ast.Inspect(file, func(n ast.Node) bool {
			if _, imports := n.(*ast.ImportSpec); imports {
				return false
			}
			text, ok := n.(*ast.BasicLit)
			if ok && text.Kind == token.STRING && !strings.HasPrefix(text.Value, "`json:") && wordsOfMeshes.MatchString(fieldsOfMeshes.ReplaceAllString(text.Value, "")) {
				found[path]++
			}
			return true
		})
	})
	within(t, "texts that name a kind of mesh", 0, found, sayMeshes)
}
