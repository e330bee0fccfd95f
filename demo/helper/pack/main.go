// Command pack writes the archives of the helpers' sources. It can run anywhere in
// the repository: `go run ./demo/helper/pack`.
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
	for _, name := range helper.Names() {
		archive, err := helper.Pack(filepath.Join(root, "demo", name), name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(root, "demo", "helper", name+".txtar"), archive, 0o644); err != nil {
			return err
		}
	}
	return nil
}
