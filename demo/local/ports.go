package local

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/proc"
)

// portNames are the names of the ports of each role; other roles have none.
func portNames() map[string][]string {
	return map[string][]string{
		Etcd:          {"etcd", "etcd-peer"},
		APIServer:     {"kube-apiserver"},
		kubelet:       {"kubelet"},
		Istiod:        {"istiod-http", "istiod-https", "istiod-grpc", "istiod-grpcs", "istiod-monitoring", "istiod-ctrlz"},
		OSMController: {"osm-ads", "osm-webhook", "osm-http"},
	}
}

func (c *Cluster) port(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Ports[name]
}

func (c *Cluster) address(port string) string { return loopback + ":" + strconv.Itoa(c.port(port)) }

// server is the URL of the API server.
func (c *Cluster) server() string { return "https://" + c.address("kube-apiserver") }

// reservePorts chooses new ports for a role. They stay reserved until the
// cluster's state file is removed, also while nothing listens on them.
func (c *Cluster) reservePorts(role string) error {
	names := portNames()[role]
	ports, err := proc.ReservePorts(filepath.Join(c.dir, stateFile), len(names))
	if err != nil {
		return fmt.Errorf("cluster %s: %w", c.Name(), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, name := range names {
		c.state.Ports[name] = ports[i]
	}
	return c.state.write(c.dir)
}

// portsTakenError is returned for a role that exited because of its ports.
type portsTakenError struct {
	role, ports string
	err         error
}

func (e *portsTakenError) Error() string {
	return fmt.Sprintf("port %s is in use by another program; end that program: %v", e.ports, e.err)
}

func (e *portsTakenError) Unwrap() error { return e.err }

// endedError is the error for a process that exited.
func (c *Cluster) endedError(p proc.Process) error {
	err := fmt.Errorf("%s exited; the last lines of %s:\n%s", p.Name, p.Log, p.Tail(8))
	var taken []string
	for _, name := range portNames()[p.Name] {
		if port := c.port(name); proc.PortInUse(port) {
			taken = append(taken, strconv.Itoa(port))
		}
	}
	if len(taken) == 0 {
		return err
	}
	return &portsTakenError{role: p.Name, ports: strings.Join(taken, ", "), err: err}
}

// startTries bounds how often a role is started on new ports.
const startTries = 3

// onFreePorts calls start, which starts roles for the first time and waits for
// them. Another program, which ignores reservations, may take a port before the
// role listens on it: that role gets new ports, and start is called again.
func (c *Cluster) onFreePorts(start func() error) error {
	for try := 1; ; try++ {
		err := start()
		taken := (*portsTakenError)(nil)
		if !errors.As(err, &taken) || try == startTries {
			return err
		}
		if err := c.reservePorts(taken.role); err != nil {
			return err
		}
		if taken.role == APIServer {
			if err := c.moveServer(); err != nil {
				return err
			}
		}
	}
}

// moveServer writes the API server's new address into all kubeconfigs.
func (c *Cluster) moveServer() error {
	files := []string{c.Kubeconfig()}
	for _, client := range clients() {
		files = append(files, c.pki.file(client.file))
	}
	for _, file := range files {
		config, err := clientcmd.LoadFromFile(file)
		if err != nil {
			return fmt.Errorf("cluster %s: kubeconfig %s: %w", c.Name(), file, err)
		}
		config.Clusters[c.Name()].Server = c.server()
		if err := kube.WriteKubeconfig(file, config); err != nil {
			return err
		}
	}
	return nil
}
