package apply_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// always gives all writes the same answer.
func always(code int, message string) func(string) (int, string) {
	return func(string) (int, string) { return code, message }
}

// crowd is how many objects are refused at once: so many that one request for each, again and again, would be seen.
const crowd = 2000

// TestARefusedObjectThatChanges is not written more often because it changes: one timer
// tries it again. What fixes it is written within the bound, and at once after a quiet time.
func TestARefusedObjectThatChanges(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		b.answers(always(http.StatusUnprocessableEntity, "spec is invalid"))
		for n := range 1000 {
			b.sink.Apply(policies(1, strconv.Itoa(n)))
			time.Sleep(time.Minute / 1000)
		}
		requests := b.count()
		b.Logf("1 refused object, its content changed 1,000 times: %d requests in a minute", requests)
		assert.LessOrEqual(b, requests, 10)
		require.Len(b, b.sink.Failures(), 1)
		assert.Equal(b, "spec is invalid", b.sink.Failures()[0].What)

		// It is wanted and not wanted in turn.
		for n := range 1000 {
			b.sink.Apply(policies(n%2, strconv.Itoa(n)))
			time.Sleep(time.Minute / 1000)
		}
		assert.LessOrEqual(b, b.count(), 10)

		b.answers(always(0, ""))
		b.sink.Apply(policies(1, "fixed"))
		time.Sleep(40 * time.Second)
		assert.Equal(b, 1, b.count(), "within the bound")
		assert.Empty(b, b.sink.Failures())

		b.answers(always(http.StatusUnprocessableEntity, "spec is invalid"))
		b.sink.Apply(policies(1, "bad"))
		time.Sleep(10 * time.Minute)
		b.answers(always(0, ""))
		b.count()
		b.sink.Apply(policies(1, "good"))
		time.Sleep(100 * time.Millisecond)
		assert.Equal(b, 1, b.count(), "a user's edit after quiet time is written at once")
		assert.Empty(b, b.sink.Failures())
	})
}

// TestRefusedObjectsDoNotDelayOthers, nor does the end of what is wanted wait.
func TestRefusedObjectsDoNotDelayOthers(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		b.answers(func(path string) (int, string) {
			if strings.Contains(path, "bad") {
				return http.StatusForbidden, denial
			}
			return 0, ""
		})
		var objects []*snapshot.Object
		for n := range crowd {
			objects = append(objects, policyObject(fmt.Sprintf("bad-%05d", n), "x"))
		}
		objects = append(objects, policyObject("good", "x"))
		b.sink.Apply(output([]string{one}, objects...))
		require.NoError(b, b.sink.Settled(b.Context()))
		assert.Len(b, b.sink.Failures(), crowd)
		assert.Equal(b, 1, b.stored())
		b.count()
		const minutes = 3
		time.Sleep(minutes * time.Minute)
		requests := b.count()
		b.Logf("%d objects, each refused for itself: %d retries in %d minutes", crowd, requests, minutes)
		assert.LessOrEqual(b, requests, minutes*60*50+crowd)
		assert.Greater(b, requests, 2*crowd, "each is tried again")
	})
}

// TestAWebhookThatIsDown refuses all objects of a kind: one is tried again after a while,
// and when it is taken, all are. Other kinds and namespaces go on.
func TestAWebhookThatIsDown(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		const down = `Internal error occurred: failed calling webhook "validation.istio.io": connection refused`
		broken := func(path string) (int, string) {
			if strings.Contains(path, "authorizationpolicies") && strings.Contains(path, "/namespaces/ns/") {
				return http.StatusInternalServerError, down
			}
			return 0, ""
		}
		b.answers(broken)
		out := policies(crowd, "x")
		elsewhere := policyObject("elsewhere", "x")
		elsewhere.Ref.Namespace = "another"
		entry := policyObject("entry", "x")
		entry.Ref.Kind = snapshot.ServiceEntry
		out.Parts = snapshot.Concat(out.Parts, output(nil, elsewhere).Parts, output(nil, entry).Parts)
		b.sink.Apply(out)
		time.Sleep(time.Second)
		assert.Equal(b, 2, b.stored(), "what the webhook does not see is written")
		time.Sleep(59 * time.Second)
		requests := b.count()
		b.Logf("%d objects behind an admission webhook that is down: %d requests in a minute", crowd, requests)
		assert.LessOrEqual(b, requests, 50)
		require.Len(b, b.sink.Failures(), crowd, "all are reported")
		assert.Equal(b, down, b.sink.Failures()[crowd-1].What)

		// Objects whose content changes are held back as well.
		for n := range 20 {
			out := policies(crowd, strconv.Itoa(n))
			b.sink.Apply(out)
			time.Sleep(time.Second)
		}
		assert.LessOrEqual(b, b.count(), 20)

		b.answers(always(0, ""))
		time.Sleep(13 * time.Second)
		assert.Empty(b, b.sink.Failures())
		assert.Equal(b, crowd, b.stored(), "all are written when one is taken")
	})
}

