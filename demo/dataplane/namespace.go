package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// namespace is a network namespace of this process. It exists until it is closed
// and no process runs in it.
type namespace struct {
	link *netlink.Handle

	mu     sync.RWMutex // so that the handle is not closed while a thread enters
	handle netns.NsHandle
}

// newNamespace creates a network namespace whose loopback interface is up. IPv6 is
// off, because the clusters do not use it.
func newNamespace() (*namespace, error) {
	var n namespace
	if err := inThread(n.create); err != nil {
		return nil, fmt.Errorf("network namespace: %w", err)
	}
	return &n, nil
}

// create creates the namespace, and stays in it. Handles are opened here: a
// library that enters a namespace for a moment could not leave it again, because
// the way back needs permissions on the host.
func (n *namespace) create() (err error) {
	n.handle, err = netns.New()
	if err != nil {
		return err
	}
	err = os.WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", []byte("1"), 0)
	if err != nil && !os.IsNotExist(err) { // a kernel without IPv6 has no such file
		return err
	}
	n.link, err = netlink.NewHandle()
	if err != nil {
		return err
	}
	loopback, err := n.link.LinkByName("lo")
	if err != nil {
		return err
	}
	return n.link.LinkSetUp(loopback)
}

func (n *namespace) close() {
	n.link.Close()
	n.mu.Lock()
	defer n.mu.Unlock()
	_ = n.handle.Close()
}

// enter moves the thread into the namespace.
func (n *namespace) enter() error {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if !n.handle.IsOpen() {
		return errors.New("network namespace: it was closed")
	}
	if err := netns.Set(n.handle); err != nil {
		return fmt.Errorf("entering a network namespace: %w", err)
	}
	return nil
}

// inThread calls f on an operating system thread that ends afterwards, so that f
// can change the thread's namespaces.
func inThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlock: the thread ends with the goroutine
		done <- f()
	}()
	return <-done
}

// The main thread cannot end, so it must not enter the namespace of a pod, which
// would exist as long: it is kept for the main goroutine.
func init() { runtime.LockOSThread() }

// do calls f in the namespace. Goroutines that f starts are not in it.
func (n *namespace) do(f func() error) error {
	return inThread(func() error {
		if err := n.enter(); err != nil {
			return err
		}
		return f()
	})
}

// dial connects from the namespace to an IP address.
func (n *namespace) dial(ctx context.Context, network, address string) (connection net.Conn, err error) {
	err = n.do(func() error {
		// An IP address is connected in this goroutine, so in this thread.
		connection, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return connection, err
}

// listen listens in the namespace.
func (n *namespace) listen(address string) (listener net.Listener, err error) {
	err = n.do(func() error {
		listener, err = net.Listen("tcp4", address)
		return err
	})
	return listener, err
}

// listenUDP is like listen for datagrams.
func (n *namespace) listenUDP(address string) (connection net.PacketConn, err error) {
	err = n.do(func() error {
		connection, err = net.ListenPacket("udp4", address)
		return err
	})
	return connection, err
}

// start starts a process in the namespace.
func (n *namespace) start(command *exec.Cmd) error { return n.do(command.Start) }
