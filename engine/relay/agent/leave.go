package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/relay/pump"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// Home is what registration gave an agent in its cluster.
type Home interface {
	// Leave removes it, so that nothing is left of the agent. An error says why it stays.
	Leave(ctx context.Context) error
}

// parting removes from a cluster what is the management plane's, and then the agent itself, because the hub says that the cluster is
// deregistered. It goes on while the hub is away, and begins again if the agent starts again and is told so again.
type parting struct {
	local *watch.Local
	// disk and home are nil if there are none.
	disk Disk
	home Home
	log  *slog.Logger
	// begun receives a value when the hub has said so, and signal is that of the stream of Desire.
	begun, signal chan struct{}

	mu sync.Mutex
	// asked: the hub has said so on the stream that there is, or was the last one. It says so again on each: a cluster that was registered
	// again meanwhile does not leave.
	asked bool
	// answer is what the hub is told; nil before there is anything. told: the stream that there is has it.
	answer *relayv1.Goodbye
	told   bool
}

// Pauses between two looks at what is left, and for how long the hub may take to hear that nothing is.
const (
	partPause = time.Second
	stayPause = 30 * time.Second
	tellTime  = 5 * time.Second
)

// heard takes the Goodbye of the hub.
func (p *parting) heard(g *relayv1.Goodbye) {
	if g.GetCollect() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asked = true
		pump.Signal(p.begun)
		pump.Signal(p.signal)
	}
}

func (p *parting) isAsked() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// begin starts with a new stream.
func (p *parting) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked, p.told = false, false
}

// next is what the hub is to be told.
func (p *parting) next() (*relayv1.Feedback, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answer == nil || p.told || !p.asked {
		return nil, false
	}
	p.told = true
	return &relayv1.Feedback{Frame: &relayv1.Feedback_Goodbye{Goodbye: p.answer}}, true
}

// say tells the hub that the agent has gone, or why it stays.
func (p *parting) say(stays error) {
	answer := &relayv1.Goodbye{Collect: stays == nil}
	if stays != nil {
		answer.Reason = stays.Error()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answer.GetCollect() != answer.GetCollect() || p.answer.GetReason() != answer.GetReason() {
		p.answer, p.told = answer, false
		pump.Signal(p.signal)
	}
}

// over reports whether the hub was told that nothing is left.
func (p *parting) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answer.GetCollect() && p.told
}

// gone reports whether nothing is left.
func (p *parting) gone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answer.GetCollect()
}

// run removes everything once the hub says goodbye. It returns when nothing is left, or ctx ends. Cease is called before anything is
// removed.
func (p *parting) run(ctx context.Context, cease func()) {
	for last := ""; ; {
		if !p.isAsked() {
			select {
			case <-ctx.Done():
				return
			case <-p.begun:
				p.log.Warn("the cluster is deregistered: what meshctl wrote is removed from it, and then the agent")
				continue
			}
		}
		cease()
		waits, err := p.step(ctx)
		pause := partPause
		switch {
		case err == nil && waits == "":
			p.say(nil)
			p.log.Info("the cluster is left: nothing of meshctl is in it any more")
			sleep(ctx, tellTime)
			return
		case err != nil:
			waits = err.Error()
			var stays *stayError
			if errors.As(err, &stays) {
				p.say(stays)
				pause = stayPause
			}
		}
		if waits != last {
			last = waits
			p.log.Info("leaving the cluster", "waiting", waits)
		}
		if !sleep(ctx, pause) {
			return
		}
	}
}

// sleep waits; false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// stayError is why an agent cannot remove itself.
type stayError struct{ error }

func (e *stayError) Unwrap() error { return e.error }

// step removes what can be removed now, and says what is waited for; empty if nothing is left.
func (p *parting) step(ctx context.Context) (waits string, err error) {
	if p.disk != nil { // what starts again must not write it again
		if err := p.disk.Drop(ctx); err != nil {
			return "", fmt.Errorf("what is stored of the objects of the hub: %w", err)
		}
	}
	conn := p.local.Link().State().Conn
	c, _ := p.local.Cluster()
	if conn == nil || c.Frozen() {
		return snapshot.Sentences("the objects of the cluster are read", c.Reason), nil
	}
	left, err := removeOurs(ctx, conn)
	switch meshes := c.MeshesLeaving(); {
	case err != nil:
		return "", err
	case left > 0:
		return fmt.Sprintf("%d objects are deleted", left), nil
	case len(meshes) > 0:
		return "meshes get back the certificates that they had before: " + strings.Join(meshes, ", "), nil
	case p.home == nil:
		return "", &stayError{errors.New("it does not know what was made for it in the cluster")}
	}
	if err := p.home.Leave(ctx); err != nil {
		return "", &stayError{err}
	}
	return "", nil
}

// removeOurs deletes the objects of the management plane, routes before what they use, and returns how many there were.
func removeOurs(ctx context.Context, conn *mirror.Connection) (left int, err error) {
	ours := map[snapshot.Kind]map[mirror.ID]mirror.Object{}
	for of, o := range conn.All() {
		if !o.Ours() || !o.Here {
			continue
		}
		if ours[of.Kind] == nil {
			ours[of.Kind] = map[mirror.ID]mirror.Object{}
		}
		ours[of.Kind][of] = o
		left++
	}
	var failed []error
	for _, kind := range slices.Backward(snapshot.Kinds(snapshot.ManagedSide, snapshot.Write)) {
		for of, o := range ours[kind] {
			if !o.Going {
				failed = append(failed, remove(ctx, conn, of, o))
			}
		}
	}
	return left, errors.Join(failed...)
}

// remove deletes an object as it was seen.
func remove(ctx context.Context, conn *mirror.Connection, of mirror.ID, o mirror.Object) error {
	version := strconv.FormatUint(o.Version, 10)
	body, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions: &metav1.Preconditions{ResourceVersion: &version},
	})
	if err != nil {
		return err
	}
	err = conn.Delete().AbsPath(kube.Path(of.Kind, of.Namespace, of.Name, "")...).SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
	if err == nil || kube.IsAbsent(err) || apierrors.IsConflict(err) {
		return nil // what changed is seen again
	}
	return fmt.Errorf("deleting %s: %w", of.Ref(conn.Cluster), err)
}
