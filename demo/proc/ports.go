package proc

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// The ports stay below the range from which systems take the near end of
// outgoing connections (32768 on Linux, 49152 elsewhere), and below NodePorts:
// otherwise a component that is restarted could find its port in use.
const (
	firstPort = 20000
	lastPort  = 29999
)

// FreePorts returns n different ports of 127.0.0.1 on which nobody listens. All
// are held until the last is found, so that they differ.
func FreePorts(n int) ([]int, error) {
	return freePorts(n, func(port int) (net.Listener, error) {
		return net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	})
}

func freePorts(n int, listen func(port int) (net.Listener, error)) ([]int, error) {
	held := make([]net.Listener, 0, n)
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	ports := make([]int, 0, n)
	for tries := 0; len(ports) < n; tries++ {
		if tries > 100*(n+1) {
			return nil, fmt.Errorf("ports %d-%d of 127.0.0.1: found %d free of %d wanted; end what listens there", firstPort, lastPort, len(ports), n)
		}
		// Random, so that two demos that start together do not meet.
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		l, err := listen(port)
		if err != nil {
			continue
		}
		held = append(held, l)
		ports = append(ports, port)
	}
	return ports, nil
}
