package serve

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/kube"
)

const (
	// verdictTime is how long an answer of the API server counts: as long as for
	// Kubernetes' own components.
	verdictTime = 10 * time.Second
	// maxVerdicts bounds the answers that are remembered.
	maxVerdicts = 256
	// reviewTimeout bounds the two questions to the API server about one request.
	reviewTimeout = 5 * time.Second
	// reviewQPS and reviewBurst limit these questions, so that requests with made-up
	// tokens are no load on the API server.
	reviewQPS, reviewBurst = 10, 20
)

// reviews are the resources that the identity of this process must be allowed to
// create, by API group.
var reviews = map[string]string{
	authenticationv1.GroupName: "tokenreviews",
	authorizationv1.GroupName:  "subjectaccessreviews",
}

// reviewsNeeded says how to repair that it is not allowed.
const reviewsNeeded = "allow it with the ClusterRole system:auth-delegator"

// guard lets through what the API server of the management cluster allows, as
// Kubernetes' own components do for their endpoints: it knows the bearer token of the
// request (TokenReview), and a rule for nonResourceURLs allows its user the method on
// the path (SubjectAccessReview).
type guard struct {
	api kube.Clientset
	// verdicts are the latest answers, by a hash of the token and what it was for.
	verdicts *cache.LRUExpireCache
}

// verdict is the answer to a request; http.StatusOK lets it through.
type verdict struct {
	code int
	text string
}

// newGuard prepares a guard without I/O.
func newGuard(management *rest.Config) (*guard, error) {
	config := rest.CopyConfig(management)
	config.QPS, config.Burst, config.RateLimiter = reviewQPS, reviewBurst, nil
	config.Timeout = reviewTimeout
	api, err := kube.NewClientset(config)
	if err != nil {
		return nil, fmt.Errorf("debug endpoint: building a client to review tokens: %w", err)
	}
	return &guard{api: api, verdicts: cache.NewLRUExpireCache(maxVerdicts)}, nil
}

// report warns if this process may not ask what the guard asks: every request would
// be refused.
func (g *guard) report(ctx context.Context, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	for group, resource := range reviews {
		review, err := g.api.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "create", Group: group, Resource: resource,
			}},
		}, metav1.CreateOptions{})
		switch {
		case err != nil:
			log.Warn("it is not known whether the debug endpoint can check tokens", "error", kube.Message(err))
			return
		case !review.Status.Allowed:
			log.Warn("the debug endpoint refuses all requests: this process may not create "+resource+"."+group+"; "+reviewsNeeded,
				"reason", review.Status.Reason)
			return
		}
	}
}

// protect puts the guard before a handler.
func (g *guard) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := g.authorize(r)
		if v.code == http.StatusOK {
			next.ServeHTTP(w, r)
			return
		}
		if v.code == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		writeText(w, v.code, v.text)
	})
}

func (g *guard) authorize(r *http.Request) verdict {
	token := bearerToken(r)
	if token == "" {
		return verdict{http.StatusUnauthorized, "the request has no bearer token; send a token of the management cluster, such as `kubectl create token` prints"}
	}
	asked := authorizationv1.NonResourceAttributes{Verb: strings.ToLower(r.Method), Path: r.URL.Path}
	// Neither a token nor a verb contains a newline.
	key := sha256.Sum256([]byte(token + "\n" + asked.Verb + "\n" + asked.Path))
	if known, ok := g.verdicts.Get(key); ok {
		return known.(verdict)
	}
	ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
	defer cancel()
	v, err := g.review(ctx, token, asked)
	if err != nil {
		return verdict{http.StatusServiceUnavailable, unanswered(err)}
	}
	g.verdicts.Add(key, v, verdictTime)
	return v
}

// bearerToken returns the token of a request, or nothing. A token has no spaces: the
// API server would take its parts for something else.
func bearerToken(r *http.Request) string {
	words := strings.Split(r.Header.Get("Authorization"), " ")
	if len(words) != 2 || !strings.EqualFold(words[0], "Bearer") {
		return ""
	}
	return words[1]
}

// review asks the API server whose token it is, and what this user may do.
func (g *guard) review(ctx context.Context, token string, asked authorizationv1.NonResourceAttributes) (verdict, error) {
	who, err := g.api.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	if err != nil {
		return verdict{}, err
	}
	if !who.Status.Authenticated {
		return verdict{http.StatusUnauthorized, "the management cluster does not accept the bearer token: it is of another cluster, or has expired"}, nil
	}
	user := who.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for name, values := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	may, err := g.api.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra, NonResourceAttributes: &asked,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return verdict{}, err
	}
	if !may.Status.Allowed {
		return verdict{http.StatusForbidden, fmt.Sprintf("%s may not %s %s; allow it on the management cluster with a ClusterRole that has a rule for nonResourceURLs",
			user.Username, asked.Verb, asked.Path)}, nil
	}
	return verdict{code: http.StatusOK}, nil
}

// unanswered says why the API server could not be asked. The caller is unknown, and
// must not learn the name of this process or the address of the API server.
func unanswered(err error) string {
	if apierrors.IsForbidden(err) {
		return "tokens cannot be checked: meshctl serve may not create tokenreviews and subjectaccessreviews on the management cluster; " + reviewsNeeded
	}
	return "tokens cannot be checked: " + kube.Reason("the API server of the management cluster", err) + "; try again later"
}
