// Package webhook answers API servers about what users are about to write: it says, as warnings, what it does, and rejects
// what Roles do not allow.
//
//	webhook.go        the answers
//	preview.go        what an edit does, in bounded time
//	configuration.go  how API servers know of it
//	run.go            serving it, and keeping the configuration up to date
//
// There are two webhooks, because they may fail in different ways. Warnings are never worth a rejection: without an answer,
// the API server goes on. Roles protect: without an answer, the failure policy decides, which an administrator chooses; and
// who is exempt from Roles is not asked about at all, so that nobody is locked out by a webhook that is down.
package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/rbac"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// The paths of the two webhooks.
const (
	WarningsPath = "/admission/warnings"
	RolesPath    = "/admission/roles"
)

// Mode says what Roles do.
type Mode string

const (
	// Off: Roles do nothing. So it is unless an administrator asks for them: with Roles enforced and none bound, nobody who
	// is not exempt may write anything.
	Off Mode = "off"
	// Warn: what Roles do not allow is written, with a warning. It is for the time in which Roles are being written.
	Warn Mode = "warn"
	// Enforce: what Roles do not allow is rejected.
	Enforce Mode = "enforce"
)

// Modes are all of them.
func Modes() []string { return []string{string(Off), string(Warn), string(Enforce)} }

// Account is the ServiceAccount of meshctl serve where `meshctl install` runs it.
const Account = "meshctl"

const (
	// Budget is the time within which an answer has warnings; later it has none.
	Budget = 200 * time.Millisecond
	// maxWarnings bounds the warnings of one answer: all that the API server shows cost the reader's attention.
	maxWarnings = 5
	// maxReview bounds what is read of a request: two objects of etcd's default limit (1.5 MiB) in JSON.
	maxReview = 8 << 20
)

// Options configure a Webhook. State and Namespace are required.
type Options struct {
	// Namespace is that of the management plane.
	Namespace string
	// State is the latest translation; nil before the first.
	State func() *snapshot.State
	// Mode says what Roles do; Off if empty.
	Mode Mode
	// Budget is the time within which an answer has warnings; the constant if zero.
	Budget time.Duration
	// Now is the clock; time.Now if nil.
	Now func() time.Time
	// Log receives what fails; slog.Default() if nil.
	Log *slog.Logger
}

// Webhook answers API servers. It may be used from several goroutines.
type Webhook struct {
	Options
	previews *previewer
}

// New returns a Webhook.
func New(o Options) *Webhook {
	if o.Budget == 0 {
		o.Budget = Budget
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Mode == "" {
		o.Mode = Off
	}
	return &Webhook{Options: o, previews: newPreviewer()}
}

// Kinds are those about which API servers ask: what users write for their meshes, and Roles.
func Kinds() []snapshot.Kind {
	return append(rbac.Kinds(), snapshot.ServiceDependency, snapshot.Role, snapshot.RoleBinding)
}

// Handler serves both webhooks.
func (w *Webhook) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST "+WarningsPath, w.answer(w.warnings))
	mux.Handle("POST "+RolesPath, w.answer(w.roles))
	return mux
}

// unanswerable is why there is no answer: the failure policy of the configuration decides then.
type unanswerable struct {
	code   int
	reason string
}

func (e *unanswerable) Error() string { return e.reason }

// answer decodes a review, and encodes what decide makes of it.
func (w *Webhook) answer(decide func(context.Context, *request) (*admissionv1.AdmissionResponse, error)) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		review, err := readReview(http.MaxBytesReader(out, r.Body, maxReview))
		var response *admissionv1.AdmissionResponse
		if err == nil {
			if broken := kube.Catch(func() { response, err = decide(r.Context(), review) }); broken != nil {
				w.Log.Error("an admission review could not be answered; the failure policy decides. This is a bug in meshctl, please report it", "error", broken)
				err = &unanswerable{http.StatusInternalServerError, "the review could not be answered; the log of meshctl serve has the reason"}
			}
		}
		if err != nil {
			code := http.StatusBadRequest
			if u, ok := err.(*unanswerable); ok { //nolint:errorlint // it is never wrapped
				code = u.code
			}
			http.Error(out, err.Error(), code)
			return
		}
		response.UID = review.UID
		for i, text := range response.Warnings {
			response.Warnings[i] = cut(text)
		}
		out.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(out).Encode(admissionv1.AdmissionReview{ // an error means that the server is gone
			TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}, Response: response,
		})
	})
}

// request is what an API server asks.
type request struct {
	*admissionv1.AdmissionRequest
	kind snapshot.Kind
	ref  snapshot.Ref
	// object is nil for a deletion, and before for a creation.
	object, before snapshot.APIObject
}

