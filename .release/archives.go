package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// archivePlatforms are those of a release, unless the flags say otherwise.
var archivePlatforms = []string{
	"darwin/amd64", "darwin/arm64", "linux/amd64", "linux/arm64", "windows/amd64", "windows/arm64",
}

// packed is an archive with its checksum.
type packed struct {
	build
	// file is its name in the folder of the release.
	file   string
	sha256 string
}

// archives writes out/meshctl_VERSION_OS_ARCH.tar.gz (.zip for Windows), an SBOM for
// each, the krew manifest meshctl.yaml and checksums.txt.
func archives(ctx context.Context, o options) error {
	work, err := os.MkdirTemp("", "meshctl-release-")
	if err != nil {
		return fmt.Errorf("archives: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	var builds []build
	for _, platform := range platformsOr(o, archivePlatforms) {
		b, err := compile(ctx, o, work, platform)
		if err != nil {
			return fmt.Errorf("archives: %w", err)
		}
		builds = append(builds, b)
	}
	manual := filepath.Join(work, "manual")
	command := exec.CommandContext(ctx, "go", "run", "./cmd/manual", manual)
	command.Dir, command.Stderr = o.source, os.Stderr
	command.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", builds[0].time.Unix()))
	if err := command.Run(); err != nil {
		return fmt.Errorf("archives: writing the man pages: %w", err)
	}
	return writeRelease(ctx, o, manual, builds)
}

// writeRelease packs the binaries with the manual, and describes what it packed.
func writeRelease(ctx context.Context, o options, manual string, builds []build) error {
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return fmt.Errorf("archives: creating the folder: %w", err)
	}
	shared, err := folder(manual, "")
	if err != nil {
		return fmt.Errorf("archives: %w", err)
	}
	for _, name := range []string{"LICENSE", "README.md"} {
		shared = append(shared, entry{name: name, path: filepath.Join(o.source, name), mode: 0o644})
	}
	var all []packed
	var files []string
	for _, b := range builds {
		p, err := packBuild(o, shared, b)
		if err != nil {
			return err
		}
		all = append(all, p)
		files = append(files, p.file)
		if o.sbom != "" {
			name := p.file + ".cdx.json"
			if err := writeSBOM(ctx, o, b, filepath.Join(o.out, name)); err != nil {
				return fmt.Errorf("archive %s: %w", p.file, err)
			}
			files = append(files, name)
		}
	}
	if err := writeKrew(o, all); err != nil {
		return err
	}
	return writeChecksums(o.out, append(files, krewFile))
}

func packBuild(o options, shared []entry, b build) (packed, error) {
	windows := b.os == "windows"
	extension := ".tar.gz"
	if windows {
		extension = ".zip"
	}
	p := packed{build: b, file: "meshctl_" + b.version + "_" + b.os + "_" + b.arch + extension}
	path := filepath.Join(o.out, p.file)
	binary := entry{name: filepath.Base(b.path), path: b.path, mode: 0o755}
	err := pack(path, windows, b.time, append([]entry{binary}, shared...))
	if err != nil {
		return p, err
	}
	p.sha256, err = checksum(path)
	return p, err
}

// writeSBOM lists the modules in the binary, as CycloneDX.
func writeSBOM(ctx context.Context, o options, b build, path string) error {
	// Neither a serial number nor the time: the same binary gives the same bytes.
	command := exec.CommandContext(ctx, o.sbom, "bin", "-json", "-std", "-noserial", "-notimestamp",
		"-version", b.version, "-output", path, b.path)
	if said, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("writing its SBOM: %w: %s", err, strings.TrimSpace(string(said)))
	}
	return nil
}

func checksum(path string) (string, error) {
	file, err := os.Open(path) //nolint:gosec // a file that this program wrote
	if err != nil {
		return "", fmt.Errorf("checksum: %w", err)
	}
	defer func() { _ = file.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", fmt.Errorf("checksum of %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// writeChecksums writes checksums.txt, as sha256sum --check reads it.
func writeChecksums(out string, files []string) error {
	slices.Sort(files)
	var text strings.Builder
	for _, name := range files {
		sum, err := checksum(filepath.Join(out, name))
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(&text, "%s  %s\n", sum, name)
	}
	if err := os.WriteFile(filepath.Join(out, "checksums.txt"), []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("checksums: %w", err)
	}
	return nil
}
