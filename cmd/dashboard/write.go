package dashboard

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/interview"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/tui"
	"github.com/meshctl/meshctl/wizards"
)

// fieldManager is the name under which edits are stored.
const fieldManager = "meshctl-dashboard"

// writable is a live source that can change what users write: a tui.Changer.
type writable struct {
	*live
	client   dynamic.Interface
	prompter wizards.Prompter
}

func newWritable(ctx context.Context, l *live) (*writable, error) {
	client, err := dynamic.NewForConfig(l.config)
	if err != nil {
		return nil, fmt.Errorf("management cluster %s: %w", l.config.Host, err)
	}
	return &writable{live: l, client: client, prompter: (&interview.Flags{}).Prompter(ctx, l.opts.Streams)}, nil
}

// Refuses implements tui.Changer.
func (w *writable) Refuses(ref snapshot.Ref) string {
	switch info := ref.Kind.Info(); {
	case ref.Cluster != "":
		return "it is in cluster " + cmdutil.Clean(ref.Cluster) + "; change it there"
	case ref.Kind == snapshot.KubernetesCluster:
		return "a registration is changed with: meshctl cluster register, meshctl cluster deregister"
	case info.Side != snapshot.ManagementSide || info.Access&snapshot.Watch == 0:
		return "a " + ref.Kind.String() + " is discovered, not written; change what it was discovered from"
	}
	return ""
}

func (w *writable) resource(ref snapshot.Ref) dynamic.ResourceInterface {
	return w.client.Resource(ref.Kind.GroupVersionResource()).Namespace(ref.Namespace)
}

// get reads what is stored, and the object as its author wrote it.
func (w *writable) get(ctx context.Context, ref snapshot.Ref) (stored *unstructured.Unstructured, text string, err error) {
	if stored, err = w.resource(ref).Get(ctx, ref.Name, metav1.GetOptions{}); err == nil {
		text, err = editable(stored)
	}
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", ref, err)
	}
	return stored, text, nil
}

// Edit implements tui.Changer.
func (w *writable) Edit(ctx context.Context, ref snapshot.Ref, draft *tui.Draft) (*tui.Draft, error) {
	if draft == nil {
		stored, text, err := w.get(ctx, ref)
		if err != nil {
			return nil, err
		}
		draft = &tui.Draft{Ref: ref, Before: text, After: text, UID: string(stored.GetUID())}
	}
	text, err := w.prompter.Edit(draft.After)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(text) == strings.TrimSpace(draft.Before) || strings.TrimSpace(text) == "" {
		text = draft.Before
	}
	return &tui.Draft{Ref: ref, Before: draft.Before, After: text, UID: draft.UID}, nil
}

// Remove implements tui.Changer.
func (w *writable) Remove(ctx context.Context, ref snapshot.Ref) (*tui.Draft, error) {
	stored, text, err := w.get(ctx, ref)
	if err != nil {
		return nil, err
	}
	return &tui.Draft{Ref: ref, Before: text, UID: string(stored.GetUID())}, nil
}

// Review implements tui.Changer: the API server is asked whether it would take the objects, and
// what follows from all of them together is worked out.
func (w *writable) Review(ctx context.Context, drafts []tui.Draft) *tui.Review {
	edits := make([]explain.Edit, len(drafts))
	var refused []string
	for i := range drafts {
		var err error
		if edits[i], err = w.try(ctx, &drafts[i]); err != nil {
			refused = append(refused, err.Error())
		}
	}
	if len(refused) > 0 {
		return &tui.Review{Refused: strings.Join(refused, "\n")}
	}
	planned, err := w.plan(ctx, edits)
	if err != nil {
		return &tui.Review{Refused: err.Error()}
	}
	return &tui.Review{Planned: planned}
}

