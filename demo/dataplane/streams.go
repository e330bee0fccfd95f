package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// Times of the streams of a kubelet (KubeletConfiguration: streamingConnectionIdleTimeout).
const (
	streamIdle     = 4 * time.Hour
	streamCreation = remotecommand.DefaultStreamCreationTimeout
)

// errNotStarted is the answer for a pod that has nothing to connect to yet.
var errNotStarted = errors.New("the pod has not started yet")

// forwarder connects streams to the ports of a pod.
type forwarder struct{ *pod }

func servePortForward(p *pod, w http.ResponseWriter, r *http.Request) {
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, forwarder{p}, p.Pod, p.uid, options, streamIdle, streamCreation, portforward.SupportedProtocols)
}

// PortForward copies between a stream and a port on the pod's loopback interface, as
// container runtimes do, until the pod ends the connection or the client is gone.
func (f forwarder) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	network := f.running().network
	if network == nil {
		return errNotStarted
	}
	connection, err := network.dial(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
	go func() {
		_, _ = io.Copy(connection, stream)
		if tcp, ok := connection.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
	}()
	_, err = io.Copy(stream, connection)
	return err
}

// runner runs commands in a pod.
type runner struct{ *pod }

func serveExec(p *pod, w http.ResponseWriter, r *http.Request) {
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if options.TTY {
		http.Error(w, "the demo's pods have no terminals; leave out --tty", http.StatusBadRequest)
		return
	}
	remotecommand.ServeExec(w, r, runner{p}, p.Pod, p.uid, r.PathValue("container"), r.URL.Query()["command"],
		options, streamIdle, streamCreation, remotecommand.SupportedStreamingProtocols)
}

// ExecInContainer runs a command in the network and the folder of a pod. There is no
// container: the command sees the files of this machine, with the rights of the user who
// runs the demo. The command pilot-agent is Istio's agent, as in the image of a proxy.
func (c runner) ExecInContainer(ctx context.Context, _, _, container string, cmd []string,
	in io.Reader, out, errs io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize, _ time.Duration,
) error {
	if err := c.hasContainer(container); err != nil {
		return err
	}
	running := c.running()
	network := running.network
	if network == nil {
		return errNotStarted
	}
	if len(cmd) > 0 && cmd[0] == "pilot-agent" {
		cmd = append([]string{"/proc/self/exe", "agent"}, cmd[1:]...)
	}
	command := exec.Command(cmd[0], cmd[1:]...)
	command.Dir, command.Env = c.folder, append(slices.Clone(running.environment), "PATH="+searchPath)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Stdin = in
	if out != nil {
		command.Stdout = out
	}
	if errs != nil {
		command.Stderr = errs
	}
	if err := network.start(command); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = unix.Kill(-command.Process.Pid, unix.SIGKILL) })()
	err := command.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return utilexec.CodeExitError{Err: err, Code: exit.ExitCode()}
	}
	return err
}

// searchPath is where commands are looked for.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// hasContainer returns an error unless the pod has a container of that name.
func (p *pod) hasContainer(name string) error {
	spec := p.object()
	for i := range spec.Spec.Containers {
		if spec.Spec.Containers[i].Name == name {
			return nil
		}
	}
	for i := range spec.Spec.InitContainers {
		if spec.Spec.InitContainers[i].Name == name {
			return nil
		}
	}
	return fmt.Errorf("pod %s: it has no container %s", p, name)
}
