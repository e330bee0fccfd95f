package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is nobody in particular; Kubernetes accepts a number as not root.
const user = "65532:65532"

// imagePlatforms are those of the image, unless the flags say otherwise.
var imagePlatforms = []string{"linux/amd64", "linux/arm64"}

// image writes an OCI layout of all platforms (out/image), and for each platform an
// archive for `docker load` (out/meshctl_image_linux_ARCH.tar).
func image(ctx context.Context, o options) error {
	work, err := os.MkdirTemp("", "meshctl-image-")
	if err != nil {
		return fmt.Errorf("image: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	var builds []build
	for _, platform := range platformsOr(o, imagePlatforms) {
		b, err := compile(ctx, o, work, platform)
		if err != nil {
			return fmt.Errorf("image: %w", err)
		}
		builds = append(builds, b)
	}
	return writeImage(o.out, builds)
}

func platformsOr(o options, all []string) []string {
	if len(o.platforms) > 0 {
		return o.platforms
	}
	return all
}

func writeImage(out string, builds []build) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("image: creating the folder: %w", err)
	}
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range builds {
		img, err := imageOf(b)
		if err != nil {
			return fmt.Errorf("image of %s/%s: %w", b.os, b.arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: b.os, Architecture: b.arch}},
		})
		if err := writeArchive(out, b, img); err != nil {
			return fmt.Errorf("image of %s/%s: %w", b.os, b.arch, err)
		}
	}
	folder := filepath.Join(out, "image")
	// Of an earlier image, blobs would stay.
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("image: removing the earlier one: %w", err)
	}
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return fmt.Errorf("image: writing the layout: %w", err)
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tagOf(builds[0])})); err != nil {
		return fmt.Errorf("image: writing the layout: %w", err)
	}
	digest, err := index.Digest()
	if err != nil {
		return fmt.Errorf("image: %w", err)
	}
	_, err = fmt.Fprintf(os.Stdout, "%s\t%s\t%s\n", digest, folder, tagOf(builds[0]))
	return err
}

// imageOf is the image of one binary: a single layer with a single file.
func imageOf(b build) (v1.Image, error) {
	layer, err := layerOf(b)
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err = mutate.Append(img, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: b.time}, CreatedBy: "make image"}})
	if err != nil {
		return nil, fmt.Errorf("adding the layer: %w", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = b.os, b.arch, v1.Time{Time: b.time}
	config.Config = v1.Config{
		User: user, WorkingDir: "/", Entrypoint: []string{"/meshctl"},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "meshctl",
			"org.opencontainers.image.source":   "https://github.com/meshctl/meshctl",
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.version":  b.version,
			"org.opencontainers.image.revision": b.commit,
		},
	}
	return mutate.ConfigFile(img, config)
}

// layerOf packs the binary as /meshctl.
func layerOf(b build) (v1.Layer, error) {
	binary, err := os.ReadFile(b.path)
	if err != nil {
		return nil, fmt.Errorf("reading the binary: %w", err)
	}
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	header := &tar.Header{Typeflag: tar.TypeReg, Name: "meshctl", Mode: 0o755, Size: int64(len(binary)), ModTime: b.time}
	if err := w.WriteHeader(header); err != nil {
		return nil, fmt.Errorf("packing the binary: %w", err)
	}
	if _, err := w.Write(binary); err != nil {
		return nil, fmt.Errorf("packing the binary: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("packing the binary: %w", err)
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(packed.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

// writeArchive writes one image for `docker load`.
func writeArchive(out string, b build, img v1.Image) error {
	tag, err := name.NewTag("meshctl/meshctl:" + tagOf(b))
	if err != nil {
		return fmt.Errorf("version %s: %w", b.version, err)
	}
	path := filepath.Join(out, "meshctl_image_"+b.os+"_"+b.arch+".tar")
	if err := tarball.WriteToFile(path, tag, img); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// tagOf is the version as a tag, which has no plus sign.
func tagOf(b build) string { return cmp.Or(strings.ReplaceAll(b.version, "+", "-"), "dev") }