// try is the edit of a draft, if the API server would take it.
func (w *writable) try(ctx context.Context, draft *tui.Draft) (explain.Edit, error) {
	edit := explain.Edit{Ref: draft.Ref}
	if draft.After == "" {
		return edit, nil
	}
	next, err := parse(draft.Ref, draft.Before, draft.After)
	if err == nil {
		err = w.put(ctx, draft, next, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	}
	if err == nil {
		edit.Object, err = typed(draft.Ref, next)
	}
	return edit, err
}

// plan says what edits of stored objects would do.
func (w *writable) plan(ctx context.Context, edits []explain.Edit) (*explain.Planned, error) {
	var stored []snapshot.APIObject
	for _, edit := range edits {
		found, _, err := w.get(ctx, edit.Ref)
		if err != nil {
			return nil, err
		}
		if object, err := typed(edit.Ref, found); err == nil { // else it can be edited or deleted all the same
			stored = append(stored, object)
		}
	}
	return w.last.plan(stored, edits, w.opts.factory.Now())
}

// typed is an object of the management plane as its type.
func typed(ref snapshot.Ref, o *unstructured.Unstructured) (snapshot.APIObject, error) {
	object := ref.Kind.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, object); err != nil {
		return nil, fmt.Errorf("%s: %w", ref, err)
	}
	return object, nil
}

// Write implements tui.Changer.
func (w *writable) Write(ctx context.Context, draft *tui.Draft) (string, error) {
	if draft.After == "" {
		return w.delete(ctx, draft)
	}
	next, err := parse(draft.Ref, draft.Before, draft.After)
	if err == nil {
		err = w.put(ctx, draft, next, metav1.UpdateOptions{})
	}
	if err != nil {
		return "", err
	}
	return draft.Ref.String() + " was written", nil
}

func (w *writable) delete(ctx context.Context, draft *tui.Draft) (string, error) {
	uid := types.UID(draft.UID)
	err := w.resource(draft.Ref).Delete(ctx, draft.Ref.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil {
		return "", fmt.Errorf("%s: %w", draft.Ref, err)
	}
	return draft.Ref.String() + " was deleted", nil
}

// errChanged: an object was changed since it was opened for editing.
var errChanged = errors.New("somebody else has changed it in the meantime; writing your text would undo that change. Below, your text is compared with what is stored now: edit it again")

// parse reads an edited object.
func parse(ref snapshot.Ref, before, text string) (*unstructured.Unstructured, error) {
	stored, next := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(before), &stored.Object); err != nil {
		return nil, fmt.Errorf("%s: %w", ref, err)
	}
	if err := yaml.UnmarshalStrict([]byte(text), &next.Object); err != nil {
		return nil, fmt.Errorf("this is not valid YAML: %w", err)
	}
	if next.GetAPIVersion() != stored.GetAPIVersion() || next.GetKind() != stored.GetKind() ||
		next.GetName() != ref.Name || next.GetNamespace() != ref.Namespace {
		return nil, fmt.Errorf("apiVersion, kind, name and namespace must stay those of %s", ref)
	}
	return next, nil
}

// put replaces an object by the text of a draft. A status that changed does not matter; if
// anything else did, the error is errChanged, and Before becomes what is stored.
func (w *writable) put(ctx context.Context, draft *tui.Draft, next *unstructured.Unstructured, options metav1.UpdateOptions) error {
	options.FieldManager, options.FieldValidation = fieldManager, metav1.FieldValidationStrict
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		stored, text, err := w.get(ctx, draft.Ref)
		if err != nil {
			return err
		}
		if text != draft.Before {
			draft.Before = text
			return errChanged
		}
		next.SetResourceVersion(stored.GetResourceVersion())
		_, err = w.resource(draft.Ref).Update(ctx, next, options)
		return err
	})
}

// editable is an object as its author wrote it.
func editable(o *unstructured.Unstructured) (string, error) {
	o = o.DeepCopy()
	delete(o.Object, "status")
	for _, field := range []string{"managedFields", "uid", "resourceVersion", "generation", "creationTimestamp"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	text, err := yaml.Marshal(o.Object)
	return string(text), err
}
