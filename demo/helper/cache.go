package helper

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// keepFor is how long a binary stays in the cache after its last use. Each is
// up to 270 MB, and every change of a version makes a new one.
const keepFor = 30 * 24 * time.Hour

// touch marks a binary as used now.
func touch(binary string) error {
	now := time.Now()
	if err := os.Chtimes(binary, now, now); err != nil {
		return fmt.Errorf("helper binary: marking it as used: %w", err)
	}
	return nil
}

// prune removes the binaries called name, and abandoned builds, that were not
// used for keepFor.
func prune(cache, name string) error {
	builds, err := os.ReadDir(cache)
	if err != nil {
		return fmt.Errorf("helper binary: pruning the cache: %w", err)
	}
	var errs []error
	for _, build := range builds {
		dir := filepath.Join(cache, build.Name())
		info, err := os.Stat(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			info, err = os.Stat(dir)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if time.Since(info.ModTime()) > keepFor {
			errs = append(errs, os.RemoveAll(dir))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("helper binary: pruning the cache: %w", err)
	}
	return nil
}
