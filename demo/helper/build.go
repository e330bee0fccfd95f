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
)

// Build returns the path of the helper binary, building it first if this
// version of it was never built here. A first build takes minutes and says so
// through progress; a known one returns at once.
//
// The binary lives in the user's cache folder under a name made from its
// sources, the Go version and the platform, so that an old one is never taken
// for a new one. The only need is a `go` on the PATH.
func Build(ctx context.Context, progress Progress) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("helper binary: finding the cache folder: %w; set HOME or XDG_CACHE_HOME", err)
	}
	goCommand, err := findGo(ctx)
	if err != nil {
		return "", err
	}
	flags, err := linkerFlags()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "meshctl", "sandbox", fingerprint(goCommand.version, flags))
	binary := filepath.Join(dir, "sandbox")
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
	// Somebody else may have built it while we waited.
	if exists(binary) {
		return binary, nil
	}
	if err := build(ctx, goCommand, flags, binary, progress); err != nil {
		return "", err
	}
	return binary, prune(filepath.Dir(dir))
}

func exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// fingerprint names a build by all that goes into it.
func fingerprint(goVersion, linkerFlags string) string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%s %s/%s\n%s\n", goVersion, runtime.GOOS, runtime.GOARCH, linkerFlags)
	_, _ = h.Write(source)
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// linkerFlags tell the components their versions, which their own release
// builds would set: clients of a nameless Kubernetes fail to parse its version.
func linkerFlags() (string, error) {
	v, err := ReadVersions()
	if err != nil {
		return "", err
	}
	major, rest, _ := strings.Cut(strings.TrimPrefix(v.Kubernetes, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	const (
		kubernetes = "k8s.io/component-base/version."
		istio      = "istio.io/istio/pkg/version."
	)
	return strings.Join([]string{
		"-s -w",
		"-X " + kubernetes + "gitVersion=" + v.Kubernetes,
		"-X " + kubernetes + "gitMajor=" + major,
		"-X " + kubernetes + "gitMinor=" + minor,
		"-X " + istio + "buildVersion=" + v.Istio,
		"-X " + istio + "buildHub=docker.io/istio",
		"-X " + istio + "buildTag=" + v.Istio,
	}, " "), nil
}

// lock keeps two builds of one binary apart; the second waits for the first.
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
			// The lock, should it still come, must not stay.
			go func() {
				if r := <-got; r.err == nil {
					r.unlock()
				}
			}()
			return nil, fmt.Errorf("helper binary: waiting for another build of it: %w", context.Cause(ctx))
		case <-progress.after():
			progress.say("another command is building it; waiting")
		}
	}
}

func build(ctx context.Context, goCommand goTool, flags, binary string, progress Progress) error {
	dir, err := os.MkdirTemp("", "meshctl-sandbox-")
	if err != nil {
		return fmt.Errorf("helper binary: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := unpack(dir); err != nil {
		return err
	}
	progress.say("fetching the modules it is made of")
	packages, err := goCommand.output(ctx, dir, "list", "-deps", ".")
	if err != nil {
		return fmt.Errorf("helper binary: fetching modules: %w; is the Go module proxy within reach?", err)
	}
	total := strings.Count(packages, "\n")
	// Next to its final place, so that the last step is a rename.
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

// errOldGo is returned when the Go toolchain cannot build the helper.
var errOldGo = errors.New("this Go is too old")

// goTool is the go command that builds.
type goTool struct{ path, version string }

func findGo(ctx context.Context) (goTool, error) {
	path, err := exec.LookPath("go")
	if err != nil {
		return goTool{}, fmt.Errorf("helper binary: no go command on the PATH: %w; install Go %s or later from https://go.dev/dl", err, wantGo())
	}
	tool := goTool{path: path}
	dir, err := os.MkdirTemp("", "meshctl-go-")
	if err != nil {
		return goTool{}, fmt.Errorf("helper binary: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	// In the module's own folder, so that go fetches the toolchain it asks for, if it may.
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module x\n\ngo "+wantGo()+"\n"), 0o600); err != nil {
		return goTool{}, fmt.Errorf("helper binary: %w", err)
	}
	version, err := tool.output(ctx, dir, "env", "GOVERSION")
	if err != nil {
		return goTool{}, fmt.Errorf("helper binary: %w: it needs Go %s: %w; install it from https://go.dev/dl", errOldGo, wantGo(), err)
	}
	tool.version = strings.TrimSpace(version)
	return tool, nil
}

// wantGo is the go line of the helper's go.mod.
func wantGo() string {
	version, err := moduleVersion("go")
	if err != nil {
		return "1.26"
	}
	return version
}
