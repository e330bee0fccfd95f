package kube

import "context"

type explainedKey struct{}

// Explained marks a request to delete something as one that an edit of a user explains, or that an administrator lets pass. Who carries out
// requests of others bounds the deletions that are not.
func Explained(ctx context.Context) context.Context {
	return context.WithValue(ctx, explainedKey{}, true)
}

// IsExplained reports whether a request is marked by Explained.
func IsExplained(ctx context.Context) bool {
	marked, _ := ctx.Value(explainedKey{}).(bool)
	return marked
}
