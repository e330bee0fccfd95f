package dashboard

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/tui"
)

// scanEvery is how often a folder is scanned for files that changed.
const scanEvery = 300 * time.Millisecond

// folder is a tui.Source of manifests.
type folder struct {
	dir string
	now func() time.Time
	// scanned is the fingerprint of the folder when it was last read.
	scanned    string
	translator *engine.Translator
	last       lastReading
	// recorded is when a snapshot was; zero for a folder.
	recorded time.Time
}

// newFolder reads the folder once, so that errors are reported before the screen
// is taken.
func newFolder(dir string, now func() time.Time) (*folder, error) {
	read, err := reading.Folder(dir)
	if err != nil {
		return nil, err
	}
	return &folder{dir: dir, now: now, translator: engine.New(engine.Options{}), recorded: read.Recorded}, nil
}

// Name implements tui.Source.
func (f *folder) Name() string {
	if !f.recorded.IsZero() {
		return "snapshot " + f.dir + " of " + f.recorded.Local().Format(time.DateTime)
	}
	if info, err := os.Stat(f.dir); err == nil && !info.IsDir() {
		return "snapshot " + f.dir
	}
	return "folder " + f.dir
}

// Command implements tui.Source.
func (f *folder) Command(words string) string {
	if words == "" {
		return ""
	}
	return "meshctl " + words + " --dir " + quote(f.dir)
}

// Kubectl implements tui.Source: there is no cluster.
func (f *folder) Kubectl(string) string { return "" }

// Next implements tui.Source: it waits until a file has changed.
func (f *folder) Next(ctx context.Context) (*tui.Update, error) {
	for {
		if sum := f.fingerprint(); sum != f.scanned {
			f.scanned = sum
			return f.read(), nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(scanEvery):
		}
	}
}

// read makes an update of the files. An error in one keeps what was shown.
func (f *folder) read() *tui.Update {
	update := &tui.Update{
		At: f.now(), HasChanges: true,
		NoChanges: "No changes are recorded here. They are shown for a management cluster (meshctl dashboard --context CONTEXT), and for what meshctl debug snapshot records of one.",
	}
	read, err := reading.Folder(f.dir)
	if err != nil {
		update.ReadError = err.Error()
		return update
	}
	update.Index, update.Changes = read.Index(f.translator), read.Changes
	update.Checkup = update.Index.Checkup(&explain.CheckFacts{Now: f.now(), Offline: true})
	f.last.keep(update.Index, read)
	return update
}

// Why implements tui.Asker.
func (f *folder) Why(x *explain.Index, from, to snapshot.Ref, request explain.Request) (*explain.Why, error) {
	return f.last.why(x, from, to, request)
}

// fingerprint changes with the number, the sizes and the times of the files.
func (f *folder) fingerprint() string {
	var sum string
	count, newest, size := 0, time.Time{}, int64(0)
	_ = fs.WalkDir(os.DirFS(f.dir), ".", func(name string, entry fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil {
			info, err = entry.Info()
		}
		if err != nil {
			sum += name + err.Error()
			return fs.SkipDir
		}
		count++
		size += info.Size()
		if at := info.ModTime(); at.After(newest) {
			newest = at
		}
		return nil
	})
	return fmt.Sprint(sum, count, size, newest.UnixNano())
}
