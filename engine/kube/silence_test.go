package kube

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// listening is a watch and its end at the server.
type listening struct {
	*audible
	server *watch.FakeWatcher
}

func listen(ctx context.Context, lister *Lister) listening {
	server := watch.NewFake()
	return listening{newAudible(ctx, lister, server), server}
}

// next is what the watch delivers now: nil if that is nothing, or if it has ended.
func (l listening) next(t *testing.T) (event *watch.Event, ended bool) {
	t.Helper()
	synctest.Wait()
	select {
	case event, open := <-l.ResultChan():
		if open {
			return &event, false
		}
		return nil, true
	default:
		return nil, false
	}
}

func TestAWatchThatDeliversNothingEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		silences := atomic.Int64{}
		lister := &Lister{Silent: func() { silences.Add(1) }}
		l := listen(t.Context(), lister)
		for _, sign := range []watch.EventType{watch.Bookmark, watch.Bookmark, watch.Added, watch.Bookmark} {
			time.Sleep(DefaultSilence - time.Second)
			event, ended := l.next(t)
			require.False(t, ended, "events and bookmarks are signs of life")
			require.Nil(t, event)
			l.server.Action(sign, &corev1.Pod{})
			event, _ = l.next(t)
			require.NotNil(t, event)
			assert.Equal(t, sign, event.Type)
			assert.Zero(t, time.Since(lister.Heard()))
		}

		time.Sleep(DefaultSilence)
		event, _ := l.next(t)
		require.NotNil(t, event)
		require.Equal(t, watch.Error, event.Type)
		assert.True(t, apierrors.IsResourceExpired(apierrors.FromObject(event.Object)), "the reflector lists again: %v", event.Object)
		_, ended := l.next(t)
		assert.True(t, ended)
		assert.EqualValues(t, 1, silences.Load())
		assert.Equal(t, DefaultSilence, time.Since(lister.Heard()), "its end is no sign of life")
		_, err := lister.WatchWithContext(t.Context(), metav1.ListOptions{SendInitialEvents: new(true)})
		require.ErrorIs(t, err, errSilent, "the next list is no stream")
		l.Stop()
		l.Stop()
		assert.True(t, l.server.IsStopped())

		again := listen(t.Context(), lister)
		again.server.Add(&corev1.Pod{})
		event, _ = again.next(t)
		assert.NotNil(t, event)
		assert.False(t, lister.silent.Load(), "a watch delivers again")
		again.Stop()
		_, ended = again.next(t)
		assert.True(t, ended)
	})
}

func TestABusyReaderIsNoSilentServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lister := &Lister{Silent: func() { t.Error("it counts as silent") }}
		l := listen(t.Context(), lister)
		l.server.Add(&corev1.Pod{})
		time.Sleep(10 * DefaultSilence)
		event, _ := l.next(t)
		require.NotNil(t, event)
		time.Sleep(DefaultSilence - time.Second)
		_, ended := l.next(t)
		require.False(t, ended, "the time begins when the reader waits")

		l.server.Stop()
		event, ended = l.next(t)
		assert.Nil(t, event)
		assert.True(t, ended, "the server ends the watch")
		l.Stop()
	})
}
