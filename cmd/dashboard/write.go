package dashboard

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/cmd/interview"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/wizards"
)

// fieldManager is the name under which edits are stored.
const fieldManager = "meshctl-dashboard"

// writable is a live source that can change what users write: a tui.Changer.
type writable struct {
	*live
	client dynamic.Interface
	ask    wizards.Prompter
}

func newWritable(ctx context.Context, l *live) (*writable, error) {
	client, err := dynamic.NewForConfig(l.config)
	if err != nil {
		return nil, fmt.Errorf("management cluster %s: %w", l.config.Host, err)
	}
	return &writable{live: l, client: client, ask: (&interview.Flags{}).Prompter(ctx, l.opts.Streams)}, nil
}

// Refuses implements tui.Changer.
func (w *writable) Refuses(ref snapshot.Ref) string {
	switch info := ref.Kind.Info(); {
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

// The answers to choose from.
const (
	goOn   = "yes"
	again  = "edit again"
	giveUp = "no"
)

// Edit implements tui.Changer.
func (w *writable) Edit(ctx context.Context, ref snapshot.Ref) (string, error) {
	stored, err := w.resource(ref).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("%s: %w", ref, err)
	}
	before, err := editable(stored)
	if err != nil {
		return "", fmt.Errorf("%s: %w", ref, err)
	}
	for text := before; ; {
		if text, err = w.ask.Edit(text); err != nil {
			return "", err
		}
		if strings.TrimSpace(text) == strings.TrimSpace(before) {
			return ref.String() + " was not changed", nil
		}
		next, err := parse(ref, stored, text)
		if err == nil {
			err = w.put(ctx, ref, next, &before, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		}
		question := wizards.Question{Text: "Write " + ref.String() + "?"}
		options := []wizards.Option{{Value: goOn}, {Value: again}, {Value: giveUp}}
		if err != nil {
			question.Text, options = w.reportError(err, before), options[1:]
		}
		answer, err := w.ask.Select(question, options, options[0].Value)
		if err != nil {
			return "", err
		}
		if answer == goOn {
			if err = w.put(ctx, ref, next, &before, metav1.UpdateOptions{}); err == nil {
				return ref.String() + " was written", nil
			}
			if answer, err = w.ask.Select(wizards.Question{Text: w.reportError(err, before)}, options[1:], again); err != nil {
				return "", err
			}
		}
		if answer == giveUp {
			return ref.String() + " was not changed", nil
		}
	}
}

// reportError reports why an edit cannot be written; it returns the next question.
func (w *writable) reportError(err error, stored string) string {
	w.ask.Say(snapshot.Clean(err.Error()) + "\n")
	if errors.Is(err, errChanged) {
		w.ask.Say(snapshot.Clean(stored) + "\n")
	}
	return "It cannot be written. What next?"
}

// errChanged: an object was changed since it was opened for editing.
var errChanged = errors.New("somebody else has changed it in the meantime; writing your text would undo that change. This is what is stored now")

// parse reads an edited object.
func parse(ref snapshot.Ref, stored *unstructured.Unstructured, text string) (*unstructured.Unstructured, error) {
	next := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(text), &next.Object); err != nil {
		return nil, fmt.Errorf("this is not valid YAML: %w", err)
	}
	if next.GetAPIVersion() != stored.GetAPIVersion() || next.GetKind() != stored.GetKind() ||
		next.GetName() != ref.Name || next.GetNamespace() != ref.Namespace {
		return nil, fmt.Errorf("apiVersion, kind, name and namespace must stay those of %s", ref)
	}
	return next, nil
}

// put replaces an object whose YAML is before. A status that changed does not
// matter; if anything else did, the error is errChanged, and before becomes what
// is stored.
func (w *writable) put(ctx context.Context, ref snapshot.Ref, next *unstructured.Unstructured, before *string, options metav1.UpdateOptions) error {
	options.FieldManager, options.FieldValidation = fieldManager, metav1.FieldValidationStrict
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		stored, err := w.resource(ref).Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		text, err := editable(stored)
		if err != nil {
			return err
		}
		if text != *before {
			*before = text
			return errChanged
		}
		next.SetResourceVersion(stored.GetResourceVersion())
		_, err = w.resource(ref).Update(ctx, next, options)
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

// Delete implements tui.Changer.
func (w *writable) Delete(ctx context.Context, ref snapshot.Ref) (string, error) {
	stored, err := w.resource(ref).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("%s: %w", ref, err)
	}
	answer, err := w.ask.Select(wizards.Question{Text: "Delete " + ref.String() + " and the objects generated from it?"},
		[]wizards.Option{{Value: giveUp}, {Value: goOn}}, giveUp)
	if err != nil {
		return "", err
	}
	if answer != goOn {
		return ref.String() + " was not deleted", nil
	}
	uid := stored.GetUID()
	if err := w.resource(ref).Delete(ctx, ref.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); err != nil {
		return "", fmt.Errorf("%s: %w", ref, err)
	}
	return ref.String() + " was deleted", nil
}
