package roots

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	// unusedFor is how long the Plan must have listed a root as unused before it is deleted: until
	// then, a rotation can be rolled back to it.
	unusedFor = 5 * time.Minute
	// goneFor is how long a VirtualMesh must have been gone before its roots are deleted.
	goneFor = 10 * time.Minute
)

// dropUnused deletes the Secrets of roots that nobody needs any more.
func (s *Store) dropUnused(ctx context.Context, v *view, unused []string) error {
	since := s.unused[v.ref]
	now := s.Now()
	listed := map[string]time.Time{}
	for _, fingerprint := range unused {
		listed[fingerprint] = now
		if at, ok := since[fingerprint]; ok {
			listed[fingerprint] = at
		}
	}
	s.unused[v.ref] = listed
	// Who cannot say which root signs must not say which does not.
	if v.decision.roots == nil || v.decision.roots.Signs == "" || v.vm.Annotations[snapshot.TrustPauseAnnotation] == "true" {
		return nil
	}
	for fingerprint, at := range listed {
		if fingerprint == v.decision.roots.Signs || now.Sub(at) < unusedFor || s.dropped[v.ref][fingerprint] {
			continue
		}
		if err := s.drop(ctx, v, fingerprint); err != nil {
			return err
		}
	}
	return nil
}

// drop deletes all Secrets of a root that are ours.
func (s *Store) drop(ctx context.Context, v *view, fingerprint string) error {
	others := 0
	var ours []*stored
	for _, o := range v.have {
		switch {
		case o.root == nil || pki.Fingerprint(o.root) != fingerprint:
		case o.ours:
			ours = append(ours, o)
		default:
			others++
		}
	}
	if v.user != nil && v.user.stored != nil && v.user.root != nil && pki.Fingerprint(v.user.root) == fingerprint {
		others++
	}
	if others > 0 || len(ours) == 0 {
		return nil // it is somebody's
	}
	// What has a key goes last, so that an interrupted deletion is taken up again.
	slices.SortFunc(ours, func(a, b *stored) int {
		switch {
		case (a.authority == nil) == (b.authority == nil):
			return 0
		case a.authority == nil:
			return -1
		}
		return 1
	})
	for _, o := range ours {
		if err := s.delete(ctx, o); err != nil {
			return err
		}
	}
	err := s.record(ctx, v.ref, func(r *Record) *Record {
		r.Roots = slices.DeleteFunc(r.Roots, func(recorded string) bool { return recorded == fingerprint })
		return r
	})
	if err != nil {
		return err
	}
	if s.dropped[v.ref] == nil {
		s.dropped[v.ref] = map[string]bool{}
	}
	s.dropped[v.ref][fingerprint] = true
	s.Log.Info("dropped a root certificate that nobody uses any more", "virtualMesh", v.ref.Namespace+"/"+v.ref.Name, "fingerprint", fingerprint)
	s.wake()
	return nil
}

// delete deletes a Secret as it was read.
func (s *Store) delete(ctx context.Context, o *stored) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := s.clientset.CoreV1().Secrets(o.ref.Namespace).Delete(ctx, o.ref.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &o.uid, ResourceVersion: &o.version},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s cannot be deleted: %s", describe(o.ref), kube.Message(err))
	}
	return nil
}

// dropGone deletes the roots of VirtualMeshes that are gone.
func (s *Store) dropGone(ctx context.Context, all []*stored, known map[snapshot.Ref]bool) error {
	now := s.Now()
	gone := map[snapshot.Ref]time.Time{}
	for _, o := range all {
		if !o.ours || known[o.virtualMesh] || o.virtualMesh.Name == "" {
			continue
		}
		at, ok := s.gone[o.virtualMesh]
		if !ok {
			at = now
		}
		gone[o.virtualMesh] = at
	}
	s.gone = gone
	for _, o := range all {
		at, ok := gone[o.virtualMesh]
		if !o.ours || !ok || now.Sub(at) < goneFor {
			continue
		}
		exists, err := s.exists(ctx, o.virtualMesh)
		if err != nil {
			return err
		}
		if exists {
			continue // it was not read yet
		}
		if err := s.delete(ctx, o); err != nil {
			return err
		}
		if err := s.record(ctx, o.virtualMesh, func(*Record) *Record { return nil }); err != nil {
			return err
		}
		s.Log.Info("deleted a root certificate of a VirtualMesh that is gone",
			"virtualMesh", o.virtualMesh.Namespace+"/"+o.virtualMesh.Name, "secret", o.ref.Namespace+"/"+o.ref.Name)
	}
	return nil
}

// exists asks the API server whether there is a VirtualMesh. That the type is not there says
// nothing about the object, so that it is listed by name.
func (s *Store) exists(ctx context.Context, vm snapshot.Ref) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := s.dynamic.Resource(snapshot.VirtualMesh.GroupVersionResource()).Namespace(vm.Namespace).
		List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, vm.Name).String()})
	if err != nil {
		return false, fmt.Errorf("VirtualMesh %s/%s: it is not known whether it is gone: %s", vm.Namespace, vm.Name, kube.Message(err))
	}
	return len(list.Items) > 0, nil
}
