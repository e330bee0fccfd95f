package watch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestRootsAreAPartOfTheInput: equal ones are the same objects, and notify nobody.
func TestRootsAreAPartOfTheInput(t *testing.T) {
	t.Parallel()
	s, err := New(Options{Management: &rest.Config{Host: "https://127.0.0.1:1"}})
	require.NoError(t, err)
	s.ready.Store(true)
	notified := func() bool {
		select {
		case <-s.Changed():
			return true
		default:
			return false
		}
	}
	roots := func(name, signs string) *snapshot.VirtualMeshRoots {
		return &snapshot.VirtualMeshRoots{
			VirtualMesh: snapshot.Ref{Kind: snapshot.VirtualMesh, Namespace: "gloo-mesh", Name: name},
			Roots:       []*snapshot.Root{{Fingerprint: signs, NotAfter: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}}, Signs: signs,
		}
	}
	assert.Nil(t, s.Input().Roots)
	s.SetRoots([]*snapshot.VirtualMeshRoots{roots("b", "1"), roots("a", "1")})
	require.True(t, notified())
	first := s.Input()
	require.Len(t, first.Roots, 2)
	assert.Equal(t, "a", first.Roots[0].VirtualMesh.Name, "ascending")

	s.SetRoots([]*snapshot.VirtualMeshRoots{roots("a", "1"), roots("b", "1")})
	assert.False(t, notified())
	assert.Same(t, first, s.Input())

	s.SetRoots([]*snapshot.VirtualMeshRoots{roots("a", "1"), roots("b", "2")})
	assert.True(t, notified())
	next := s.Input()
	assert.Same(t, first.Roots[0], next.Roots[0])
	assert.Equal(t, "2", next.Roots[1].Signs)
	assert.Same(t, first.Management, next.Management)
	s.notify()
	again := s.Input()
	assert.Same(t, next, again)
}
