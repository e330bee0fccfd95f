package demo

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func (u *up) kubeconfig() string { return filepath.Join(u.opts.Dir, kubeconfigFile) }

// register registers every cluster like a user, the management cluster first.
func (u *up) register(ctx context.Context) error {
	for _, c := range u.clusters {
		if err := u.registerOne(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func (u *up) registerOne(ctx context.Context, c Cluster, flags ...string) error {
	u.opts.Progress.Note("%s", c.Name())
	return u.meshctl(ctx, append([]string{"cluster", "register", c.Name(), "--kubeconfig", u.kubeconfig(),
		"--remote-context", c.Context(), "--mgmt-context", u.clusters[0].Context()}, flags...)...)
}

// meshctl runs the binary; its error contains stderr.
func (u *up) meshctl(ctx context.Context, args ...string) error {
	command := exec.CommandContext(ctx, u.opts.Meshctl, args...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	// Grandchildren may keep the pipe open.
	command.WaitDelay = time.Second
	if err := command.Run(); err != nil {
		return fmt.Errorf("meshctl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return nil
}
