package helper

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// environment is that of the caller without what would change the build: the
// workspace or module flags of another project.
func environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "GOFLAGS=") || strings.HasPrefix(v, "GOWORK=")
	})
	return append(env, "GOFLAGS=", "GOWORK=off")
}

func (g goTool) command(ctx context.Context, dir string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, g.path, args...)
	command.Dir = dir
	command.Env = environment()
	// An interrupted go command stops its compilers; a killed one does not.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 5 * time.Second
	return command
}

func (g goTool) output(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := g.command(ctx, dir, args...).Output()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, lastLines(exit.Stderr))
	}
	return string(out), err
}

// compile runs `go build -v`, which names each package as it is compiled;
// packages in the build cache are not named.
func (g goTool) compile(ctx context.Context, dir, binary, linkerFlags string, total int, progress Progress) error {
	command := g.command(ctx, dir, "build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", linkerFlags, "-o", binary, ".")
	names, output := io.Pipe()
	command.Stdout, command.Stderr = output, output
	var compiled atomic.Int64
	var said bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(names); lines.Scan(); {
			if line := lines.Text(); isPackage(line) {
				compiled.Add(1)
			} else {
				_, _ = fmt.Fprintln(&said, line)
			}
		}
		// A line too long for the scanner must not block the compiler.
		_, _ = io.Copy(io.Discard, names)
	}()
	done := make(chan error, 1)
	started := time.Now()
	go func() {
		err := command.Run()
		_ = output.Close()
		<-read
		done <- err
	}()
	for {
		select {
		case err := <-done:
			if ctx.Err() != nil {
				return fmt.Errorf("helper binary: %w", context.Cause(ctx))
			}
			if err != nil {
				return fmt.Errorf("helper binary: go build: %w: %s", err, lastLines(said.Bytes()))
			}
			return nil
		case <-progress.after():
			progress.notify(remaining(int(compiled.Load()), total, time.Since(started)))
		}
	}
}

// fewPackages is the part of the packages, in percent, from which on they tell how long the others take.
const fewPackages = 5

// remaining says how far a build is, and how long the rest takes if packages go on as fast as before.
func remaining(compiled, total int, elapsed time.Duration) string {
	text := fmt.Sprintf("compiled %d of %d packages in %s", compiled, total, elapsed.Round(time.Second))
	if compiled >= total {
		return text + ", linking"
	}
	if 100*compiled < fewPackages*total {
		return text
	}
	left := time.Duration(float64(elapsed) * float64(total-compiled) / float64(compiled))
	if left < time.Minute {
		return text + ", less than a minute is left"
	}
	return fmt.Sprintf("%s, about %d minutes are left", text, int(left.Round(time.Minute)/time.Minute))
}

// isPackage distinguishes the names that `go build -v` prints from compiler errors.
func isPackage(line string) bool {
	return line != "" && !strings.ContainsAny(line, " :#\t")
}

func lastLines(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}
