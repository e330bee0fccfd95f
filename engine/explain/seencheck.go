package explain

import (
	"fmt"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// trafficCheck checks what requests do; it has no checks where nobody counts.
func trafficCheck(k *checks) CheckCategory {
	const id, counted = "traffic", "what requests do is counted"
	c := CheckCategory{Title: "Traffic"}
	s := k.index.sight
	switch {
	case s == nil:
		return c
	case s.Report == nil:
		c.info(id, counted, "not known: "+s.Unknown, "see: meshctl top --help")
		return c
	}
	read := fmt.Sprintf("%d of %s were read", s.Report.Read, snapshot.Count(s.Report.Proxies, "proxy"))
	problems := k.take(&c, func(i *snapshot.Issue) bool {
		return i.Code == snapshot.RequestsFail || i.Code == snapshot.ShiftOffWeights
	})
	switch requests := s.requests(); {
	case s.Report.Read == 0:
		c.info(id, counted, read, "see why: meshctl top workloads")
	case problems == 0:
		c.ok(id, "requests succeed, and shifts have their weights", counting(requests, "request")+" in the "+s.window()+"; "+read)
	}
	addDoors(&c, s.Report.Clusters)
	return c
}

// requests are all that callers sent.
func (s *sight) requests() (n uint64) {
	for _, row := range s.called {
		n += row.Requests
	}
	return n
}
