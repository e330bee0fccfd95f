package watch

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// sounding is a feed of which only matters when the server last sent something.
type sounding struct {
	feeder
	of     snapshot.Kind
	at     time.Time
	denied bool
}

func (s *sounding) kind() snapshot.Kind { return s.of }
func (s *sounding) heard() time.Time    { return s.at }
func (s *sounding) isDenied() bool      { return s.denied }

func (s *sounding) brokenObjects(string) []snapshot.Failure { return nil }

func TestAClusterOfWhichNothingComesIsFrozen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pods, nodes := &sounding{of: snapshot.Pod, at: time.Now()}, &sounding{of: snapshot.Node, at: time.Now()}
		cache := newClusterCache[snapshot.Cluster](nil, &mirror.Connection{}, func() {})
		cache.feeds = []feeder{&sounding{of: snapshot.TrafficPolicy, denied: true}, pods, nodes}
		c := newMember(&snapshot.Cluster{Name: "west"}, sessionSettings{silence: kube.DefaultSilence}, slog.New(slog.DiscardHandler), func() {})
		s := &session{sessionSettings: c.settings, cluster: c, config: &rest.Config{Host: "https://west:6443"}}
		c.active = &runningSession{session: s}
		assert.Zero(t, c.heard(), "nothing was read yet")
		c.publish(s, cache)

		time.Sleep(2 * kube.DefaultSilence)
		pods.at = time.Now()
		assert.False(t, s.freezeIfSilent(cache), "the list may come until now")
		assert.Equal(t, 2*kube.DefaultSilence, time.Since(c.heard()), "the quietest kind counts")

		time.Sleep(time.Second)
		assert.True(t, s.freezeIfSilent(cache))
		view, _ := c.current()
		assert.Equal(t, snapshot.Stale, view.Sync)
		assert.Equal(t, "https://west:6443 answers, but has sent nothing about its nodes for more than 5m0s, neither events nor a list; check what is between here and there", view.Reason)
		assert.Equal(t, 2*kube.DefaultSilence+time.Second, time.Since(c.heard()), "what is known grows older while the cluster is frozen")

		cache.published.Store(false)
		assert.False(t, s.freezeIfSilent(cache), "a cluster that is not read yet has another reason")
	})
}
