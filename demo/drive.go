package demo

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/meshctl/meshctl/demo/manifests"
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
	if err := u.meshctl(ctx, append([]string{"cluster", "register", c.Name(), "--kubeconfig", u.kubeconfig(),
		"--remote-context", c.Context(), "--mgmt-context", u.clusters[0].Context()}, flags...)...); err != nil {
		return err
	}
	// What is reached through its agent, meshctl serve does not read.
	if slices.Contains(flags, "--relay") {
		return nil
	}
	client, err := c.Client()
	if err != nil {
		return err
	}
	namespace := planeNamespace
	if c == u.clusters[0] {
		namespace = agentNamespace // in the management cluster, registration keeps apart from the management plane
	}
	return client.ApplyYAML(ctx, manifests.ReadProxies(namespace, c.Name()))
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
