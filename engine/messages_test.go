package engine_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// readers are the functions that find something in a text.
var readers = map[string][]string{
	"strings": {"Contains", "Cut", "CutPrefix", "CutSuffix", "Fields", "HasPrefix", "HasSuffix", "Index", "LastIndex", "Split", "SplitN", "TrimPrefix", "TrimSuffix"},
}

// sentences are the fields and methods that are for people: their words may change with each version.
var sentences = []string{"Error", "Hint", "Message", "Reason", "What"}

// mayReadMessages are the files that have to: the libraries that they call say it in no other way. The list can only shrink.
var mayReadMessages = map[string]int{
	"certs/verify/ask.go":       1, // gRPC keeps no error of the connection
	"certs/verify/handshake.go": 2, // crypto/tls has no types for alerts of the other side
	"cmd/cmd.go":                1, // cobra has no types for errors of usage
	"engine/kube/expired.go":    2, // what this package itself has put into an answer, and crypto/tls
}

// TestNoCodeParsesMessages: codes are for programs, and sentences for people.
func TestNoCodeParsesMessages(t *testing.T) {
	t.Parallel()
	found := map[string][]string{}
	eachSource(t, func(path string, set *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && readsSentence(call) {
				found[path] = append(found[path], fmt.Sprint(set.Position(call.Pos()).Line))
			}
			return true
		})
	})
	for file, lines := range found {
		assert.Len(t, lines, mayReadMessages[file], "%s, lines %s: a message is parsed; carry the fact beside it (snapshot.Reason)", file, strings.Join(lines, ", "))
	}
	for file := range mayReadMessages {
		assert.Contains(t, found, file, "no message is parsed there any more; remove it from the list")
	}
}

// readsSentence reports whether a call looks for something in the text of an error, a message or a reason.
func readsSentence(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	from, ok := f.X.(*ast.Ident)
	if !ok || !slices.Contains(readers[from.Name], f.Sel.Name) {
		return false
	}
	if sep, ok := call.Args[len(call.Args)-1].(*ast.BasicLit); ok && sep.Value == `"\n"` {
		return false // its lines are only told apart
	}
	text := call.Args[0]
	if inner, ok := text.(*ast.CallExpr); ok {
		text = inner.Fun
	}
	s, ok := text.(*ast.SelectorExpr)
	return ok && slices.Contains(sentences, s.Sel.Name)
}
