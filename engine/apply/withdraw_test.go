package apply_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// globalAccess is the name of what denies all that no other object allows.
const globalAccess = "global-access-control"

// protected is a cluster with the policies of some services and what denies the rest.
func (w *world) protected(services int) []*snapshot.Object {
	parent := snapshot.Ref{Kind: snapshot.AccessPolicy, Namespace: w.namespace, Name: "allow"}
	var out []*snapshot.Object
	for i := range services {
		o := w.object(snapshot.AuthorizationPolicy, "cluster-1", fmt.Sprintf("service-%d", i), hosts("a"))
		o.Content.Parents = []snapshot.Ref{parent}
		out = append(out, o)
	}
	deny := w.object(snapshot.AuthorizationPolicy, "cluster-1", globalAccess, hosts())
	deny.Content.Relations.Protects = true
	return append(out, deny)
}

// limited is an Output with bounds.
func limited(grace time.Duration, objects ...*snapshot.Object) *snapshot.Output {
	out := output([]string{"cluster-1"}, objects...)
	out.Withdrawals = snapshot.Withdrawals{Grace: grace, MaxPercent: 30}
	return out
}

// edits are those of one object.
func edits(kind snapshot.Kind, namespace, name string) apply.Edits {
	return apply.Edits{Objects: map[snapshot.Ref]bool{{Kind: kind, Namespace: namespace, Name: name}: true}}
}

// held is why nothing is deleted in a cluster; empty if that is not so.
func (r *running) held() string {
	for _, f := range r.Failures() {
		if f.Code == snapshot.WithdrawalHeld {
			return f.Reason.String()
		}
	}
	return ""
}

func TestWhatIsMissingStaysForAWhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, _ := w.run()
	r.Set("cluster-1", w.config)
	all := w.protected(20)
	const grace = 1500 * time.Millisecond
	r.Apply(limited(grace, all...))
	r.settle()

	// One Service is gone.
	began := time.Now()
	r.ApplyEdited(limited(grace, all[1:]...), apply.Edits{})
	r.settle()
	assert.True(t, w.exists(snapshot.AuthorizationPolicy, "service-0"))
	w.eventually("it goes", func() bool { return !w.exists(snapshot.AuthorizationPolicy, "service-0") })
	assert.GreaterOrEqual(t, time.Since(began), grace)

	// It is gone, and comes back in time.
	r.ApplyEdited(limited(time.Hour, all[2:]...), apply.Edits{})
	r.settle()
	before := w.get(snapshot.AuthorizationPolicy, "service-1").GetResourceVersion()
	r.ApplyEdited(limited(time.Nanosecond, all[1:]...), apply.Edits{})
	r.settle()
	assert.Equal(t, before, w.get(snapshot.AuthorizationPolicy, "service-1").GetResourceVersion())

	// A user's edit that explains it, and one that does not.
	r.ApplyEdited(limited(time.Hour, all[2:]...), edits(snapshot.AccessPolicy, w.namespace, "another"))
	r.settle()
	assert.True(t, w.exists(snapshot.AuthorizationPolicy, "service-1"))
	r.ApplyEdited(limited(time.Hour, all[3:]...), edits(snapshot.AccessPolicy, w.namespace, "allow"))
	w.eventually("it goes at once", func() bool { return !w.exists(snapshot.AuthorizationPolicy, "service-2") })
	w.eventually("what the edit explains goes, too, that was gone before", func() bool { return !w.exists(snapshot.AuthorizationPolicy, "service-1") })
	assert.Empty(t, r.held())
}

func TestRoutesGoWithTheirPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, _ := w.run()
	r.Set("cluster-1", w.config)
	r.Apply(limited(time.Hour, append(w.protected(9), w.object(snapshot.VirtualService, "cluster-1", "route", hosts("a")))...))
	r.settle()
	r.ApplyEdited(limited(time.Hour, w.protected(9)...), apply.Edits{})
	w.eventually("the route goes", func() bool { return !w.exists(snapshot.VirtualService, "route") })
}

