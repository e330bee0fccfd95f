// Package registrationtest has API servers for tests that need a management cluster.
package registrationtest

import (
	"context"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/registration"
)

// Types are the custom resource types of this version, as registration installs them. To install and to serve them takes an API server
// as long as to start.
func Types() sandboxtest.Preparation {
	return sandboxtest.Preparation{Name: "types", Store: func(ctx context.Context, config *rest.Config) error {
		_, err := registration.InstallCRDs(ctx, config)
		return err
	}}
}

// APIServer is one with the types that all tests of a binary share, see [sandboxtest.APIServer].
func APIServer(t testing.TB) *rest.Config {
	t.Helper()
	return sandboxtest.PreparedAPIServer(t, Types())
}

// APIServers are n with the types that only this test uses, see [sandboxtest.APIServers].
func APIServers(t testing.TB, n int) []*local.Cluster {
	t.Helper()
	all := make([]sandboxtest.Preparation, n)
	for i := range all {
		all[i] = Types()
	}
	return sandboxtest.PreparedAPIServers(t, all...)
}
