package watch

import (
	"reflect"
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// SetRoots sets the root certificates of VirtualMeshes, which are part of the Input. Nothing
// changes in the trust of a VirtualMesh that is not among them.
func (s *Source) SetRoots(roots []*snapshot.VirtualMeshRoots) {
	roots = slices.SortedFunc(slices.Values(roots), func(a, b *snapshot.VirtualMeshRoots) int { return a.VirtualMesh.Compare(b.VirtualMesh) })
	s.mu.Lock()
	changed := !slices.EqualFunc(s.roots, roots, sameRoots)
	if changed {
		for i, now := range roots { // what is as it was keeps its pointer
			if at := slices.IndexFunc(s.roots, func(before *snapshot.VirtualMeshRoots) bool { return sameRoots(before, now) }); at >= 0 {
				roots[i] = s.roots[at]
			}
		}
		s.roots = roots
	}
	s.mu.Unlock()
	if changed {
		s.notify()
	}
}

func sameRoots(a, b *snapshot.VirtualMeshRoots) bool {
	return a == b || a.VirtualMesh == b.VirtualMesh && a.Signs == b.Signs && a.Problem == b.Problem &&
		reflect.DeepEqual(a.Pins, b.Pins) &&
		slices.EqualFunc(a.Roots, b.Roots, func(x, y *snapshot.Root) bool {
			return x.Fingerprint == y.Fingerprint && x.PEM == y.PEM && x.Secret == y.Secret && x.NotAfter.Equal(y.NotAfter)
		})
}