func TestNothingIsDeletedIfTooMuchWouldBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, stop := w.run()
	r.Set("cluster-1", w.config)
	all := w.protected(20)
	r.Apply(limited(time.Nanosecond, all...))
	r.settle()

	// A third and more.
	r.ApplyEdited(limited(time.Nanosecond, all[8:]...), apply.Edits{})
	r.settle()
	w.eventually("it is reported", func() bool { return r.held() != "" })
	assert.Contains(t, r.held(), "8 of 21 objects of ours are no longer wanted there (8 of kind AuthorizationPolicy)")
	for i := range 8 {
		assert.True(t, w.exists(snapshot.AuthorizationPolicy, fmt.Sprintf("service-%d", i)))
	}

	// It is remembered by who starts anew.
	stop()
	r, _ = w.run()
	r.Set("cluster-1", w.config)
	r.ApplyEdited(limited(time.Nanosecond, all[8:]...), apply.Edits{})
	w.eventually("it is reported again", func() bool { return r.held() != "" })
	code := regexp.MustCompile(`--code (\w+)`).FindStringSubmatch(r.held())
	require.Len(t, code, 2)

	// An administrator lets it pass; another code does not.
	r.ApplyEdited(limited(time.Hour, all[8:]...), apply.Edits{Released: map[string]string{"cluster-1": "00000000"}})
	r.settle()
	assert.NotEmpty(t, r.held())
	r.ApplyEdited(limited(time.Hour, all[8:]...), apply.Edits{Released: map[string]string{"cluster-1": code[1]}})
	w.eventually("they go", func() bool {
		return !w.exists(snapshot.AuthorizationPolicy, "service-0") && !w.exists(snapshot.AuthorizationPolicy, "service-7")
	})
	assert.Empty(t, r.held())
	assert.True(t, w.exists(snapshot.AuthorizationPolicy, "service-8"))
}

func TestWhatDeniesStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, _ := w.run()
	r.Set("cluster-1", w.config)
	all := w.protected(20)
	r.Apply(limited(time.Nanosecond, all...))
	r.settle()
	r.ApplyEdited(limited(time.Nanosecond, all[:20]...), apply.Edits{})
	r.settle()
	w.eventually("it is reported", func() bool { return r.held() != "" })
	assert.True(t, w.exists(snapshot.AuthorizationPolicy, globalAccess))

	// It comes back.
	r.ApplyEdited(limited(time.Nanosecond, all...), apply.Edits{})
	w.eventually("nothing is held", func() bool { return r.held() == "" })

	// Its VirtualMesh is deleted, and what it denies with is gone before what allows.
	r.ApplyEdited(limited(time.Hour), edits(snapshot.VirtualMesh, w.namespace, "mesh"))
	w.eventually("the deny goes", func() bool {
		allowed := w.exists(snapshot.AuthorizationPolicy, "service-0")
		denied := w.exists(snapshot.AuthorizationPolicy, globalAccess)
		assert.True(t, allowed || !denied, "requests are denied, and nothing allows them")
		return !denied
	})
}

func TestARenamedPolicyOpensNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, stop := w.run(func(o *apply.Options) { o.Settle = time.Hour })
	r.Set("cluster-1", w.config)
	policy := w.protected(1)[:1]
	r.Apply(limited(time.Hour, policy...))
	r.settle()
	version := w.get(snapshot.AuthorizationPolicy, "service-0").GetUID()

	r.ApplyEdited(limited(time.Hour), edits(snapshot.AccessPolicy, w.namespace, "allow"))
	r.settle()
	assert.True(t, w.exists(snapshot.AuthorizationPolicy, "service-0"))
	policy[0].Content.Parents[0].Name = "renamed"
	r.ApplyEdited(limited(time.Hour, policy...), edits(snapshot.AccessPolicy, w.namespace, "renamed"))
	r.settle()
	assert.Equal(t, version, w.get(snapshot.AuthorizationPolicy, "service-0").GetUID())
	stop()

	// What is not named otherwise within that time goes.
	const settle = 1500 * time.Millisecond
	r, _ = w.run(func(o *apply.Options) { o.Settle = settle })
	r.Set("cluster-1", w.config)
	r.Apply(limited(time.Hour, policy...))
	r.settle()
	began := time.Now()
	r.ApplyEdited(limited(time.Hour), edits(snapshot.AccessPolicy, w.namespace, "renamed"))
	w.eventually("it goes", func() bool { return !w.exists(snapshot.AuthorizationPolicy, "service-0") })
	assert.GreaterOrEqual(t, time.Since(began), settle)
}

// TestAClusterThatLeavesIsEmptied: what an administrator deregisters is explained, also for a process that has just started; nothing of
// another cluster is.
func TestAClusterThatLeavesIsEmptied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, stop := w.run()
	first.Set("cluster-1", w.config)
	first.Apply(limited(time.Hour, w.protected(20)...))
	first.settle()
	stop()

	r, _ := w.run()
	r.Set("cluster-1", w.config)
	r.ApplyEdited(limited(time.Hour), apply.Edits{Leaving: map[string]bool{"cluster-2": true}})
	r.settle()
	assert.NotEmpty(t, r.held())
	assert.True(t, w.exists(snapshot.AuthorizationPolicy, globalAccess))
	r.ApplyEdited(limited(time.Hour), apply.Edits{Leaving: map[string]bool{"cluster-1": true}})
	w.eventually("all goes", func() bool {
		return !w.exists(snapshot.AuthorizationPolicy, globalAccess) && !w.exists(snapshot.AuthorizationPolicy, "service-0") && !w.exists(snapshot.AuthorizationPolicy, "service-19")
	})
	assert.Empty(t, r.held())
}
