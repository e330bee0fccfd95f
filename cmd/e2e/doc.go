// Package e2e tests the real binary with real clusters, like a user: everything
// that the README promises.
package e2e
