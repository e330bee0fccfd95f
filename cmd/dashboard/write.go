package dashboard

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/cmd/interview"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/wizards"
)

// fieldManager is the name under which edits are stored.
const fieldManager = "meshctl-dashboard"

// writable is live that changes what users write: a tui.Changer.
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
		return "a registration is changed by meshctl cluster register and deregister"
	case info.Side != snapshot.ManagementSide || info.Access&snapshot.Watch == 0:
		return "a " + ref.Kind.String() + " is what was discovered; it changes with what it was made for"
	}
	return ""
}

func (w *writable) resource(ref snapshot.Ref) dynamic.ResourceInterface {
	info := ref.Kind.Info()
	return w.client.Resource(info.GroupVersion().WithResource(info.Resource)).Namespace(ref.Namespace)
}

// The answers.
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
			return ref.String() + " stays as it is", nil
		}
		next, refused := w.try(ctx, ref, stored, text)
		if apierrors.IsConflict(refused) {
			return "", fmt.Errorf("%s: somebody else has changed it meanwhile; edit it again", ref)
		}
		question := wizards.Question{Text: "Write " + ref.String() + "?"}
		options := []wizards.Option{{Value: goOn}, {Value: again}, {Value: giveUp}}
		if refused != nil {
			w.ask.Say(snapshot.Clean(refused.Error()) + "\n")
			question.Text, options = "It is refused. What next?", options[1:]
		}
		answer, err := w.ask.Select(question, options, options[0].Value)
		switch {
		case err != nil:
			return "", err
		case answer == giveUp:
			return ref.String() + " stays as it is", nil
		case answer == again:
			continue
		}
		if _, err := w.resource(ref).Update(ctx, next, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil {
			return "", fmt.Errorf("%s: %w", ref, err)
		}
		return ref.String() + " is written", nil
	}
}

// try makes an object of a text and asks the API server whether it would take
// it in place of what is stored.
func (w *writable) try(ctx context.Context, ref snapshot.Ref, stored *unstructured.Unstructured, text string) (*unstructured.Unstructured, error) {
	next := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(text), &next.Object); err != nil {
		return nil, fmt.Errorf("this is no YAML: %w", err)
	}
	if next.GetAPIVersion() != stored.GetAPIVersion() || next.GetKind() != stored.GetKind() ||
		next.GetName() != ref.Name || next.GetNamespace() != ref.Namespace {
		return nil, fmt.Errorf("apiVersion, kind, name and namespace must stay those of %s", ref)
	}
	// What was edited is the version that was read: one that somebody else
	// wrote meanwhile is not overwritten.
	next.SetResourceVersion(stored.GetResourceVersion())
	_, err := w.resource(ref).Update(ctx, next, metav1.UpdateOptions{
		FieldManager: fieldManager, DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
	})
	return next, err
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
	answer, err := w.ask.Select(wizards.Question{Text: "Delete " + ref.String() + ", and all that follows from it?"},
		[]wizards.Option{{Value: giveUp}, {Value: goOn}}, giveUp)
	if err != nil {
		return "", err
	}
	if answer != goOn {
		return ref.String() + " stays", nil
	}
	uid := stored.GetUID()
	if err := w.resource(ref).Delete(ctx, ref.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); err != nil {
		return "", fmt.Errorf("%s: %w", ref, err)
	}
	return ref.String() + " is deleted", nil
}
