package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// fake is a build whose binary is not one.
func fake(t *testing.T, goos, arch string) build {
	t.Helper()
	name := "meshctl"
	if goos == "windows" {
		name += ".exe"
	}
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte("binary of "+goos+"/"+arch), 0o600))
	return build{path: path, os: goos, arch: arch, version: "v1.2.3", commit: "abc", time: time.Unix(1_700_000_000, 0).UTC()}
}

// files reads a folder.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir)] = string(content)
		return err
	}))
	return all
}

func TestImage(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	builds := []build{fake(t, "linux", "amd64"), fake(t, "linux", "arm64")}
	require.NoError(t, writeImage(out, builds))

	root, err := layout.ImageIndexFromPath(filepath.Join(out, "image"))
	require.NoError(t, err)
	require.NoError(t, validate.Index(root))
	manifest, err := root.IndexManifest()
	require.NoError(t, err)
	require.Len(t, manifest.Manifests, 1)
	index, err := root.ImageIndex(manifest.Manifests[0].Digest)
	require.NoError(t, err)
	manifest, err = index.IndexManifest()
	require.NoError(t, err)
	require.Len(t, manifest.Manifests, len(builds))
	for i, described := range manifest.Manifests {
		assert.Equal(t, "linux/"+builds[i].arch, described.Platform.String())
		img, err := index.Image(described.Digest)
		require.NoError(t, err)
		config, err := img.ConfigFile()
		require.NoError(t, err)
		assert.Equal(t, builds[i].arch, config.Architecture)
		assert.Equal(t, "65532:65532", config.Config.User)
		assert.Equal(t, []string{"/meshctl"}, config.Config.Entrypoint)
		assert.Equal(t, "v1.2.3", config.Config.Labels["org.opencontainers.image.version"])

		layers, err := img.Layers()
		require.NoError(t, err)
		require.Len(t, layers, 1)
		content, err := layers[0].Uncompressed()
		require.NoError(t, err)
		assert.Equal(t, map[string]string{"meshctl -rwxr-xr-x": "binary of linux/" + builds[i].arch}, untar(t, content))

		// What docker loads is the same image.
		loaded, err := tarball.ImageFromPath(filepath.Join(out, "meshctl_image_linux_"+builds[i].arch+".tar"), nil)
		require.NoError(t, err)
		want, err := img.ConfigName()
		require.NoError(t, err)
		got, err := loaded.ConfigName()
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
}

// TestImageReplaces makes an image where an earlier one is.
func TestImageReplaces(t *testing.T) {
	t.Parallel()
	b := fake(t, "linux", "amd64")
	first, second := t.TempDir(), t.TempDir()
	require.NoError(t, writeImage(first, []build{b, fake(t, "linux", "arm64")}))
	require.NoError(t, writeImage(first, []build{b}))
	require.NoError(t, writeImage(second, []build{b}))
	a, c := files(t, filepath.Join(first, "image")), files(t, filepath.Join(second, "image"))
	assert.Equal(t, c, a)
}

// untar returns what is in a tar, by name and mode.
func untar(t *testing.T, from io.Reader) map[string]string {
	t.Helper()
	all := map[string]string{}
	for r := tar.NewReader(from); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		content, err := io.ReadAll(r)
		require.NoError(t, err)
		all[header.Name+" "+header.FileInfo().Mode().String()] = string(content)
	}
}

func TestArchives(t *testing.T) {
	t.Parallel()
	o := options{source: "..", url: "https://example.com"}
	manual := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(manual, "man", "man1"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(manual, "man", "man1", "meshctl.1"), []byte("page"), 0o600))
	var builds []build
	for _, platform := range archivePlatforms {
		goos, arch, _ := strings.Cut(platform, "/")
		builds = append(builds, fake(t, goos, arch))
	}
	outs := []string{t.TempDir(), t.TempDir()}
	for _, out := range outs {
		o.out = out
		require.NoError(t, writeRelease(t.Context(), o, manual, builds))
	}
	written := files(t, outs[0])
	assert.Equal(t, files(t, outs[1]), written, "two runs give the same bytes")
	require.Len(t, written, len(builds)+2)

	for _, b := range builds {
		name := "/meshctl_v1.2.3_" + b.os + "_" + b.arch
		var content map[string]string
		if b.os == "windows" {
			content = unzip(t, written[name+".zip"])
		} else {
			z, err := gzip.NewReader(strings.NewReader(written[name+".tar.gz"]))
			require.NoError(t, err)
			content = untar(t, z)
		}
		assert.Equal(t, "binary of "+b.os+"/"+b.arch, content[filepath.Base(b.path)+" -rwxr-xr-x"])
		assert.Equal(t, "page", content["man/man1/meshctl.1 -rw-r--r--"])
		assert.Contains(t, content["LICENSE -rw-r--r--"], "Apache License")
		assert.Len(t, content, 4)
	}
	assertChecksums(t, outs[0], len(builds)+1)
	assertKrew(t, outs[0], len(builds))
}

