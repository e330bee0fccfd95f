package accesslog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Bounds of a message, which is a proxy's.
const (
	// maxEntries bounds the entries of one message: Envoy flushes its buffer at 16 KiB.
	maxEntries = 20_000
	// maxHeaders bounds the headers of one kind in an entry.
	maxHeaders = 64
)

// errMessage is about bytes that are no message.
var errMessage = errors.New("a message that is none of Envoy's access log service")

// Message is one message of a stream of envoy.service.accesslog.v3. It is read by the numbers of its fields and not by the types of
// Envoy's API, which would need all of Envoy's configuration in the binary.
type Message struct {
	// Node is the ID of the proxy, and LogName that of the log; only the first message of a stream has them.
	Node, LogName string
	// HTTP are the requests. TCP counts the connections that were logged, which no AccessLogRecord asks for.
	HTTP []HTTP
	TCP  int
}

// Read reads a message. Secrets are still in what it returns: see HTTP.Redact.
func Read(text []byte) (*Message, error) {
	m := &Message{}
	err := fields(text, func(f field) error {
		switch f.number {
		case 1: // identifier
			return fields(f.bytes, func(f field) error {
				switch f.number {
				case 1: // node
					return fields(f.bytes, func(f field) error {
						if f.number == 1 {
							m.Node = string(f.bytes)
						}
						return nil
					})
				case 2:
					m.LogName = string(f.bytes)
				}
				return nil
			})
		case 2: // http_logs
			return fields(f.bytes, func(f field) error {
				if f.number != 1 || f.kind != protowire.BytesType {
					return nil
				}
				if len(m.HTTP) >= maxEntries {
					return fmt.Errorf("a message with more than %d entries", maxEntries)
				}
				entry, err := readHTTP(f.bytes)
				m.HTTP = append(m.HTTP, entry)
				return err
			})
		case 3: // tcp_logs
			return fields(f.bytes, func(f field) error {
				if f.number == 1 {
					m.TCP++
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// protocols and methods are those of the enumerations HTTPAccessLogEntry.HTTPVersion and envoy.config.core.v3.RequestMethod, by number.
var (
	protocols = []string{"", "HTTP10", "HTTP11", "HTTP2", "HTTP3"}
	methods   = []string{"", "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}
)

func nameOf(names []string, n uint64) string {
	if n < uint64(len(names)) {
		return names[n]
	}
	return ""
}

func readHTTP(text []byte) (out HTTP, err error) {
	err = fields(text, func(f field) error {
		switch f.number {
		case 1:
			return out.Common.read(f.bytes)
		case 2:
			out.ProtocolVersion = nameOf(protocols, f.varint)
		case 3:
			return out.Request.read(f.bytes)
		case 4:
			return out.Response.read(f.bytes)
		}
		return nil
	})
	return out, err
}

// read reads an AccessLogCommon.
func (c *Common) read(text []byte) error {
	return fields(text, func(f field) (err error) {
		switch f.number {
		case 2:
			c.DownstreamRemoteAddress, err = readAddress(f.bytes)
		case 3:
			c.DownstreamLocalAddress, err = readAddress(f.bytes)
		case 4:
			c.PeerIdentity, err = readPeer(f.bytes)
		case 5:
			var seconds, nanos int64
			if seconds, nanos, err = readTime(f.bytes); err == nil {
				c.StartTime = time.Unix(seconds, nanos).UTC()
			}
		case 12: // time_to_last_downstream_tx_byte
			var seconds, nanos int64
			if seconds, nanos, err = readTime(f.bytes); err == nil {
				c.Took = fmt.Sprintf("%d.%06ds", seconds, nanos/1e3)
			}
		case 13:
			c.UpstreamRemoteAddress, err = readAddress(f.bytes)
		case 15:
			c.UpstreamCluster = string(f.bytes)
		case 16:
			c.Flags, err = readFlags(f.bytes)
		case 18:
			c.UpstreamTransportFailureReason = string(f.bytes)
		case 19:
			c.RouteName = string(f.bytes)
		case 24:
			c.UpstreamRequestAttemptCount = f.varint
		}
		return err
	})
}

// read reads an HTTPRequestProperties.
func (q *Request) read(text []byte) error {
	return fields(text, func(f field) error {
		switch f.number {
		case 1:
			q.RequestMethod = nameOf(methods, f.varint)
		case 2:
			q.Scheme = string(f.bytes)
		case 3:
			q.Authority = string(f.bytes)
		case 5:
			q.Path = string(f.bytes)
		case 6:
			q.UserAgent = string(f.bytes)
		case 7:
			q.Referer = string(f.bytes)
		case 8:
			q.ForwardedFor = string(f.bytes)
		case 9:
			q.RequestID = string(f.bytes)
		case 10:
			q.OriginalPath = string(f.bytes)
		case 12:
			q.BodyBytes = f.varint
		case 13:
			return readHeader(&q.Headers, f.bytes)
		}
		return nil
	})
}

// read reads an HTTPResponseProperties.
func (r *Response) read(text []byte) error {
	return fields(text, func(f field) error {
		switch f.number {
		case 1: // a UInt32Value
			return fields(f.bytes, func(f field) error {
				if f.number == 1 {
					r.ResponseCode = uint32(min(f.varint, 999))
				}
				return nil
			})
		case 3:
			r.BodyBytes = f.varint
		case 4:
			return readHeader(&r.Headers, f.bytes)
		case 5:
			return readHeader(&r.Trailers, f.bytes)
		case 6:
			r.ResponseCodeDetails = string(f.bytes)
		}
		return nil
	})
}

// flags are the short names of the fields of ResponseFlags (envoyproxy.io: access logs, RESPONSE_FLAGS), by number.
var flags = []string{
	1: "LH", 2: "UH", 3: "UT", 4: "LR", 5: "UR", 6: "UF", 7: "UC", 8: "UO", 9: "NR", 10: "DI", 11: "FI", 12: "RL", 13: "UAEX", 14: "RLSE",
	15: "DC", 16: "URX", 17: "SI", 18: "IH", 19: "DPE", 20: "UMSDR", 21: "RFCF", 22: "NFCF", 23: "DT", 24: "UPE", 25: "NC", 26: "OM", 27: "DF", 28: "DR",
}

func readFlags(text []byte) (out []string, err error) {
	err = fields(text, func(f field) error {
		set := f.kind == protowire.BytesType || f.varint != 0 // unauthorized_details is a message
		if name := nameOf(flags, uint64(f.number)); set && name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
		return nil
	})
	slices.Sort(out)
	return out, err
}

// readAddress reads an envoy.config.core.v3.Address that is a SocketAddress; others are left out.
func readAddress(text []byte) (*Address, error) {
	out := &Address{}
	err := fields(text, func(f field) error {
		if f.number != 1 {
			return nil
		}
		return fields(f.bytes, func(f field) error {
			switch f.number {
			case 2:
				out.SocketAddress.Address = string(f.bytes)
			case 3:
				out.SocketAddress.PortValue = uint32(min(f.varint, 1<<16-1))
			}
			return nil
		})
	})
	if out.SocketAddress.Address == "" || err != nil {
		return nil, err
	}
	return out, nil
}

// readPeer is the first URI in the certificate of the other side, of TLSProperties.
func readPeer(text []byte) (out string, err error) {
	err = fields(text, func(f field) error {
		if f.number != 5 { // peer_certificate_properties
			return nil
		}
		return fields(f.bytes, func(f field) error {
			if f.number != 1 { // subject_alt_name
				return nil
			}
			return fields(f.bytes, func(f field) error {
				if f.number == 1 && out == "" {
					out = string(f.bytes)
				}
				return nil
			})
		})
	})
	return out, err
}

// readTime reads a Timestamp or a Duration.
func readTime(text []byte) (seconds, nanos int64, err error) {
	err = fields(text, func(f field) error {
		switch f.number {
		case 1:
			seconds = int64(f.varint)
		case 2:
			nanos = int64(f.varint)
		}
		return nil
	})
	if seconds < 0 || seconds > 1<<34 || nanos < 0 || nanos >= 1e9 { // after the year 2500
		return 0, 0, err
	}
	return seconds, nanos, err
}

// readHeader adds an entry of a map of texts.
func readHeader(to *map[string]string, text []byte) error {
	var name, value string
	if err := fields(text, func(f field) error {
		switch f.number {
		case 1:
			name = strings.ToLower(string(f.bytes))
		case 2:
			value = string(f.bytes)
		}
		return nil
	}); err != nil {
		return err
	}
	if *to == nil {
		*to = map[string]string{}
	}
	if len(*to) < maxHeaders {
		(*to)[name] = value
	}
	return nil
}

// field is one of a message: bytes if it has a length, varint if it is one.
type field struct {
	number protowire.Number
	kind   protowire.Type
	bytes  []byte
	varint uint64
}

// fields calls a function with each field of a message.
func fields(text []byte, take func(field) error) error {
	for len(text) > 0 {
		number, kind, n := protowire.ConsumeTag(text)
		if n < 0 {
			return errMessage
		}
		text = text[n:]
		f := field{number: number, kind: kind}
		switch kind {
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(text)
		case protowire.VarintType:
			f.varint, n = protowire.ConsumeVarint(text)
		case protowire.Fixed32Type, protowire.Fixed64Type, protowire.StartGroupType, protowire.EndGroupType:
			n = protowire.ConsumeFieldValue(number, kind, text)
		default:
			return errMessage
		}
		if n < 0 {
			return errMessage
		}
		text = text[n:]
		if err := take(f); err != nil {
			return err
		}
	}
	return nil
}
