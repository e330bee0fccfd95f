package telemetry

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"google.golang.org/grpc/credentials"
)

// This file bounds what the messages take that a pod has begun to send and not ended. gRPC bounds each message, and knows nothing of the
// streams of others: what all streams of a pod together may have is counted here, where the connections of the pod are read.

const (
	// maxUnended is how many bytes of messages that have not ended all streams of one address may have: two of the largest messages.
	maxUnended = 2 * maxMessage
	// maxBegun is how many streams with something of a message one connection may have: more than may be open, as ends and begins cross.
	maxBegun = 16
	// windowBytes are those that one stream may send before they are asked for; gRPC asks for the rest of a message once it has begun.
	// windowOfAll are those of a connection.
	windowBytes, windowOfAll = 64 << 10, 1 << 20
	// bufferBytes are those of each of the two buffers of a connection, of which there may be a thousand: gRPC takes 32 KiB for each. What is read
	// has been taken out of TLS in larger pieces, and nothing but acknowledgements is sent.
	bufferBytes = 1 << 10
	// maxHeaders bounds the headers of a request, in bytes: a proxy sends about ten.
	maxHeaders = 16 << 10
)

// metering is TLS whose connections count what they bring.
type metering struct {
	credentials.TransportCredentials
	push *Push
}

// ServerHandshake implements credentials.TransportCredentials.
func (m metering) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	known, ok := raw.(*counted)
	if !ok {
		return nil, nil, errors.New("a connection that was not accepted here")
	}
	conn, info, err := m.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		m.push.local.refuse(fmt.Errorf("%s: it has no certificate of the mesh, or does not take that of the agent: %w", raw.RemoteAddr(), err))
		return nil, nil, err
	}
	return &metered{Conn: conn, from: known.from, refuse: m.push.local.refuse, preface: prefaceBytes, begun: map[uint32]*unended{}}, info, nil
}

// Clone implements credentials.TransportCredentials.
func (m metering) Clone() credentials.TransportCredentials {
	return metering{m.TransportCredentials.Clone(), m.push}
}

// HTTP/2, RFC 9113, sections 3.4, 4.1 and 6: what a client begins with, a frame's header, and the types and flags of frames that are looked at.
const (
	prefaceBytes = 24
	frameHeader  = 9
	frameData    = 0
	frameHeaders = 1
	frameReset   = 3
	flagEnd      = 1
	flagPadded   = 8
)

// messageHeader is how many bytes are before each message of gRPC: whether it is compressed, and its length.
const messageHeader = 5

// metered is a connection of a proxy, of which the frames are followed that have parts of messages.
type metered struct {
	net.Conn
	from   *sender
	refuse func(why error)

	mu     sync.Mutex // guards what follows
	closed bool
	// preface is what is left of the client's preface.
	preface int
	// header is that of the current frame, of which headed bytes came. rest is what is left of its payload, and padding what of that is none
	// of its data; unpadded says that its length of padding has come.
	header        [frameHeader]byte
	headed        int
	rest, padding int
	unpadded      bool
	begun         map[uint32]*unended
}

// unended is a message that has begun: its header, of which so many bytes came, and then how many bytes came, and how many are left.
type unended struct {
	header     [messageHeader]byte
	headed     int
	came, left int
}

// Read implements net.Conn. An error ends the connection with all its streams.
func (m *metered) Read(into []byte) (int, error) {
	n, err := m.Conn.Read(into)
	if n > 0 {
		if over := m.follow(into[:n]); over != nil {
			over = fmt.Errorf("%s: %w", m.RemoteAddr(), over)
			m.refuse(over)
			return 0, over
		}
	}
	return n, err
}

// Close implements net.Conn.
func (m *metered) Close() error {
	m.mu.Lock()
	m.closed = true
	for stream := range m.begun {
		m.end(stream)
	}
	m.mu.Unlock()
	return m.Conn.Close()
}

// follow looks at what came.
func (m *metered) follow(text []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return io.ErrClosedPipe
	}
	n := min(m.preface, len(text))
	m.preface -= n
	for text = text[n:]; len(text) > 0; text = text[n:] {
		if m.headed < frameHeader {
			n = copy(m.header[m.headed:], text)
			if m.headed += n; m.headed == frameHeader {
				m.rest, m.padding, m.unpadded = int(m.header[0])<<16|int(m.header[1])<<8|int(m.header[2]), 0, false
			}
		} else {
			n = min(m.rest, len(text))
			used, err := m.payload(text[:n])
			if err != nil {
				return err
			}
			n = used
			m.rest -= n
		}
		if m.headed == frameHeader && m.rest == 0 {
			m.ended()
		}
	}
	return nil
}

// hold notes bytes of messages that have not ended; false if they are too many.
func (s *sender) hold(n int) bool {
	for {
		now := s.unended.Load()
		if now+int64(n) > maxUnended {
			return false
		}
		if s.unended.CompareAndSwap(now, now+int64(n)) {
			return true
		}
	}
}

// stream is the one of the current frame.
func (m *metered) stream() uint32 { return binary.BigEndian.Uint32(m.header[5:]) & (1<<31 - 1) }

// ended ends a frame, and what it ends.
func (m *metered) ended() {
	m.headed = 0
	switch kind, flags := m.header[3], m.header[4]; {
	case kind == frameReset, (kind == frameData || kind == frameHeaders) && flags&flagEnd != 0:
		m.end(m.stream())
	}
}

// end forgets what a stream has sent of a message.
func (m *metered) end(stream uint32) {
	if u := m.begun[stream]; u != nil {
		m.from.unended.Add(-int64(u.came))
		delete(m.begun, stream)
	}
}

// payload takes a part of the payload of the current frame, and returns how many bytes of it.
func (m *metered) payload(text []byte) (int, error) {
	if m.header[3] != frameData {
		return len(text), nil
	}
	if m.header[4]&flagPadded != 0 && !m.unpadded {
		m.unpadded, m.padding = true, int(text[0])
		return 1, nil
	}
	data := text[:min(len(text), max(m.rest-m.padding, 0))]
	if len(data) == 0 {
		return len(text), nil
	}
	return len(data), m.data(m.stream(), data)
}

// data takes what a stream sends of messages.
func (m *metered) data(stream uint32, data []byte) error {
	u := m.begun[stream]
	if u == nil {
		if len(m.begun) >= maxBegun {
			return fmt.Errorf("a connection with messages of more than %d streams", maxBegun)
		}
		u = &unended{}
		m.begun[stream] = u
	}
	for len(data) > 0 {
		if u.headed < messageHeader {
			n := copy(u.header[u.headed:], data)
			u.headed, data = u.headed+n, data[n:]
			if u.headed < messageHeader {
				return nil
			}
			if u.header[0] != 0 {
				return errors.New("a message that is compressed; proxies do not compress theirs")
			}
			length := binary.BigEndian.Uint32(u.header[1:])
			if length > maxMessage {
				return fmt.Errorf("a message of %d bytes; more than %d are not taken", length, maxMessage)
			}
			u.came, u.left = 0, int(length)
		}
		n := min(u.left, len(data))
		if !m.from.hold(n) {
			return fmt.Errorf("more than %d bytes of messages that have not ended; a pod may not have more", maxUnended)
		}
		u.came, u.left, data = u.came+n, u.left-n, data[n:]
		if u.left == 0 {
			m.from.unended.Add(-int64(u.came))
			u.headed, u.came = 0, 0
		}
	}
	return nil
}
