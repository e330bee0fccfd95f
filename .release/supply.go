package main

import (
	"bufio"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// maxSize is how many bytes the binary for sizePlatform may have. Lower it when the binary gets
// smaller. What makes a binary grow by megabytes is mostly one import, such as that of a client with
// all API groups: `go tool nm -size -sort size` shows what came.
const (
	maxSize      = 81_000_000
	sizePlatform = "linux/amd64"
)

// archivedList names the modules that their owners gave up; see there.
//
//go:embed archived.txt
var archivedList string

// module is one that is linked into the binary of some platform.
type module struct {
	version string
	// deprecated is what its own go.mod says; empty if it is not.
	deprecated string
	// importers are the modules with packages that import one of its own.
	importers map[string]bool
}

// supply fails if the binary has modules that it must not have, or is too big. It needs no more of
// the network than the build does.
func supply(ctx context.Context, o options) error {
	permitted, err := readArchived(archivedList)
	if err != nil {
		return err
	}
	modules := map[string]*module{}
	for _, platform := range platformsOr(o, archivePlatforms) {
		if err := linked(ctx, o, platform, modules); err != nil {
			return fmt.Errorf("modules for %s: %w", platform, err)
		}
	}
	return errors.Join(judge(modules, permitted, len(o.platforms) == 0), checkSize(ctx, o))
}

// readArchived reads the modules of archived.txt, and who may import each.
func readArchived(text string) (map[string][]string, error) {
	permitted := map[string][]string{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if _, twice := permitted[words[0]]; twice {
			return nil, fmt.Errorf("archived.txt: module %s: it is listed twice; keep one line", words[0])
		}
		permitted[words[0]] = words[1:]
	}
	return permitted, nil
}

// judge compares what is linked with what is permitted. With all platforms, it also finds what
// is permitted without need.
func judge(modules map[string]*module, permitted map[string][]string, all bool) error {
	var found []error
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		m := modules[path]
		by, listed := permitted[path]
		if !listed && m.deprecated == "" {
			continue
		}
		for _, importer := range slices.Sorted(maps.Keys(m.importers)) {
			if !slices.Contains(by, importer) {
				found = append(found, fmt.Errorf("module %s %s: %s, and %s imports it; replace it, or permit this in .release/archived.txt and say why (`go mod why -m %s` shows the packages)",
					path, m.version, cmp.Or(m.deprecated, "its owners gave it up"), importer, path))
			}
		}
	}
	if !all {
		return errors.Join(found...)
	}
	for _, path := range slices.Sorted(maps.Keys(permitted)) {
		for _, importer := range permitted[path] {
			if m := modules[path]; m == nil || !m.importers[importer] {
				found = append(found, fmt.Errorf("module %s: %s no longer imports it; remove this from .release/archived.txt, so that it stays away", path, importer))
			}
		}
	}
	return errors.Join(found...)
}

// listed is a package as `go list -json` prints it.
type listed struct {
	ImportPath string
	Imports    []string
	Module     *struct{ Path, Version, GoMod string }
}

// linked adds the modules of a platform's binary. It asks for packages instead of a binary: so it
// knows who imports them, and compiles nothing.
func linked(ctx context.Context, o options, platform string, modules map[string]*module) error {
	goos, arch, ok := strings.Cut(platform, "/")
	if !ok {
		return fmt.Errorf("platform %q: want OS/ARCHITECTURE, such as linux/amd64", platform)
	}
	command := exec.CommandContext(ctx, "go", "list", "-deps", "-json=ImportPath,Imports,Module", ".")
	command.Dir, command.Stderr = o.source, os.Stderr
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+arch)
	out, err := command.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	return addPackages(strings.NewReader(string(out)), modules)
}

// addPackages adds the modules of packages, and who imports them.
func addPackages(from io.Reader, modules map[string]*module) error {
	owner := map[string]string{}
	var packages []listed
	for decoder := json.NewDecoder(from); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("go list: %w", err)
		}
		if p.Module == nil {
			continue // of the standard library
		}
		packages = append(packages, p)
		owner[p.ImportPath] = p.Module.Path
		if modules[p.Module.Path] != nil {
			continue
		}
		deprecated, err := deprecation(p.Module.GoMod)
		if err != nil {
			return fmt.Errorf("module %s: %w", p.Module.Path, err)
		}
		modules[p.Module.Path] = &module{version: p.Module.Version, deprecated: deprecated, importers: map[string]bool{}}
	}
	for _, p := range packages {
		for _, imported := range p.Imports {
			if path := owner[imported]; path != "" && path != p.Module.Path {
				modules[path].importers[p.Module.Path] = true
			}
		}
	}
	return nil
}

// deprecation is what a go.mod says in a comment "Deprecated:" above its module line (Go Modules
// Reference, "Deprecation"). It is that of the version that is linked, as the latest would have to be
// asked for.
func deprecation(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("its go.mod: %w", err)
	}
	file, err := modfile.ParseLax(path, data, nil)
	if err != nil {
		return "", fmt.Errorf("its go.mod: %w", err)
	}
	if file.Module == nil || file.Module.Deprecated == "" {
		return "", nil
	}
	return "it is deprecated: " + strings.TrimSuffix(strings.Join(strings.Fields(file.Module.Deprecated), " "), "."), nil
}

// checkSize compiles the binary of one platform, and compares its size.
func checkSize(ctx context.Context, o options) error {
	work, err := os.MkdirTemp("", "meshctl-size-")
	if err != nil {
		return fmt.Errorf("size: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	o.version = cmp.Or(o.version, "v0.0.0") // a linked worktree has none, and it does not matter here
	b, err := compile(ctx, o, work, sizePlatform)
	if err != nil {
		return fmt.Errorf("size: %w", err)
	}
	return fits(b.path, maxSize)
}

// fits fails if a file is bigger than limit, in bytes.
func fits(path string, limit int64) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("size: %w", err)
	}
	_, _ = fmt.Fprintf(os.Stderr, "%s for %s has %.1f MB of %.1f MB\n", filepath.Base(path), sizePlatform, mega(info.Size()), mega(limit))
	if info.Size() > limit {
		return fmt.Errorf("%s: it has %.1f MB for %s, and may have %.1f MB; find what came (see maxSize in .release/supply.go)",
			filepath.Base(path), mega(info.Size()), sizePlatform, mega(limit))
	}
	return nil
}

// mega converts bytes to megabytes.
func mega(bytes int64) float64 { return float64(bytes) / 1e6 }
