package helper

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/meshctl/meshctl/demo/proc"
)

// binary returns the path of the binary, building it if it is not in the cache.
func (m module) binary(ctx context.Context, progress Progress) (string, error) {
	if err := proc.Supported(runtime.GOOS); err != nil {
		return "", fmt.Errorf("helper binary: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("helper binary: finding the cache folder: %w; set HOME or XDG_CACHE_HOME", err)
	}
	goCommand, err := m.findGo(ctx)
	if err != nil {
		return "", err
	}
	flags, err := m.linkerFlags()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "meshctl", m.name, m.fingerprint(goCommand.version, flags))
	binary := filepath.Join(dir, m.name)
	if exists(binary) {
		return binary, touch(binary)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("helper binary: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(dir, "lock"), progress)
	if err != nil {
		return "", err
	}
	defer unlock()
	// Another command may have built it in the meantime.
	if exists(binary) {
		return binary, nil
	}
	if err := m.build(ctx, goCommand, flags, binary, progress); err != nil {
		return "", err
	}
	return binary, prune(filepath.Dir(dir), m.name)
}

func exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// fingerprint identifies a build by all of its inputs.
func (m module) fingerprint(goVersion, linkerFlags string) string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%s %s/%s\n%s\n", goVersion, runtime.GOOS, runtime.GOARCH, linkerFlags)
	_, _ = h.Write(m.sources)
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// lock serializes builds of one binary.
func lock(ctx context.Context, path string, progress Progress) (unlock func(), err error) {
	type result struct {
		unlock func()
		err    error
	}
	got := make(chan result, 1)
	go func() {
		unlock, err := lockedfile.MutexAt(path).Lock()
		got <- result{unlock, err}
	}()
	for {
		select {
		case r := <-got:
			if r.err != nil {
				return nil, fmt.Errorf("helper binary: locking %s: %w", path, r.err)
			}
			return r.unlock, nil
		case <-ctx.Done():
			// If the lock is still acquired, release it.
			go func() {
				if r := <-got; r.err == nil {
					r.unlock()
				}
			}()
			return nil, fmt.Errorf("helper binary: waiting for another build of it: %w", context.Cause(ctx))
		case <-progress.after():
			progress.notify("another command is building it; waiting")
		}
	}
}

func (m module) build(ctx context.Context, goCommand goTool, flags, binary string, progress Progress) error {
	dir, err := os.MkdirTemp("", "meshctl-"+m.name+"-")
	if err != nil {
		return fmt.Errorf("helper binary: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := m.unpack(dir); err != nil {
		return err
	}
	progress.notify("downloading its modules")
	if _, err := goCommand.output(ctx, dir, "list", "-deps", "."); err != nil {
		return fmt.Errorf("helper binary: downloading modules: %w; check that the Go module proxy is reachable", err)
	}
	// With the flags of the build, what is in the build cache is not stale.
	stale, err := goCommand.output(ctx, dir, "list", "-trimpath", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}\n{{end}}", ".")
	if err != nil {
		return fmt.Errorf("helper binary: listing what is to compile: %w", err)
	}
	total := strings.Count(stale, "\n")
	for _, c := range m.copied {
		if err := goCommand.copyFolder(ctx, dir, c, filepath.Join(filepath.Dir(binary), c.as)); err != nil {
			return err
		}
	}
	// In the same folder as the final file, so that the last step is a rename.
	unfinished := binary + ".unfinished"
	defer func() { _ = os.Remove(unfinished) }()
	if err := goCommand.compile(ctx, dir, unfinished, flags, total, progress); err != nil {
		return err
	}
	if err := os.Rename(unfinished, binary); err != nil {
		return fmt.Errorf("helper binary: %w", err)
	}
	return nil
}

// copyFolder copies a folder of a module.
func (g goTool) copyFolder(ctx context.Context, dir string, c copied, to string) error {
	from, err := g.output(ctx, dir, "list", "-m", "-f", "{{.Dir}}", c.module)
	if err != nil {
		return fmt.Errorf("helper binary: finding %s: %w", c.module, err)
	}
	// An interrupted build may have left it.
	if err := os.RemoveAll(to); err != nil {
		return fmt.Errorf("helper binary: %w", err)
	}
	folder := filepath.Join(strings.TrimSpace(from), filepath.FromSlash(c.folder))
	if err := os.CopyFS(to, os.DirFS(folder)); err != nil {
		return fmt.Errorf("helper binary: copying %s of %s: %w", c.folder, c.module, err)
	}
	return nil
}

// errOldGo is returned when the Go toolchain cannot build the helper.
var errOldGo = errors.New("this Go is too old")

// goTool is the go command to build with.
type goTool struct{ path, version string }

func (m module) findGo(ctx context.Context) (goTool, error) {
	path, err := exec.LookPath("go")
	if err != nil {
		return goTool{}, fmt.Errorf("helper binary: no go command on the PATH: %w; install Go %s or later from https://go.dev/dl", err, m.wantGo())
	}
	tool := goTool{path: path}
	dir, err := os.MkdirTemp("", "meshctl-go-")
	if err != nil {
		return goTool{}, fmt.Errorf("helper binary: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	// In the folder of the module, so that go downloads the required toolchain, if
	// that is allowed.
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module x\n\ngo "+m.wantGo()+"\n"), 0o600); err != nil {
		return goTool{}, fmt.Errorf("helper binary: %w", err)
	}
	version, err := tool.output(ctx, dir, "env", "GOVERSION")
	if err != nil {
		return goTool{}, fmt.Errorf("helper binary: %w: it needs Go %s: %w; install it from https://go.dev/dl", errOldGo, m.wantGo(), err)
	}
	tool.version = strings.TrimSpace(version)
	return tool, nil
}

// wantGo is the go line of the helper's go.mod.
func (m module) wantGo() string {
	version, err := m.version("go")
	if err != nil {
		return "1.26"
	}
	return version
}
