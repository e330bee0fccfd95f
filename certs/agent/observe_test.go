package agent

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestWhatMayRestart: a mesh that leaves may restart what it could to join, although its
// directive goes first, or comes last; and not what the directive did not allow any more.
func TestWhatMayRestart(t *testing.T) {
	t.Parallel()
	joined, edited := []certificatesv1.PodSelector{{Namespace: "a"}}, []certificatesv1.PodSelector{{Namespace: "b"}}
	certificate := &certificatesv1.IssuedCertificate{}
	directive := func(pods []certificatesv1.PodSelector) *certificatesv1.PodBounceDirective {
		return &certificatesv1.PodBounceDirective{Spec: certificatesv1.PodBounceDirectiveSpec{PodsToBounce: pods}}
	}
	m, now := &mesh{}, testStart
	recorded := &record{}
	look := func(after time.Duration, c *certificatesv1.IssuedCertificate, d *certificatesv1.PodBounceDirective) []certificatesv1.PodSelector {
		now = now.Add(after)
		o := &observed{now: now, certificate: c, directive: d, leaveAfter: time.Minute}
		got := m.mayRestart(o, recorded.Restart, recorded)
		if c != nil { // as it is written
			recorded.Restart = got
		}
		return got
	}
	assert.Equal(t, joined, look(0, certificate, directive(joined)))
	assert.Equal(t, edited, look(time.Second, certificate, directive(edited)))
	assert.Equal(t, edited, look(time.Second, certificate, nil), "it is briefly missing")
	assert.Equal(t, edited, look(59*time.Second, certificate, nil))
	assert.Equal(t, edited, look(time.Second, nil, nil), "the mesh leaves")
	assert.Equal(t, edited, look(time.Hour, nil, nil))
	m = &mesh{}
	assert.Equal(t, edited, look(time.Hour, nil, nil), "another agent")
	assert.Equal(t, edited, look(time.Second, certificate, directive(edited)), "the mesh is back")
	assert.Equal(t, edited, look(time.Second, certificate, nil))
	assert.Empty(t, look(time.Minute, certificate, nil), "restarts are not allowed any more")
	assert.Empty(t, look(time.Second, nil, nil))
	assert.Empty(t, look(time.Second, certificate, directive(make([]certificatesv1.PodSelector, maxRestart+1))), "too much for a record")
}

// TestLeavesNow: who deregisters a cluster need not wait; what was asked long ago, or by a clock that is far off, does not count.
func TestLeavesNow(t *testing.T) {
	t.Parallel()
	assert.False(t, leavesNow(nil, testStart))
	for asked, want := range map[string]bool{
		"": false, "now": false,
		testStart.Format(time.RFC3339):                                            true,
		testStart.Add(-snapshot.LeaveNowLasts + time.Second).Format(time.RFC3339): true,
		testStart.Add(time.Minute).Format(time.RFC3339):                           true,
		testStart.Add(-snapshot.LeaveNowLasts).Format(time.RFC3339):               false,
		testStart.Add(snapshot.LeaveNowLasts + time.Second).Format(time.RFC3339):  false,
	} {
		request := &certificatesv1.CertificateRequest{}
		request.Annotations = map[string]string{snapshot.LeaveNowAnnotation: asked}
		assert.Equal(t, want, leavesNow(request, testStart), asked)
	}
}

// TestWhatWasSeenLast: without a report, as of a mesh that leaves, it is what the last look
// saw, with what workloads presented then.
func TestWhatWasSeenLast(t *testing.T) {
	t.Parallel()
	last := &MeshState{Presented: []string{"a"}, Trusted: []string{"b"}, Signing: &certificatesv1.RootSince{Root: "c"}, HandedOut: []certificatesv1.RootSince{{Root: "d"}}}
	assert.Equal(t, &certificatesv1.TrustReport{Presented: last.Presented, Trusted: last.Trusted, Signing: last.Signing, HandedOut: last.HandedOut},
		MeshTarget{}.since(last).Earlier)
	assert.Nil(t, MeshTarget{}.since(nil).Earlier, "nothing was seen, so that anything may be presented")
	reported := &certificatesv1.TrustReport{}
	assert.Same(t, reported, MeshTarget{Earlier: reported}.since(last).Earlier)
}
