package telemetry

import (
	"hash/fnv"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// readPages reads a proxy, whose pages get gets: the one with what was used, and if it is not known yet whether the proxy counts, the one
// that says so without any request.
func readPages(stats *snapshot.ProxyStats, counts bool, get func(path string) ([]byte, error)) (reading *traffic.Reading, at time.Time, err error) {
	read := func(path string) (*traffic.Reading, error) {
		text, err := get(path)
		if err != nil {
			return nil, err
		}
		return traffic.Read(text, stats)
	}
	reading, err = read(stats.Path)
	at = time.Now()
	if err == nil && !reading.Counts() && !counts {
		var unused *traffic.Reading
		if unused, err = read(stats.Unused); err == nil {
			reading.Beside(unused)
		}
	}
	return reading, at, err
}

// offset is when in a round a proxy is read: always at the same time, so that its readings are as far apart as rounds are, and in a third of
// the round, so that not all are asked at once.
func offset(p traffic.Proxy, every time.Duration) time.Duration {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(p.Cluster + "/" + p.Namespace + "/" + p.Pod))
	return time.Duration(hash.Sum32()%1000) * every / 3000
}
