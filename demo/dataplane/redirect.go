package main

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// Ports and addresses of a sidecar, and the traffic that does not pass through it.
// See https://istio.io/latest/docs/ops/deployment/application-requirements/.
const (
	outboundPort = 15001
	inboundPort  = 15006
	// hbonePort is for tunnels, which terminate at the proxy itself.
	hbonePort = 15008
	// agentPort and healthPort serve the status of the agent and of the proxy.
	agentPort  = 15020
	healthPort = 15021
	statsPort  = 15090
	// dnsPort is where the agent answers DNS queries for the hosts of the mesh.
	dnsPort = 15053
)

// appMark marks the packets of the application, whose traffic is redirected to the
// proxy. In a cluster that is decided by the user ID, but an unprivileged user
// namespace has only one.
const appMark = 1

// redirect sends the traffic of a pod through its sidecar, as the rules of Istio's
// own init container do, but for the ports that its annotation excludes.
func redirect(pod *namespace, spec *corev1.Pod) error {
	var excluded []uint16
	for text := range strings.SplitSeq(spec.Annotations[excludedPorts], ",") {
		if port, err := strconv.ParseUint(strings.TrimSpace(text), 10, 16); err == nil {
			excluded = append(excluded, uint16(port))
		}
	}
	return pod.do(func() error { return addRules(excluded) })
}

// excludedPorts are those at which requests pass the proxy by, as a list
// (https://istio.io/latest/docs/reference/config/annotations/).
const excludedPorts = "traffic.sidecar.istio.io/excludeInboundPorts"

func addRules(excluded []uint16) error {
	c, err := nftables.New()
	if err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "istio"})
	incoming := c.AddChain(&nftables.Chain{
		Name: "incoming", Table: table, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityNATDest,
	})
	own, err := portSet(c, table, append(excluded, hbonePort, agentPort, healthPort, statsPort)...)
	if err != nil {
		return err
	}
	c.AddRule(&nftables.Rule{Table: table, Chain: incoming, Exprs: join(
		protocolTCP(), port(), notIn(own), redirectTo(inboundPort),
	)})
	outgoing := c.AddChain(&nftables.Chain{
		Name: "outgoing", Table: table, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityNATDest,
	})
	// The proxy calls the service of its own pod. What it delivers to the
	// application has the source address 127.0.0.6.
	c.AddRule(&nftables.Rule{Table: table, Chain: outgoing, Exprs: join(
		interfaceIs(expr.CmpOpEq, "lo"), markIs(0), protocolTCP(),
		addressIs(expr.CmpOpNeq, sourceAddress, net.IPv4(127, 0, 0, 6)), addressIs(expr.CmpOpNeq, targetAddress, net.IPv4(127, 0, 0, 1)),
		port(), compare(expr.CmpOpNeq, binaryutil.BigEndian.PutUint16(hbonePort)), redirectTo(inboundPort),
	)})
	c.AddRule(&nftables.Rule{Table: table, Chain: outgoing, Exprs: join(
		interfaceIs(expr.CmpOpNeq, "lo"), markIs(appMark), protocolTCP(), redirectTo(outboundPort),
	)})
	if err := c.Flush(); err != nil {
		return fmt.Errorf("nftables: redirecting the traffic of a pod: %w", err)
	}
	return nil
}

func portSet(c *nftables.Conn, table *nftables.Table, ports ...uint16) (*nftables.Set, error) {
	set := &nftables.Set{Table: table, Anonymous: true, Constant: true, KeyType: nftables.TypeInetService}
	elements := make([]nftables.SetElement, 0, len(ports))
	for _, p := range ports {
		elements = append(elements, nftables.SetElement{Key: binaryutil.BigEndian.PutUint16(p)})
	}
	if err := c.AddSet(set, elements); err != nil {
		return nil, fmt.Errorf("nftables: %w", err)
	}
	return set, nil
}

func join(parts ...[]expr.Any) (all []expr.Any) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// compare compares what the expression before it has loaded.
func compare(op expr.CmpOp, data []byte) []expr.Any {
	return []expr.Any{&expr.Cmp{Op: op, Register: 1, Data: data}}
}

func protocolTCP() []expr.Any {
	return join([]expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}}, compare(expr.CmpOpEq, []byte{unix.IPPROTO_TCP}))
}

func markIs(mark uint32) []expr.Any {
	return join([]expr.Any{&expr.Meta{Key: expr.MetaKeyMARK, Register: 1}}, compare(expr.CmpOpEq, binaryutil.NativeEndian.PutUint32(mark)))
}

func interfaceIs(op expr.CmpOp, name string) []expr.Any {
	padded := make([]byte, unix.IFNAMSIZ)
	copy(padded, name)
	return join([]expr.Any{&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: 1}}, compare(op, padded))
}

// Offsets in the header of an IP packet (RFC 791).
const (
	sourceAddress = 12
	targetAddress = 16
)

func addressIs(op expr.CmpOp, offset uint32, ip net.IP) []expr.Any {
	return join([]expr.Any{&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: net.IPv4len}}, compare(op, ip.To4()))
}

// port loads the target port (RFC 9293).
func port() []expr.Any {
	return []expr.Any{&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2}}
}

func notIn(set *nftables.Set) []expr.Any {
	return []expr.Any{&expr.Lookup{SourceRegister: 1, SetName: set.Name, SetID: set.ID, Invert: true}}
}

func redirectTo(port uint16) []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: 1, Data: binaryutil.BigEndian.PutUint16(port)},
		&expr.Redir{RegisterProtoMin: 1, RegisterProtoMax: 1},
	}
}
