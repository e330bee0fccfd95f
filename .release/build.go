package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// versionVar is the variable that the linker sets to a given version.
const versionVar = "github.com/meshctl/meshctl/cmd/cmdutil.version"

// build is a binary for one platform.
type build struct {
	path     string
	os, arch string
	// version is a tag or Go's name of the commit.
	version, commit string
	// time is that of the commit; the Unix epoch if it is not known.
	time time.Time
}

// compile builds meshctl for a platform ("linux/amd64") as dir/OS_ARCH/meshctl.
func compile(ctx context.Context, o options, dir, platform string) (build, error) {
	goos, arch, ok := strings.Cut(platform, "/")
	if !ok {
		return build{}, fmt.Errorf("platform %q: want OS/ARCHITECTURE, such as linux/amd64", platform)
	}
	name := "meshctl"
	if goos == "windows" {
		name += ".exe"
	}
	path := filepath.Join(dir, goos+"_"+arch, name)
	linker := "-s -w"
	if o.version != "" {
		linker += " -X " + versionVar + "=" + o.version
	}
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags=grpcnotrace", "-buildvcs=auto", "-ldflags", linker, "-o", path, ".")
	command.Dir = o.source
	// Without cgo the binary needs no C library, which the image does not have.
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+arch)
	command.Stderr = os.Stderr
	_, _ = fmt.Fprintf(os.Stderr, "compiling for %s\n", platform) // minutes, the first time
	if err := command.Run(); err != nil {
		return build{}, fmt.Errorf("platform %s: go build: %w", platform, err)
	}
	b := build{path: path, os: goos, arch: arch, version: o.version}
	return b, b.inspect()
}

// inspect reads from the binary what Go wrote into it.
func (b *build) inspect() error {
	info, err := buildinfo.ReadFile(b.path)
	if err != nil {
		return fmt.Errorf("%s: reading its build information: %w", b.path, err)
	}
	if b.version == "" {
		b.version = info.Main.Version
	}
	if b.version == "" || b.version == "(devel)" {
		return errors.New("release: no version is known, because Go finds no git repository, or finds a linked worktree, which it does not read; set one: make release VERSION=v1.2.3")
	}
	b.time = time.Unix(0, 0).UTC()
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.commit = s.Value
		case "vcs.time":
			if b.time, err = time.Parse(time.RFC3339, s.Value); err != nil {
				return fmt.Errorf("%s: the time of its commit: %w", b.path, err)
			}
		}
	}
	return nil
}
