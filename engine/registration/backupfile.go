package registration

import (
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	// backupFormat says of a file that it is a Backup, and backupVersion which fields it has.
	backupFormat  = "meshctl-backup"
	backupVersion = 1
	// maxBackup bounds what is read of a file, in bytes as it is unpacked.
	maxBackup = 2 << 30
)

// Backup is the state of a management plane: what PlanRestore needs to make the same one in another cluster.
type Backup struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	// Meshctl is the version of meshctl that made it.
	Meshctl string    `json:"meshctl,omitempty"`
	Taken   time.Time `json:"taken"`
	// Server is the URL of the management cluster, and ClusterUID the UID of its namespace kube-system.
	Server     string    `json:"server"`
	ClusterUID types.UID `json:"clusterUID"`
	// Namespace is that of the management plane, and Plane its identity, which objects in registered clusters carry.
	Namespace string `json:"namespace"`
	Plane     string `json:"plane"`
	// LeftOut are the Secrets that are not in it because nobody asked for Secrets, ascending.
	LeftOut []LeftOutSecret `json:"leftOut,omitempty"`
	// Objects are as the API server had them, with their UIDs, ages and managed fields. Their order has no meaning.
	Objects []*unstructured.Unstructured `json:"objects"`
}

// LeftOutSecret is a Secret whose content is not in a Backup.
type LeftOutSecret struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Type is that of the Secret, as Kubernetes has it.
	Type string `json:"type"`
}

// Write writes the Backup: JSON, compressed by gzip.
func (b *Backup) Write(to io.Writer) error {
	packed := gzip.NewWriter(to)
	if err := json.NewEncoder(packed).Encode(b); err != nil {
		return fmt.Errorf("backup: encoding: %w", err)
	}
	if err := packed.Close(); err != nil {
		return fmt.Errorf("backup: writing: %w", err)
	}
	return nil
}

// ReadBackup reads what Write wrote. It returns an error if that was cut off or changed, or another version of meshctl made it.
func ReadBackup(from io.Reader) (*Backup, error) {
	packed, err := gzip.NewReader(from)
	if err != nil {
		return nil, errNoBackup
	}
	text, err := io.ReadAll(io.LimitReader(packed, maxBackup))
	if err != nil {
		return nil, fmt.Errorf("the backup is cut off or damaged (%w); take another copy of it", err)
	}
	var head struct {
		Format, Meshctl string
		Version         int
	}
	switch err := json.Unmarshal(text, &head); {
	case err != nil, head.Format != backupFormat:
		return nil, errNoBackup
	case head.Version != backupVersion:
		return nil, fmt.Errorf("the backup has format %d, and this meshctl reads format %d; restore it with the version of meshctl that made it (%.64s)",
			head.Version, backupVersion, snapshot.Clean(cmp.Or(head.Meshctl, "unknown")))
	}
	b := &Backup{}
	if err := json.Unmarshal(text, b); err != nil {
		return nil, fmt.Errorf("the backup cannot be read: %w; take another copy of it", err)
	}
	return b, b.check()
}

var errNoBackup = errors.New("it is no backup of meshctl; name a file that `meshctl backup` wrote")

// check returns an error for what no backup has: a file that somebody has written by hand must not make what is none of meshctl's.
func (b *Backup) check() error {
	if b.Namespace == "" || b.Plane == "" || b.Taken.IsZero() {
		return errNoBackup
	}
	for _, o := range b.Objects {
		if _, ok := resourceOf(o); !ok {
			return fmt.Errorf("%s: it is of a kind that no backup has; name a file that `meshctl backup` wrote", describeObject(o))
		}
	}
	return nil
}

// id tells a Backup from others.
func (b *Backup) id() string {
	sum := sha256.Sum256([]byte(b.Plane + "\n" + b.Taken.UTC().Format(time.RFC3339Nano)))
	return hex.EncodeToString(sum[:8])
}

// resourceOf is the type of an object of a Backup; false for one that is in none.
func resourceOf(o *unstructured.Unstructured) (resource, bool) {
	gvk := o.GroupVersionKind()
	for _, r := range []resource{namespaces, configMaps, secrets} {
		if gvk.Group == r.Group && gvk.Version == r.Version && gvk.Kind == r.kind {
			return r, true
		}
	}
	kind, ok := snapshot.KindOf(gvk.GroupKind())
	if !ok || kind.Info().Side != snapshot.ManagementSide || kind.Info().Access == 0 || gvk.Version != kind.Info().Version {
		return resource{}, false
	}
	return kindResource(kind), true
}

// describeObject is "KIND [NAMESPACE/]NAME".
func describeObject(o *unstructured.Unstructured) string {
	return (&object{resource: resource{kind: o.GetKind()}, namespace: o.GetNamespace(), name: o.GetName()}).describe()
}
