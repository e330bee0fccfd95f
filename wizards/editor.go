package wizards

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/kballard/go-shellquote"
)

// runEditor opens a text in $VISUAL or $EDITOR and returns the edited text.
func runEditor(text string, in io.Reader, out io.Writer) (string, error) {
	command := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi")
	words, err := shellquote.Split(command)
	if err != nil || len(words) == 0 {
		return text, fmt.Errorf("editor %q cannot be started; set EDITOR to the name of a program", command)
	}
	file, err := os.CreateTemp("", "meshctl-*.yaml")
	if err != nil {
		return text, fmt.Errorf("edit: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.WriteString(text)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return text, fmt.Errorf("edit: %w", err)
	}
	editor := exec.Command(words[0], append(words[1:], file.Name())...) //nolint:gosec // the user's own editor
	editor.Stdin, editor.Stdout, editor.Stderr = in, out, out
	if err := editor.Run(); err != nil {
		return text, fmt.Errorf("editor %s: %w; set EDITOR to another program", words[0], err)
	}
	data, err := os.ReadFile(file.Name())
	if err != nil {
		return text, fmt.Errorf("edit: %w", err)
	}
	return string(data), nil
}
