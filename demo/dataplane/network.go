package main

import (
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
)

// network is the network of a cluster: a namespace with a bridge to which its pods
// are attached. Networks of different clusters are not connected: what leads from
// one to another are the addresses of load balancers, where balancer.go listens.
type network struct {
	*namespace
	bridge *netlink.Bridge
	// router is the address of the bridge, which pods use as their gateway.
	router net.IP
}

// newNetwork creates the network of the cluster with an index: 10.INDEX.0.0/16, as
// kwok assigns addresses to pods.
func newNetwork(index int) (*network, error) {
	space, err := newNamespace()
	if err != nil {
		return nil, err
	}
	n := &network{
		namespace: space,
		bridge:    &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "pods"}},
		router:    net.IPv4(10, byte(index), 255, 254),
	}
	if err := n.link.LinkAdd(n.bridge); err != nil {
		return nil, fmt.Errorf("adding a bridge: %w", err)
	}
	// Otherwise it has one of those of its pods, and changes it when that pod goes.
	if err := n.link.LinkSetHardwareAddr(n.bridge, hardwareAddress(n.router)); err != nil {
		return nil, fmt.Errorf("hardware address of the bridge: %w", err)
	}
	address := &netlink.Addr{IPNet: &net.IPNet{IP: n.router, Mask: net.CIDRMask(16, 32)}}
	if err := n.link.AddrAdd(n.bridge, address); err != nil {
		return nil, fmt.Errorf("address of the bridge: %w", err)
	}
	if err := n.link.LinkSetUp(n.bridge); err != nil {
		return nil, fmt.Errorf("starting the bridge: %w", err)
	}
	return n, nil
}

// addAddress makes an address reachable for the pods of the network, to listen on.
func (n *network) addAddress(ip net.IP) error {
	loopback, err := n.link.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := n.link.AddrReplace(loopback, &netlink.Addr{IPNet: &net.IPNet{IP: ip, Mask: net.CIDRMask(32, 32)}}); err != nil {
		return fmt.Errorf("address %s: %w", ip, err)
	}
	return nil
}

// hardwareAddress follows from the IP address, so that what others remember (ARP)
// remains true when another pod gets the address of one that went. The first byte
// says that it is assigned locally.
func hardwareAddress(ip net.IP) net.HardwareAddr {
	return append(net.HardwareAddr{2, 0}, ip.To4()...)
}

// attach creates the namespace of a pod, with an interface that is attached to the
// bridge. The interface ends with the namespace.
func (n *network) attach(ip net.IP) (*namespace, error) {
	pod, err := newNamespace()
	if err != nil {
		return nil, err
	}
	if err := n.connect(pod, ip); err != nil {
		pod.close()
		return nil, fmt.Errorf("network of pod %s: %w", ip, err)
	}
	return pod, nil
}

func (n *network) connect(pod *namespace, ip net.IP) error {
	// Unique in the network: interfaces are named by the last two bytes.
	outside := fmt.Sprintf("pod-%d-%d", ip.To4()[2], ip.To4()[3])
	if old, err := n.link.LinkByName(outside); err == nil {
		// A pod had this address before, and the kernel has not removed its
		// namespace yet.
		if err := n.link.LinkDel(old); err != nil {
			return fmt.Errorf("removing the interface of an earlier pod: %w", err)
		}
	}
	pair := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: outside, MasterIndex: n.bridge.Attrs().Index},
		PeerName:  "eth0", PeerNamespace: netlink.NsFd(pod.handle), PeerHardwareAddr: hardwareAddress(ip),
	}
	if err := n.link.LinkAdd(pair); err != nil {
		return fmt.Errorf("adding its interface: %w", err)
	}
	if err := n.link.LinkSetUp(pair); err != nil {
		return err
	}
	inside, err := pod.link.LinkByName("eth0")
	if err != nil {
		return err
	}
	if err := pod.link.AddrAdd(inside, &netlink.Addr{IPNet: &net.IPNet{IP: ip, Mask: net.CIDRMask(16, 32)}}); err != nil {
		return err
	}
	if err := pod.link.LinkSetUp(inside); err != nil {
		return err
	}
	return pod.link.RouteAdd(&netlink.Route{LinkIndex: inside.Attrs().Index, Gw: n.router})
}
