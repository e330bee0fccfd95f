package telemetry

import (
	"errors"
	"fmt"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/meshctl/meshctl/engine/traffic"
)

// maxFamilies bounds the statistics of one message, and usualFamily is how many bytes of it one usually takes.
const (
	maxFamilies = 20_000
	usualFamily = 100
)

// pushed is a message of Envoy's metrics service. It is read here and not by the types of Envoy's API, which would need all of
// Envoy's configuration in the binary for two fields.
type pushed struct {
	// node is the ID of the proxy, and metadata what else it says of itself, as a google.protobuf.Struct; both in the first message of a stream.
	node     string
	metadata []byte
	// at is the time of the numbers, in milliseconds since 1970 by the proxy's clock.
	at      int64
	metrics []traffic.Metric
}

// Numbers of fields of envoy.service.metrics.v3.StreamMetricsMessage, its Identifier, and envoy.config.core.v3.Node.
const (
	fieldIdentifier, fieldMetrics = 1, 2
	fieldNode                     = 1
	fieldID, fieldMetadata        = 1, 3
)

// read reads a message.
func (p *pushed) read(text []byte) error {
	families := 0
	p.metrics = make([]traffic.Metric, 0, min(len(text)/usualFamily, maxFamilies))
	return fields(text, func(field protowire.Number, value []byte) error {
		switch field {
		case fieldIdentifier:
			return fields(value, func(field protowire.Number, value []byte) error {
				if field != fieldNode {
					return nil
				}
				return fields(value, func(field protowire.Number, value []byte) error {
					switch field {
					case fieldID:
						p.node = string(value)
					case fieldMetadata:
						p.metadata = value
					}
					return nil
				})
			})
		case fieldMetrics:
			if families++; families > maxFamilies {
				return fmt.Errorf("a message with more than %d statistics", maxFamilies)
			}
			return p.family(value)
		}
		return nil
	})
}

// family takes the numbers of one statistic. Histograms come twice, the second time as a summary, which is left out.
func (p *pushed) family(text []byte) error {
	var f dto.MetricFamily
	if err := proto.Unmarshal(text, &f); err != nil {
		return errors.New("a message with a statistic that cannot be read")
	}
	for _, m := range f.GetMetric() {
		out := traffic.Metric{Name: f.GetName()}
		switch f.GetType() {
		case dto.MetricType_COUNTER:
			out.Value = m.GetCounter().GetValue()
		case dto.MetricType_GAUGE:
			out.Value = m.GetGauge().GetValue()
		case dto.MetricType_HISTOGRAM:
			out.Count, out.Buckets = m.GetHistogram().GetSampleCount(), map[float64]uint64{}
			for _, b := range m.GetHistogram().GetBucket() {
				out.Buckets[b.GetUpperBound()] = b.GetCumulativeCount()
			}
		case dto.MetricType_SUMMARY, dto.MetricType_UNTYPED, dto.MetricType_GAUGE_HISTOGRAM:
			continue
		default:
			continue
		}
		for _, l := range m.GetLabel() {
			if out.Labels == nil {
				out.Labels = map[string]string{}
			}
			out.Labels[l.GetName()] = l.GetValue()
		}
		p.at = max(p.at, m.GetTimestampMs())
		p.metrics = append(p.metrics, out)
	}
	return nil
}

// fields calls a function with each field that has a length, and leaves others out.
func fields(text []byte, take func(field protowire.Number, value []byte) error) error {
	for len(text) > 0 {
		field, kind, n := protowire.ConsumeTag(text)
		if n < 0 {
			return errors.New("a message that is none of Envoy's metrics service")
		}
		text = text[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(field, kind, text); n < 0 {
				return errors.New("a message that is none of Envoy's metrics service")
			}
			text = text[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(text)
		if n < 0 {
			return errors.New("a message that is none of Envoy's metrics service")
		}
		if err := take(field, value); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

// doorCodec takes the messages of proxies as they are: they are read if they are taken. Nothing is sent to proxies.
type doorCodec struct{}

// Name implements encoding.CodecV2.
func (doorCodec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (doorCodec) Marshal(any) (mem.BufferSlice, error) { return nil, nil }

// Unmarshal implements encoding.CodecV2.
func (doorCodec) Unmarshal(data mem.BufferSlice, v any) error {
	into, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("a message into %T", v)
	}
	*into = data.Materialize()
	return nil
}