func unzip(t *testing.T, archive string) map[string]string {
	t.Helper()
	z, err := zip.NewReader(strings.NewReader(archive), int64(len(archive)))
	require.NoError(t, err)
	all := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		require.NoError(t, err)
		content, err := io.ReadAll(r)
		require.NoError(t, err)
		all[f.Name+" "+f.Mode().String()] = string(content)
	}
	return all
}

// assertChecksums compares checksums.txt with the files.
func assertChecksums(t *testing.T, out string, want int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(out, "checksums.txt"))
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	assert.Len(t, lines, want)
	for _, line := range lines {
		sum, name, ok := strings.Cut(line, "  ")
		require.True(t, ok, line)
		got, err := checksum(filepath.Join(out, name))
		require.NoError(t, err)
		assert.Equal(t, got, sum, name)
	}
}

// assertKrew checks what krew checks before it installs: internal/index/validation.
func assertKrew(t *testing.T, out string, want int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(out, krewFile))
	require.NoError(t, err)
	var p plugin
	require.NoError(t, yaml.UnmarshalStrict(text, &p))
	assert.Equal(t, "krew.googlecontainertools.github.com/v1alpha2", p.APIVersion)
	assert.Equal(t, "Plugin", p.Kind)
	assert.Equal(t, strings.TrimSuffix(krewFile, ".yaml"), p.Metadata.Name)
	// Krew parses what follows the v as a semantic version.
	assert.Regexp(t, `^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`, p.Spec.Version)
	assert.NotEmpty(t, p.Spec.ShortDescription)
	assert.NotContains(t, p.Spec.ShortDescription, "\n")
	require.Len(t, p.Spec.Platforms, want)
	seen := map[string]bool{}
	for _, platform := range p.Spec.Platforms {
		labels := platform.Selector.MatchLabels
		assert.Len(t, labels, 2)
		seen[labels["os"]+"/"+labels["arch"]] = true
		file, ok := strings.CutPrefix(platform.URI, "https://example.com/v1.2.3/")
		require.True(t, ok, platform.URI)
		assert.Contains(t, file, labels["os"]+"_"+labels["arch"])
		sum, err := checksum(filepath.Join(out, file))
		require.NoError(t, err)
		assert.Equal(t, sum, platform.SHA256, file)
		assert.Equal(t, labels["os"] == "windows", platform.Bin == "meshctl.exe")
		for _, f := range platform.Files {
			assert.NotEmpty(t, f.From)
			assert.NotEmpty(t, f.To)
		}
	}
	assert.Len(t, seen, want)
}

// TestCompile builds the real program for this machine.
func TestCompile(t *testing.T) {
	t.Parallel()
	o := options{source: "..", version: "v9.8.7"}
	b, err := compile(t.Context(), o, t.TempDir(), runtime.GOOS+"/"+runtime.GOARCH)
	require.NoError(t, err)
	assert.Equal(t, "v9.8.7", b.version)
	var out bytes.Buffer
	command := exec.CommandContext(t.Context(), b.path, "version")
	command.Stdout = &out
	require.NoError(t, command.Run())
	assert.Contains(t, out.String(), "v9.8.7\n")
}

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	_, err := compile(context.Background(), options{source: ".."}, t.TempDir(), "linux")
	require.EqualError(t, err, `platform "linux": want OS/ARCHITECTURE, such as linux/amd64`)
}

func TestRunNeedsToKnowWhat(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), []string{"-out", t.TempDir(), "all"})
	require.EqualError(t, err, fmt.Sprintf("release: unknown argument %q; say image, archives or supply", "all"))
}