func readReview(body io.Reader) (*request, error) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(body).Decode(&review); err != nil {
		return nil, fmt.Errorf("the admission review cannot be read: %w; send admission.k8s.io/v1 as JSON", err)
	}
	if review.Request == nil {
		return nil, fmt.Errorf("the admission review has no request; send admission.k8s.io/v1 as JSON")
	}
	q := &request{AdmissionRequest: review.Request}
	kind, ok := snapshot.KindOf(schema.GroupKind{Group: q.Kind.Group, Kind: q.Kind.Kind})
	if !ok || !slices.Contains(Kinds(), kind) {
		return nil, fmt.Errorf("%s: meshctl answers nothing about this kind; correct the rules of the webhook", q.Kind.Kind)
	}
	q.kind = kind
	var err error
	if q.object, err = decode(kind, q.Object); err != nil {
		return nil, err
	}
	if q.before, err = decode(kind, q.OldObject); err != nil {
		return nil, err
	}
	// The name of one that is to be generated is not known yet.
	q.ref = snapshot.Ref{Kind: kind, Namespace: q.Namespace, Name: q.Name}
	if q.object != nil && q.ref.Name == "" {
		q.ref.Name = q.object.GetName()
	}
	if q.object != nil && q.ref.Name == "" {
		q.ref.Name = q.object.GetGenerateName() + "new"
		q.object.SetName(q.ref.Name)
	}
	return q, nil
}

func decode(kind snapshot.Kind, raw runtime.RawExtension) (snapshot.APIObject, error) {
	if len(raw.Raw) == 0 || string(raw.Raw) == "null" {
		return nil, nil
	}
	object := kind.New()
	if err := json.Unmarshal(raw.Raw, object); err != nil {
		return nil, fmt.Errorf("%s: the object in the admission review cannot be read: %w; install the custom resource types of this meshctl", kind, err)
	}
	return object, nil
}

// warnings says what an edit does.
func (w *Webhook) warnings(ctx context.Context, q *request) (*admissionv1.AdmissionResponse, error) {
	response := &admissionv1.AdmissionResponse{Allowed: true}
	state := w.State()
	if state == nil {
		return response, nil
	}
	if q.kind == snapshot.Role || q.kind == snapshot.RoleBinding {
		if q.object != nil && w.Mode != Off {
			response.Warnings = w.rules(state).Unbound(q.object)
		}
		return response, nil
	}
	// What is unchanged does nothing, and what is being deleted was asked about.
	if q.before != nil && q.object != nil && q.before.GetGeneration() == q.object.GetGeneration() && len(q.object.GetFinalizers()) < len(q.before.GetFinalizers()) {
		return response, nil
	}
	ctx, cancel := context.WithTimeout(ctx, w.Budget)
	defer cancel()
	found, err := w.previews.of(ctx, state.Input, explain.Edit{Ref: q.ref, Object: q.object}, w.Now())
	if err != nil {
		level := slog.LevelError
		if ctx.Err() != nil {
			level = slog.LevelDebug // it took too long
		}
		w.Log.Log(ctx, level, "an edit was admitted without warnings", "object", q.ref.String(), "error", err)
		return response, nil
	}
	for i, c := range found {
		if i == maxWarnings-1 && len(found) > maxWarnings {
			response.Warnings = append(response.Warnings, fmt.Sprintf("and %d more: meshctl plan -f FILE says all that this does", len(found)-i))
			break
		}
		response.Warnings = append(response.Warnings, c.Text)
	}
	return response, nil
}

func (w *Webhook) rules(state *snapshot.State) *rbac.Rules {
	m := state.Input.Management
	return rbac.New(w.Namespace, m.Roles, m.RoleBindings)
}

// verbs are those of Roles, by operation.
var verbs = map[admissionv1.Operation]rbac.Verb{admissionv1.Create: rbac.Create, admissionv1.Update: rbac.Update, admissionv1.Delete: rbac.Delete}

// roles rejects what no Role allows.
func (w *Webhook) roles(_ context.Context, q *request) (*admissionv1.AdmissionResponse, error) {
	response := &admissionv1.AdmissionResponse{Allowed: true}
	subject := rbac.Subject{User: q.UserInfo.Username, Groups: q.UserInfo.Groups}
	if w.Mode == Off || !rbac.Governs(q.kind) || rbac.Exempt(subject, w.Namespace, Account) != "" {
		return response, nil
	}
	state := w.State()
	if state == nil {
		return nil, &unanswerable{http.StatusServiceUnavailable, "meshctl serve has not read the Roles yet; try again"}
	}
	verb, ok := verbs[q.Operation]
	if !ok {
		return nil, &unanswerable{http.StatusBadRequest, "the operation " + string(q.Operation) + " is none that Roles are about"}
	}
	verdict := w.rules(state).Allowed(subject, verb, q.object, q.before)
	if verdict.Allowed {
		return response, nil
	}
	if w.Mode == Warn {
		response.Warnings = []string{"Roles will not allow this: " + verdict.Missing[0]}
		return response, nil
	}
	response.Allowed = false
	response.Result = &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: Denial(subject, verb, q.ref, verdict, w.Namespace),
	}
	return response, nil
}

// Denial is a rejection as a sentence, with what the user can do.
func Denial(s rbac.Subject, verb rbac.Verb, ref snapshot.Ref, verdict rbac.Verdict, namespace string) string {
	name := strings.TrimSpace(ref.Kind.String() + " " + snapshot.Clean(ref.Name))
	return fmt.Sprintf("%s may not %s %s: %s. Ask whoever writes Roles in namespace %s", s, verb, name, verdict.Text(), namespace)
}

// maxRunes is where a warning is cut: API servers drop longer ones than 4 KiB in all.
const maxRunes = 2 * explain.CautionRunes

// cut bounds a warning.
func cut(text string) string {
	runes := []rune(snapshot.Clean(text))
	if len(runes) <= maxRunes {
		return string(runes)
	}
	return string(runes[:maxRunes-1]) + "…"
}
