package issuer

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// remembered is for how long an answer is not given again while nothing changes. It spans
// the time until it is read back, and bounds what somebody costs who removes answers.
const remembered = time.Minute

// Pauses after writes that fail.
const (
	retryFirst = time.Second
	retryLast  = time.Minute
)

// worker answers the requests of one cluster.
type worker struct {
	*Issuer
	log    *slog.Logger
	writer writer
	stop   context.CancelFunc
	// wake has room for one: what is to be done is always the latest.
	wake chan struct{}
	// answers are those given to requests that are still to be done.
	answers map[snapshot.Ref]given

	mu     sync.Mutex
	jobs   []job
	config *rest.Config
}

// given is an answer, and what it was given to.
type given struct {
	uid        types.UID
	generation int64
	grant      *snapshot.CertificateGrant
	authority  *pki.Authority
	at         time.Time
	finished   bool
}

// set replaces what is to be done; config is nil if the cluster cannot be reached.
func (w *worker) set(jobs []job, config *rest.Config) {
	if config == nil {
		jobs = nil
	}
	w.mu.Lock()
	w.jobs, w.config = jobs, config
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *worker) latest() ([]job, *rest.Config) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.jobs, w.config
}

// run answers requests until ctx ends.
func (w *worker) run(ctx context.Context) {
	failures := 0
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-again:
		}
		jobs, config := w.latest()
		w.forget(jobs)
		pause := remembered
		if w.round(ctx, jobs, config) {
			failures = 0
		} else {
			failures++
			pause = kube.Jitter(kube.Backoff(retryFirst, retryLast, failures))
		}
		again = nil
		if len(jobs) > 0 {
			again = time.After(pause)
		}
	}
}

// round answers all requests, or until there is something newer. It reports whether all
// writes succeeded.
func (w *worker) round(ctx context.Context, jobs []job, config *rest.Config) bool {
	if len(jobs) == 0 {
		return true
	}
	if err := w.writer.reach(config); err != nil {
		w.log.Error("certificate requests cannot be answered", "error", err)
		return false
	}
	good := true
	for i := range jobs {
		if ctx.Err() != nil || len(w.wake) > 0 {
			return good
		}
		var err error
		if broken := kube.Catch(func() { err = w.do(ctx, &jobs[i]) }); broken != nil {
			err = broken
		}
		if err != nil && ctx.Err() == nil {
			good = false
			w.log.Warn("a certificate request was not answered; trying again", "error", kube.Message(err))
		}
	}
	return good
}

// do answers a request, unless that was done already.
func (w *worker) do(ctx context.Context, j *job) error {
	now := w.Now()
	attempt := given{uid: j.request.UID, generation: j.request.Generation, grant: j.grant, at: now}
	if j.grant != nil {
		attempt.authority = w.Roots.Authority(j.virtualMesh, j.grant.Root)
	}
	if before, ok := w.answers[j.ref]; ok && before.answers(&attempt) {
		return nil
	}
	status, refused := w.signAtATime(ctx, j, now)
	if err := ctx.Err(); err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(status, j.request.Status) {
		if err := w.writer.write(ctx, j.request, status); err != nil {
			if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
				err = nil // it is gone, or another one now, which will be seen
			}
			return err
		}
		w.said(j, refused, status)
	}
	attempt.finished = refused == ""
	w.answers[j.ref] = attempt
	return nil
}

// signAtATime makes the answer when it is this worker's turn.
func (w *worker) signAtATime(ctx context.Context, j *job, now time.Time) (certificatesv1.CertificateRequestStatus, pki.Reason) {
	select {
	case w.turns <- struct{}{}:
		defer func() { <-w.turns }()
	case <-ctx.Done():
		return certificatesv1.CertificateRequestStatus{}, ""
	}
	return j.answer(w.Roots, now)
}

// said tells what was answered.
func (w *worker) said(j *job, refused pki.Reason, status certificatesv1.CertificateRequestStatus) {
	request := j.request.Namespace + "/" + j.request.Name
	if refused != "" {
		w.metrics.refused.WithLabelValues(string(refused)).Inc()
		w.log.Warn("a certificate request was refused", "request", request, "reason", status.Error)
		return
	}
	w.metrics.signed.Inc()
	w.log.Info("signed a certificate of a mesh", "request", request, "usage", cmp.Or(string(j.grant.Usage), "CA"),
		"virtualMesh", j.virtualMesh.Namespace+"/"+j.virtualMesh.Name, "root", j.grant.Root)
}

// answers reports whether an answer still is one to another attempt.
func (g *given) answers(now *given) bool {
	return g.uid == now.uid && g.generation == now.generation && now.at.Sub(g.at) < remembered &&
		(g.finished || g.authority == now.authority && equality.Semantic.DeepEqual(g.grant, now.grant))
}

// forget drops the answers to requests that are not to be answered any more.
func (w *worker) forget(jobs []job) {
	open := map[snapshot.Ref]bool{}
	for i := range jobs {
		open[jobs[i].ref] = true
	}
	for ref := range w.answers {
		if !open[ref] {
			delete(w.answers, ref)
		}
	}
}
