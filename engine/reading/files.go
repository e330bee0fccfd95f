package reading

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/offline"
)

// NotFoundError: the folder, the file or the management plane to read does not exist or cannot be opened.
type NotFoundError struct{ Err error }

func (e *NotFoundError) Error() string { return e.Err.Error() }
func (e *NotFoundError) Unwrap() error { return e.Err }

func notFoundErrorf(format string, args ...any) error {
	return &NotFoundError{Err: fmt.Errorf(format, args...)}
}

// FormatError: a file is no snapshot.
type FormatError struct{ Err error }

func (e *FormatError) Error() string { return e.Err.Error() }
func (e *FormatError) Unwrap() error { return e.Err }

// Folder reads the manifests in a folder. No server wrote the statuses in them, so all answers are
// about what the server would write. If dir is a file, Folder reads it as an Archive.
func Folder(dir string) (*Reading, error) {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return nil, notFoundErrorf("folder %s cannot be read: %w", dir, err)
	case !info.IsDir():
		return Archive(dir)
	}
	read, err := offline.LoadSnapshot(offline.Dir(dir))
	if err != nil {
		return nil, fmt.Errorf("invalid manifests in %s:\n%w", dir, first(err))
	}
	return &Reading{Input: read.Input, Issues: read.Issues, Changes: read.Changes, index: explain.New}, nil
}

// maxMistakes bounds how many mistakes in a folder are told one by one.
const maxMistakes = 10

// first keeps the first of many joined errors, and counts the others.
func first(err error) error {
	all := each(err)
	more := len(all) - maxMistakes
	if more <= 0 {
		return err
	}
	return errors.Join(append(all[:maxMistakes:maxMistakes], fmt.Errorf("and %d more; if these are no manifests of clusters, name the folder that has a folder for each cluster", more))...)
}

// each lists errors that are joined, whatever the depth.
func each(err error) []error {
	joined, is := err.(interface{ Unwrap() []error })
	if !is {
		return []error{err}
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, each(e)...)
	}
	return out
}

// Archive reads a file that "meshctl debug snapshot" recorded. The server had written the statuses in
// it, unless it was recorded from a folder.
func Archive(file string) (*Reading, error) {
	data, err := offline.ReadFile(file)
	if err != nil {
		return nil, notFoundErrorf("snapshot %s cannot be read: %w", file, err)
	}
	read, err := offline.ReadArchive(data)
	if err != nil {
		return nil, &FormatError{fmt.Errorf("%s is a file, and no snapshot: %w; specify the folder that has a folder for each cluster, or what `meshctl debug snapshot` wrote", file, err)}
	}
	reading := &Reading{Input: read.Input, Issues: read.Issues, Recorded: read.Recorded, Changes: read.Changes, index: explain.New}
	if !read.Recorded.IsZero() {
		reading.Notes = append(reading.Notes, "this is what was recorded at "+read.Recorded.Local().Format(time.DateTime))
	}
	if read.Served {
		reading.Served, reading.index = true, explain.NewLive
	}
	return reading, nil
}
