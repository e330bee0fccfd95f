package main

import (
	"errors"
	"io"
	"log"
	"net"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"k8s.io/apimachinery/pkg/labels"
)

// resolver is the address of the server of names in each pod with a proxy.
const resolver = "127.0.0.53"

// nameLife is how long an answer is good for, in seconds.
const nameLife = 1

// resolve serves the names of the Services of programs in a namespace of the cluster,
// until it is closed. In the demo no address of a Service leads anywhere, so that a name has
// the addresses of the pods, as that of a headless Service. Proxies resolve what their
// own configuration has to name, and not the mesh's.
func (n *node) resolve(c *cluster, in *namespace) (io.Closer, error) {
	socket, err := in.listenUDP(resolver + ":53")
	if err != nil {
		return nil, err
	}
	go func() {
		buffer := make([]byte, 1500)
		for {
			size, from, err := socket.ReadFrom(buffer)
			switch {
			case errors.Is(err, net.ErrClosed):
				return
			case err != nil:
				log.Printf("names of %s: %v", c.Name, err)
				time.Sleep(probeEvery)
			default:
				if answer := n.answer(c, buffer[:size]); answer != nil {
					_, _ = socket.WriteTo(answer, from) // who asked asks again
				}
			}
		}
	}()
	return socket, nil
}

// answer answers a question; nil if it is none.
func (n *node) answer(c *cluster, question []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(question) != nil || m.Response || len(m.Questions) != 1 {
		return nil
	}
	asked := m.Questions[0]
	m.Header = dnsmessage.Header{ID: m.ID, Response: true, RecursionDesired: m.RecursionDesired, RecursionAvailable: true}
	m.Answers, m.Authorities, m.Additionals = nil, nil, nil
	addresses, known := n.programs(c, asked.Name.String())
	if !known {
		m.RCode = dnsmessage.RCodeServerFailure
	}
	for _, address := range addresses {
		if asked.Type == dnsmessage.TypeA {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: asked.Name, Type: asked.Type, Class: asked.Class, TTL: nameLife},
				Body:   &dnsmessage.AResource{A: address.As4()},
			})
		}
	}
	answer, err := m.Pack()
	if err != nil {
		log.Printf("names of %s: %v", c.Name, err)
	}
	return answer
}

// programs are the addresses of the programs of a Service; false if a name is of no
// Service of programs.
func (n *node) programs(c *cluster, name string) (addresses []netip.Addr, known bool) {
	name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "."), ".cluster.local"), ".svc")
	service, namespace, _ := strings.Cut(name, ".")
	of, err := c.services.Services(namespace).Get(service)
	if err != nil || len(of.Spec.Selector) == 0 {
		return nil, false
	}
	selector := labels.SelectorFromSet(of.Spec.Selector)
	for _, p := range n.all() {
		if p.program == nil || p.cluster != c || p.Namespace != namespace || !selector.Matches(labels.Set(p.object().Labels)) {
			continue
		}
		if address, err := netip.ParseAddr(p.ip); err == nil && address.Is4() {
			addresses = append(addresses, address)
		}
	}
	return addresses, len(addresses) > 0
}
