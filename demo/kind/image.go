package kind

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
)

// errNotForContainers is returned for a binary that does not run in an empty container.
var errNotForContainers = errors.New("it does not run in a container")

// repository has the images that are made of binaries.
const repository = "meshctl.local/meshctl"

// MeshctlImage has the engine have an image of a binary of meshctl, and returns its name. The
// binary must run in an empty container, else the error says so and what to do.
func (e *Engine) MeshctlImage(ctx context.Context, binary string) (string, error) {
	if err := runsInContainers(binary); err != nil {
		return "", fmt.Errorf("%s: %w; build the image with `make image`, and name it with --meshctl-image", binary, err)
	}
	file, err := os.Open(binary)
	if err != nil {
		return "", fmt.Errorf("the image of meshctl: %w", err)
	}
	defer func() { _ = file.Close() }()
	hash := sha256.New()
	size, err := io.Copy(hash, file)
	if err != nil {
		return "", fmt.Errorf("the image of meshctl: %w", err)
	}
	name := repository + ":" + hex.EncodeToString(hash.Sum(nil))[:12]
	if e.Has(ctx, name) {
		return name, nil
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return "", fmt.Errorf("the image of meshctl: %w", err)
	}
	archive, write := io.Pipe()
	go func() { write.CloseWithError(pack(write, file, size)) }()
	_, err = e.run(ctx, archive, "import", "--change", `ENTRYPOINT ["/meshctl"]`, "--change", "USER 65532:65532", "--change", "WORKDIR /", "-", name)
	_ = archive.Close()
	if err != nil {
		return "", fmt.Errorf("the image of meshctl: %w", err)
	}
	return name, nil
}

// pack writes an archive with the binary as its only file.
func pack(w io.Writer, binary io.Reader, size int64) error {
	archive := tar.NewWriter(w)
	if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "meshctl", Mode: 0o755, Size: size}); err != nil {
		return err
	}
	if _, err := io.Copy(archive, binary); err != nil {
		return err
	}
	return archive.Close()
}

// runsInContainers checks that a binary is one for Linux and needs no libraries.
func runsInContainers(binary string) error {
	file, err := elf.Open(binary)
	if err != nil {
		return fmt.Errorf("%w: it is one for %s", errNotForContainers, runtime.GOOS)
	}
	defer func() { _ = file.Close() }()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%w: it needs libraries; build it with CGO_ENABLED=0", errNotForContainers)
		}
	}
	return nil
}
