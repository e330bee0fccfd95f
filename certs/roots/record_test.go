package roots

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func pin(mesh string, domains ...string) snapshot.TrustPin {
	return snapshot.TrustPin{Mesh: mesh, Domains: domains}
}

// find sets the pins of the Plan.
func (w *world) find(pins ...snapshot.TrustPin) {
	w.mu.Lock()
	w.pins = pins
	w.mu.Unlock()
	w.touch()
}

// pinned waits until the Store tells of pins.
func (w *world) pinned(pins ...snapshot.TrustPin) {
	w.t.Helper()
	w.until("the pins", "vm", func(r *snapshot.VirtualMeshRoots) bool { return assert.ObjectsAreEqual(pins, r.Pins) })
}

// TestTrustDomainsAreRecorded: the first claim stays, also after a restart, until an administrator
// accepts another one.
func TestTrustDomainsAreRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.config)
	w.have(virtualMesh(w.namespace, "vm"))
	w.signs("vm")
	w.find(pin("east", "east.example"), pin("west", "west.example", "old.example"))
	w.pinned(pin("east", "east.example"), pin("west", "west.example", "old.example"))

	// A translation of something older, or of a member that claims more.
	w.find(pin("east", "west.example"), pin("north", "old.example", "north.example"), pin("south", "south.example"))
	w.pinned(pin("east", "east.example"), pin("south", "south.example"), pin("west", "west.example", "old.example"))
	w.end()
	w.set(nil)
	w.find()
	w.start(w.config)
	w.touch()
	w.pinned(pin("east", "east.example"), pin("south", "south.example"), pin("west", "west.example", "old.example"))

	w.have(virtualMesh(w.namespace, "vm", annotated(snapshot.TrustAcceptAnnotation, "east=new.example,old.example south=west.example")))
	w.pinned(pin("east", "new.example", "old.example"), pin("south", "west.example"))
	w.have(virtualMesh(w.namespace, "vm", annotated(snapshot.TrustAcceptAnnotation, "what")))
	said := w.until("what is wrong", "vm", func(r *snapshot.VirtualMeshRoots) bool { return r.Problem != "" })
	assert.Contains(t, said.Problem, `"what" is neither MESH=TRUSTDOMAIN nor the fingerprint of a root`)
	assert.NotEmpty(t, said.Signs)
}

// TestARecordThatCannotBeRead is not overwritten, and nothing changes until it can be.
func TestARecordThatCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.api.CoreV1().ConfigMaps(w.namespace).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: RecordName}, Data: map[string]string{"vm." + w.namespace: "rots: []"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	w.start(w.config)
	w.find(pin("east", "east.example"))
	w.have(virtualMesh(w.namespace, "vm"))
	said := w.until("that it cannot be read", "vm", func(r *snapshot.VirtualMeshRoots) bool { return r.Problem != "" })
	assert.Contains(t, said.Problem, "ConfigMap "+w.namespace+"/meshctl-trust, key vm."+w.namespace)
	assert.Contains(t, said.Problem, `unknown field "rots"`)
	assert.Empty(t, w.secrets(), "no root is made")
	m, err := w.api.CoreV1().ConfigMaps(w.namespace).Get(t.Context(), RecordName, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "rots: []", m.Data["vm."+w.namespace])

	m.Data = nil
	_, err = w.api.CoreV1().ConfigMaps(w.namespace).Update(t.Context(), m, metav1.UpdateOptions{})
	require.NoError(t, err)
	signs := w.signs("vm").Signs
	waittest.Until(t, "its pins are recorded", func() bool { return len(w.of("vm").Pins) == 1 })

	broken, err := w.api.CoreV1().ConfigMaps(w.namespace).Patch(t.Context(), RecordName, types.MergePatchType,
		[]byte(`{"data": {"vm.`+w.namespace+`": "["}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	said = w.until("that it cannot be read", "vm", func(r *snapshot.VirtualMeshRoots) bool { return r.Problem != "" })
	assert.Equal(t, signs, said.Signs, "what signed goes on")
	assert.Len(t, said.Pins, 1)
	assert.NotNil(t, w.store.Authority(said.VirtualMesh, signs))
	m, err = w.api.CoreV1().ConfigMaps(w.namespace).Get(t.Context(), RecordName, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, broken.Data, m.Data)
}

// TestARootThatAppears: who can create a Secret in the management plane's namespace makes no root by
// that, whatever it carries. Neither its key nor its certificate counts, and the root that signs stays.
func TestARootThatAppears(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.config)
	w.have(virtualMesh(w.namespace, "vm"))
	first := w.signs("vm")
	attacker := newRoot(t, 0, time.Now(), "gloo-mesh", 365*day)
	for name, data := range map[string]map[string][]byte{
		"cacerts":     rootSecret(t, attacker),
		"certificate": {pki.RootCertKey: attacker.Chain().PEM()},
	} {
		forged := w.store.secretFor(virtualMesh(w.namespace, "vm"), name, "forged", data)
		forged.Annotations[MakingAnnotation] = "guessed"
		_, err := w.api.CoreV1().Secrets(w.namespace).Create(t.Context(), forged, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	said := w.until("that they do not count", "vm", func(r *snapshot.VirtualMeshRoots) bool {
		return strings.Contains(r.Problem, "neither made nor recorded")
	})
	assert.Equal(t, first.Signs, said.Signs)
	assert.Len(t, said.Roots, 1)
	assert.Nil(t, w.store.Authority(said.VirtualMesh, fingerprint(attacker)))

	w.have(virtualMesh(w.namespace, "vm", annotated(snapshot.TrustAcceptAnnotation, fingerprint(attacker)),
		annotated(snapshot.TrustRootAnnotation, fingerprint(attacker))))
	assert.Equal(t, fingerprint(attacker), w.signs("vm", first.Signs).Signs, "an administrator wants it")
}
