package offline

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Snapshot is an Input that was saved, and when.
type Snapshot struct {
	Input  *snapshot.Input
	Issues []snapshot.Issue
	// Recorded is zero if the files do not say.
	Recorded time.Time
	// Changes are the timeline that a server had kept; nil if it is not recorded.
	Changes snapshot.Changes
	// Served: the statuses are those that a server had written.
	Served bool
}

// WriteArchive writes what Save returns as a zip archive; the same files give the same bytes.
func WriteArchive(w io.Writer, files map[string][]byte) error {
	archive := zip.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file, err := archive.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if _, err := file.Write(files[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return archive.Close()
}

// ReadArchive reads what WriteArchive wrote. It may come from anybody: what it says about sizes is not
// believed.
func ReadArchive(data []byte) (*Snapshot, error) {
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("it is no archive of meshctl: %w", err)
	}
	for _, file := range archive.File {
		if len(file.Name) > maxName {
			return nil, fmt.Errorf("a file in it, %.40q…, has a name of %d bytes; at most %d are read", file.Name, len(file.Name), maxName)
		}
	}
	return LoadSnapshot(archive)
}
