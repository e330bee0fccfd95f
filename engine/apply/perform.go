package apply

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// response is the result of a step.
type response struct {
	class   class
	err     error
	created bool
	// took is the time of the request.
	took time.Duration
	// gone: there was nothing to delete.
	gone bool
	live mirror.Object
	// read is the content that was read.
	read *content
}

// absentVersion, sent as the resource version of an object to apply, matches no
// object: the apply succeeds only if it creates. (Versions of stored objects
// are etcd revisions, and the first one is taken by the store itself.)
const absentVersion = 1

// perform sends the request of a step.
func perform(ctx context.Context, c *kube.Client, s *shared, of mirror.ID, cluster string, do step) response {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	switch do.verb {
	case deleteObject:
		if do.explained {
			ctx = kube.Explained(ctx)
		}
		return sendDeletion(ctx, c, of, do.version)
	case readObject:
		current, err := readContent(ctx, c, of, do.content)
		return response{read: current, err: err}
	}
	version := strconv.FormatUint(max(do.version, absentVersion), 10)
	var document []byte
	var err error
	subresource := ""
	if do.verb == writeStatus {
		subresource = "status"
		document, err = statusBody(of, version, do.value)
	} else {
		document, err = objectBody(of, version, do.content, cluster, s.plane())
	}
	if err != nil {
		return response{class: refused, err: err}
	}
	o, code, err := send(ctx, c.Patch(types.ApplyPatchType).AbsPath(of.Path(subresource)...).Param("force", "true").Body(document))
	if err == nil && do.verb == writeStatus && o.Forged {
		o, code, err = purge(ctx, c, of, o.ResourceVersion, do.value)
	}
	if err != nil {
		r := response{class: classify(err), err: err}
		if do.verb == writeStatus && apierrors.IsNotFound(err) {
			r.class = conflict
		}
		return r
	}
	return response{created: code == http.StatusCreated, live: o.Object(of.Kind, cluster, s.plane())}
}

// send sends a patch and decodes the answer.
func send(ctx context.Context, request *rest.Request) (o mirror.Observed, code int, err error) {
	result := request.Param("fieldManager", snapshot.FieldManager).Do(ctx).StatusCode(&code)
	// Raw would hide the message of the API server.
	if err = result.Error(); err == nil {
		raw, _ := result.Raw()
		err = json.Unmarshal(raw, &o)
	}
	return o, code, err
}

// purge removes from a status what others wrote into it, which an apply leaves. What is
// ours was applied before: this changes none of it, so that all of it stays applied.
func purge(ctx context.Context, c *kube.Client, of mirror.ID, version string, value any) (mirror.Observed, int, error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	document, err := json.Marshal([]operation{
		// Another version than the stored one is a conflict.
		{Op: "replace", Path: "/metadata/resourceVersion", Value: version},
		{Op: "replace", Path: "/status", Value: value},
	})
	if err != nil {
		return mirror.Observed{}, 0, err
	}
	return send(ctx, c.Patch(types.JSONPatchType).AbsPath(of.Path("status")...).Body(document))
}

// readContent reads the content of an object whose kind relates to others, with a spec of the type of wanted; without one, if that is
// nil. It lists the one object, because a sink may list and not get.
func readContent(ctx context.Context, c *kube.Client, of mirror.ID, wanted *content) (*content, error) {
	path := of.Path("")
	raw, err := c.Get().AbsPath(path[:len(path)-1]...).Param("fieldSelector", "metadata.name="+of.Name).Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []struct {
			Metadata struct {
				Annotations map[string]string `json:"annotations"`
			} `json:"metadata"`
			Spec json.RawMessage `json:"spec"`
		} `json:"items"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	if len(list.Items) != 1 {
		return nil, errors.New("it is gone")
	}
	relations := mirror.ReadRelations(list.Items[0].Metadata.Annotations[snapshot.RelationsAnnotation])
	read := &content{Content: &snapshot.Content{}, named: &relations}
	if wanted == nil || wanted.Spec == nil || reflect.TypeOf(wanted.Spec).Kind() != reflect.Pointer {
		return read, nil
	}
	read.Spec = reflect.New(reflect.TypeOf(wanted.Spec).Elem()).Interface()
	return read, json.Unmarshal(list.Items[0].Spec, read.Spec)
}

// sendDeletion deletes the object only in the version that was checked, which is stricter
// than a precondition on its UID.
func sendDeletion(ctx context.Context, c *kube.Client, of mirror.ID, version uint64) response {
	seen := strconv.FormatUint(version, 10)
	background := metav1.DeletePropagationBackground
	options, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions:     &metav1.Preconditions{ResourceVersion: &seen},
		PropagationPolicy: &background,
	})
	if err != nil {
		return response{class: refused, err: err}
	}
	err = c.Delete().AbsPath(of.Path("")...).SetHeader("Content-Type", "application/json").Body(options).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return response{gone: true}
	}
	return response{class: classify(err), err: err}
}