// TestAWebhookThatFailsOnSomeObjects does not keep others out: what was not tried goes first.
func TestAWebhookThatFailsOnSomeObjects(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		b.answers(func(path string) (int, string) {
			if strings.Contains(path, "policy-") {
				return http.StatusInternalServerError, "webhook panicked"
			}
			return 0, ""
		})
		bad := policies(100, "x")
		b.sink.Apply(bad)
		time.Sleep(10 * time.Minute)
		b.count()
		with := *bad
		with.Parts = snapshot.ListOf(append(bad.Parts.Slice(), output(nil, policyObject("z", "x")).Parts.Slice()[0]))
		with.Parts.Slice()[100].Key = "part/z"
		b.sink.Apply(&with)
		time.Sleep(13 * time.Second)
		assert.Equal(b, 1, b.stored())
	})
}

// TestAServerThatRejectsWrites answers probes, but gives writes errors that are not about
// the object: it is slowed down and reported, and served again when it takes writes.
func TestAServerThatRejectsWrites(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]int{
		"503": http.StatusServiceUnavailable, "429": http.StatusTooManyRequests, "401": http.StatusUnauthorized, "reset": codeReset,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bubble) {
				b.answers(always(code, "not now"))
				b.sink.Apply(policies(crowd, "x"))
				time.Sleep(time.Minute)
				requests := b.count()
				b.Logf("%d objects, all writes answered with %s: %d requests in a minute", crowd, name, requests)
				assert.LessOrEqual(b, requests, 120)
				failures := b.sink.Failures()
				require.NotEmpty(b, failures)
				assert.Equal(b, snapshot.KubernetesCluster, failures[0].Ref.Kind)

				b.answers(always(0, ""))
				time.Sleep(50 * time.Second)
				assert.Equal(b, crowd, b.stored())
				assert.Empty(b, b.sink.Failures())
			})
		})
	}
}

// TestAnObjectThatEndsConnections is slowed down alone.
func TestAnObjectThatEndsConnections(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		b.answers(func(path string) (int, string) {
			if strings.Contains(path, "policy-00007") {
				return codeReset, ""
			}
			return 0, ""
		})
		b.sink.Apply(policies(100, "x"))
		time.Sleep(time.Minute)
		assert.Equal(b, 99, b.stored())
		tries := map[string]int{}
		for _, path := range b.written() {
			tries[path[strings.LastIndex(path, "/")+1:]]++
		}
		assert.LessOrEqual(b, tries["policy-00007"], 10)
		delete(tries, "policy-00007")
		for name, n := range tries {
			assert.LessOrEqual(b, n, 2, "%s may have been on its way", name)
		}
		require.Len(b, b.sink.Failures(), 1)
		assert.Equal(b, "policy-00007", b.sink.Failures()[0].Ref.Name)
		for n := range 10 {
			began := time.Now()
			objects := policies(100, strconv.Itoa(n))
			b.sink.Apply(objects)
			require.NoError(b, b.sink.Settled(b.Context()))
			assert.Less(b, time.Since(began), 5*time.Second, "others are written")
		}
	})
}

// TestAnotherCredentialIsTriedAtOnce: what an API server refused with the last one does not
// wait for the next turn of a long backoff.
func TestAnotherCredentialIsTriedAtOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		for many := 1; many <= 5; many++ {
			b.answers(always(http.StatusUnauthorized, "Unauthorized"))
			b.sink.Apply(policies(many, "x"))
			time.Sleep(10*time.Minute + time.Duration(many)*1700*time.Millisecond) // somewhere in the backoff
			require.NotEmpty(b, b.sink.Failures())
			b.answers(always(0, ""))
			b.sink.Renewed(one)
			time.Sleep(200 * time.Millisecond)
			assert.Equal(b, many, b.stored())
			assert.Empty(b, b.sink.Failures())
		}
	})
}
