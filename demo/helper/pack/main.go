// Command pack writes the archive of the helper's sources anew. It is run from
// anywhere in the repository: `go run ./demo/helper/pack`.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/meshctl/meshctl/demo/helper"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run() error {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("finding the repository: %w", err)
	}
	root := strings.TrimSpace(string(out))
	archive, err := helper.Pack(filepath.Join(root, "demo", "sandbox"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "demo", "helper", helper.ArchiveFile), archive, 0o644)
}
