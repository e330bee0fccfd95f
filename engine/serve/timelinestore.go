package serve

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// changeStore keeps the timeline in a ConfigMap of the management plane's namespace. What cannot be stored is kept
// in memory, and stored later.
type changeStore struct {
	maps      corev1client.ConfigMapInterface
	namespace string
	log       *slog.Logger

	// list is the timeline; read, that what was stored before is in it.
	list  snapshot.Changes
	read  bool
	dirty bool
	// loggedReason is the last reason that was logged.
	loggedReason string
}

func newChangeStore(o Options) (*changeStore, error) {
	client, err := kube.NewClientset(o.Management)
	if err != nil {
		return nil, fmt.Errorf("recording of changes: building a client: %w", err)
	}
	return &changeStore{maps: client.CoreV1().ConfigMaps(o.Namespace), namespace: o.Namespace, log: o.Log}, nil
}

// add adds entries, and stores what is not stored yet.
func (s *changeStore) add(ctx context.Context, changes []snapshot.Change) {
	for _, c := range changes {
		s.list, s.dirty = s.list.With(c), true
	}
	if !s.dirty {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	err := s.load(ctx)
	if err == nil {
		err = s.write(ctx)
	}
	s.dirty = err != nil
	s.logError(err)
}

// load reads what was stored before this process led.
func (s *changeStore) load(ctx context.Context) error {
	if s.read {
		return nil
	}
	stored, err := s.maps.Get(ctx, snapshot.ChangesRecord, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		s.read = true
		return nil
	case err != nil:
		return err //nolint:wrapcheck // logError names the object
	}
	before, err := snapshot.ParseChanges(stored.Data[snapshot.ChangesKey])
	if err != nil {
		s.log.Warn("what was recorded of changes cannot be read; the record begins anew", "configmap", s.namespace+"/"+snapshot.ChangesRecord, "error", err)
		before = snapshot.Changes{{
			Time: time.Now(), Kind: snapshot.ChangeRecord, What: "what was recorded before could not be read, and is left out: " + err.Error(),
		}}
	}
	since := s.list
	s.list, s.read = nil, true
	for _, c := range slices.Concat(before, since) {
		s.list = s.list.With(c)
	}
	return nil
}

func (s *changeStore) write(ctx context.Context) error {
	text, err := s.list.JSON()
	if err != nil {
		return err
	}
	record := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: snapshot.ChangesRecord, Labels: map[string]string{cluster.ManagedByLabel: cluster.ManagedBy},
		},
		Data: map[string]string{snapshot.ChangesKey: text},
	}
	_, err = s.maps.Update(ctx, record, metav1.UpdateOptions{FieldManager: snapshot.FieldManager})
	if apierrors.IsNotFound(err) {
		_, err = s.maps.Create(ctx, record, metav1.CreateOptions{FieldManager: snapshot.FieldManager})
	}
	return err //nolint:wrapcheck // logError names the object
}

// logError logs why the record cannot be stored, once for each reason.
func (s *changeStore) logError(err error) {
	reason := ""
	if err != nil {
		reason = string(apierrors.ReasonForError(err))
		if reason == "" {
			reason = "unreachable"
		}
	}
	if reason != "" && reason != s.loggedReason {
		s.log.Warn("what changed cannot be recorded; nothing else is affected; `meshctl serve` needs the permission to create, get and update the ConfigMap in the management cluster: `meshctl install` grants it",
			"configmap", s.namespace+"/"+snapshot.ChangesRecord, "error", err)
	}
	s.loggedReason = reason
}

// editors asks the management cluster who edited objects.
type editors struct{ client metadata.Interface }

func newEditors(o Options) (*editors, error) {
	client, err := metadata.NewForConfig(kube.Unlimited(o.Management))
	if err != nil {
		return nil, fmt.Errorf("recording of changes: building a client: %w", err)
	}
	return &editors{client}, nil
}

// of is the field manager that changed an object last, but for its status, and by which operation; empty if that cannot be
// read. It lists the one object, because serve may list and not get.
func (e *editors) of(ctx context.Context, ref snapshot.Ref) (manager, operation string) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	list, err := e.client.Resource(ref.Kind.GroupVersionResource()).Namespace(ref.Namespace).
		List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + ref.Name, Limit: 1})
	if err != nil || len(list.Items) != 1 {
		return "", ""
	}
	var last time.Time
	for _, f := range list.Items[0].ManagedFields {
		if f.Subresource != "" || f.Time == nil || f.Time.Time.Before(last) {
			continue
		}
		manager, operation, last = f.Manager, string(f.Operation), f.Time.Time
	}
	return manager, operation
}

// sorted are causes in the order of their objects.
func sorted(causes []snapshot.ChangeCause) []snapshot.ChangeCause {
	slices.SortFunc(causes, func(a, b snapshot.ChangeCause) int { return a.On.Compare(b.On) })
	return causes
}
