package offline

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// ManagementFolder is the name of the management plane's folder.
const ManagementFolder = "management"

// Load reads a folder. The same files give the same Input. The issues report what
// was left out. The error has one line for each mistake, which begins with the
// file and the line.
func Load(fsys fs.FS) (*snapshot.Input, []snapshot.Issue, error) {
	read, err := LoadSnapshot(fsys)
	if err != nil {
		return nil, nil, err
	}
	return read.Input, read.Issues, nil
}

// LoadSnapshot is Load with all that Save has written.
func LoadSnapshot(fsys fs.FS) (*Snapshot, error) {
	fsys = Bounded(fsys)
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("read the folder: %w", err)
	}
	input := &snapshot.Input{Management: &snapshot.Management{Namespace: snapshot.DefaultNamespace}}
	read := &Snapshot{Input: input}
	// Clusters are read at the same time, and put in order after that.
	loaded := make([]loadedEntry, len(entries))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, entry := range entries {
		group.Go(func() error {
			loaded[i] = loadEntry(fsys, entry, read)
			return nil
		})
	}
	_ = group.Wait() // each entry has its error
	var errs []error
	if read.Changes, err = loadChanges(fsys); err != nil {
		errs = append(errs, err)
	}
	for _, l := range loaded {
		read.Issues, errs = append(read.Issues, l.issues...), append(errs, l.err)
		if l.cluster != nil {
			input.Clusters = append(input.Clusters, l.cluster)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(input.Clusters) == 0 && !isEntry(entries, ManagementFolder) {
		return nil, fmt.Errorf("no folder in it; make one for each cluster, and one named %s for the policies", ManagementFolder)
	}
	applyRegistrations(input)
	slices.SortFunc(read.Issues, snapshot.Issue.Compare)
	slices.SortFunc(input.Failures, func(a, b snapshot.Failure) int {
		return cmp.Or(a.Ref.Compare(b.Ref), cmp.Compare(a.What, b.What))
	})
	return read, nil
}

// loadChanges reads the timeline of changes, if it is there.
func loadChanges(fsys fs.FS) (snapshot.Changes, error) {
	text, err := fs.ReadFile(fsys, changesFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", changesFile, err)
	}
	changes, err := snapshot.ParseChanges(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w; remove the file to read the rest", changesFile, err)
	}
	return changes, nil
}

// loadedEntry is what an entry of the folder has.
type loadedEntry struct {
	cluster *snapshot.Cluster // nil if it is no cluster's
	issues  []snapshot.Issue
	err     error
}

// loadEntry reads one entry of the folder. Only that of the management plane writes to read.
func loadEntry(fsys fs.FS, entry fs.DirEntry, read *Snapshot) loadedEntry {
	name := entry.Name()
	switch {
	case strings.HasPrefix(name, "."):
		return loadedEntry{}
	case !isDir(fsys, entry):
		if isManifest(name) {
			return loadedEntry{err: fmt.Errorf("%s: is outside of the folders; move it into the folder of its cluster, or into %s", name, ManagementFolder)}
		}
		return loadedEntry{}
	case name == ManagementFolder:
		issues, err := loadManagement(fsys, read)
		return loadedEntry{issues: issues, err: err}
	}
	if bad := validation.IsDNS1123Subdomain(name); len(bad) > 0 {
		return loadedEntry{err: fmt.Errorf("%s: a folder is named like its cluster, and this is no name for one: %s", name, bad[0])}
	}
	return loadCluster(fsys, name)
}

func loadManagement(fsys fs.FS, read *Snapshot) ([]snapshot.Issue, error) {
	input := read.Input
	f := managementFolder(input)
	issues, err := loadFolder(fsys, f)
	input.RefuseIntersecting = input.Management.Server().DisallowIntersectingConfig
	if f.refuse != nil {
		input.RefuseIntersecting = *f.refuse
	}
	read.Recorded, read.Served = f.recorded, f.served
	return issues, err
}

func loadCluster(fsys fs.FS, name string) loadedEntry {
	cluster := &snapshot.Cluster{Name: name, Sync: snapshot.Synced}
	f := clusterFolder(cluster)
	issues, err := loadFolder(fsys, f)
	cluster.WebhooksUnknown = len(cluster.MutatingWebhookConfigurations) == 0
	if f.webhooksUnknown != nil {
		cluster.WebhooksUnknown = *f.webhooksUnknown
	}
	if err == nil && cluster.Sync == snapshot.Unsynced && len(f.seen) > 0 {
		err = fmt.Errorf("%s: sync is unsynced, which means that nothing was ever read, but the folder has %d objects; remove them, or write sync: stale", name, len(f.seen))
	}
	return loadedEntry{cluster, issues, err}
}

// applyRegistrations sets the DNS domains of the KubernetesClusters, and adds
// the clusters that have no folder.
func applyRegistrations(input *snapshot.Input) {
	for _, registration := range input.Management.KubernetesClusters {
		i := slices.IndexFunc(input.Clusters, func(c *snapshot.Cluster) bool { return c.Name == registration.Name })
		if i < 0 {
			i = len(input.Clusters)
			input.Clusters = append(input.Clusters, &snapshot.Cluster{
				Name: registration.Name, Sync: snapshot.Unsynced, Reason: "there is no folder of this name",
			})
		}
		if cluster := input.Clusters[i]; cluster.Domain == "" {
			cluster.Domain = registration.Spec.ClusterDomain
		}
	}
	slices.SortFunc(input.Clusters, func(a, b *snapshot.Cluster) int { return cmp.Compare(a.Name, b.Name) })
}

// isDir also follows a link to a folder.
func isDir(fsys fs.FS, entry fs.DirEntry) bool {
	info, err := fs.Stat(fsys, entry.Name())
	return err == nil && info.IsDir()
}

func isEntry(entries []fs.DirEntry, name string) bool {
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name })
}

func isManifest(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}
