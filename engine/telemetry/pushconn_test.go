package telemetry

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/waittest"
)

// slow is a connection of HTTP/2 that sends parts of messages, which a client of gRPC does not.
type slow struct {
	*tls.Conn
}

// frame is one frame of HTTP/2.
func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	out := make([]byte, frameHeader, frameHeader+len(payload))
	binary.BigEndian.PutUint32(out, uint32(len(payload))<<8)
	out[3], out[4] = kind, flags
	binary.BigEndian.PutUint32(out[5:], stream)
	return append(out, payload...)
}

// begins are the headers of a stream of access logs (RFC 7541, 6.2.2: literals without indexing).
func begins(stream uint32) []byte {
	var block []byte
	for _, h := range [][2]string{
		{":method", "POST"}, {":scheme", "https"}, {":path", "/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs"}, {":authority", "agent"},
		{"content-type", "application/grpc"}, {"te", "trailers"},
	} {
		for i, text := range h {
			if i == 0 {
				block = append(block, 0)
			}
			block = append(append(block, byte(len(text))), text...)
		}
	}
	return frame(frameHeaders, 4, stream, block)
}

// dialSlow connects with a certificate.
func (p *pushing) dialSlow(t *testing.T, certificate tls.Certificate) *slow {
	t.Helper()
	conn, err := tls.Dial("tcp", p.address, &tls.Config{Certificates: []tls.Certificate{certificate}, InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	s := &slow{Conn: conn}
	require.NoError(t, conn.SetDeadline(time.Now().Add(waittest.Limit())))
	_, err = conn.Write(append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(4, 0, 0, nil)...))
	require.NoError(t, err)
	return s
}

// begin begins a message of a length on a new stream, and waits until the receiver asks for all of it.
func (s *slow) begin(stream, length uint32) error {
	header := binary.BigEndian.AppendUint32([]byte{0}, length)
	if _, err := s.Write(append(begins(stream), frame(frameData, 0, stream, header)...)); err != nil {
		return err
	}
	for {
		var head [frameHeader]byte
		if _, err := io.ReadFull(s, head[:]); err != nil {
			return err
		}
		payload := make([]byte, binary.BigEndian.Uint32(head[:])>>8)
		if _, err := io.ReadFull(s, payload); err != nil {
			return err
		}
		if head[3] == 8 && binary.BigEndian.Uint32(head[5:]) == stream { // WINDOW_UPDATE
			return nil
		}
	}
}

// TestUnendedMessages: however many streams a pod has, what they have begun and not ended is bounded, and a pod that goes on properly is served.
func TestUnendedMessages(t *testing.T) {
	t.Parallel()
	const part = 512 << 10
	p := newPushing(t, "10.0.0.1")
	certificate := p.ca.give(t, webID)
	held := func() int64 {
		p.push.mu.Lock()
		defer p.push.mu.Unlock()
		return p.push.senders[netip.MustParseAddr("10.0.0.1")].unended.Load()
	}
	most, open := int64(0), 0
	var all []*slow
	for range maxLogs / perConnection { // all streams of logs that a pod may have
		s := p.dialSlow(t, certificate)
		all = append(all, s)
		for stream := range uint32(perConnection) {
			if s.begin(2*stream+1, maxMessage) != nil {
				break
			}
			// A part of each message, in frames as large as they may be.
			sent := 0
			for ; sent < 2*part; sent += 16 << 10 {
				if _, err := s.Write(frame(frameData, 0, 2*stream+1, make([]byte, 16<<10))); err != nil {
					break
				}
			}
			if sent == 2*part {
				open++
			}
			most = max(most, held())
		}
	}
	assert.Eventually(t, func() bool { return p.push.Refused() > 0 }, waittest.Limit(), time.Millisecond, "more than the bound was sent: %d streams of 1 MiB", open)
	assert.LessOrEqual(t, most, int64(maxUnended))
	assert.LessOrEqual(t, held(), int64(maxUnended))
	assert.Greater(t, most, int64(maxUnended/2), "the bound was reached")
	for _, s := range all {
		_ = s.Close() // some are closed already
	}
	assert.Eventually(t, func() bool { return held() == 0 }, waittest.Limit(), time.Millisecond, "what has ended takes no place")
	p.local.Logs.Want([]LogRecord{failuresRecord("shop")})
	stream := p.dialLogs(t, certificate)
	message := recordedLog(t)
	require.NoError(t, stream.SendMsg(&message))
	assert.True(t, p.nextLogs(t).Open)
}

// TestMetered: however frames are cut, with padding or without, only what has begun and not ended is held.
func TestMetered(t *testing.T) {
	t.Parallel()
	message := func(length int) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(length)), make([]byte, length)...)
	}
	text := append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(4, 0, 0, make([]byte, 12))...)
	text = append(text, begins(1)...)
	text = append(text, frame(frameData, 0, 1, append(message(100), message(0)...))...)
	text = append(text, frame(frameData, 0, 1, message(300)[:155])...) // 150 are held
	text = append(text, frame(frameData, flagPadded, 3, append(append([]byte{7}, message(50)[:45]...), make([]byte, 7)...))...)
	text = append(text, frame(frameData, flagPadded|flagEnd, 5, append([]byte{2}, 0, 0, 0, 0, 9, 1, 0, 0))...)
	text = append(text, frame(frameData, 0, 7, message(90)[:80])...)
	text = append(text, frame(frameReset, 0, 7, make([]byte, 4))...)
	random := rand.New(rand.NewPCG(waittest.Seed(t), 2))
	for range 200 {
		m := &metered{from: &sender{}, preface: prefaceBytes, begun: map[uint32]*unended{}}
		for rest := text; len(rest) > 0; {
			n := 1 + random.IntN(min(len(rest), 40))
			require.NoError(t, m.follow(rest[:n]))
			rest = rest[n:]
		}
		require.Equal(t, int64(150+40), m.from.unended.Load())
	}
	for name, bad := range map[string][]byte{
		"compressed": frame(frameData, 0, 1, []byte{1, 0, 0, 0, 1, 0}),
		"too large":  frame(frameData, 0, 1, []byte{0, 255, 0, 0, 0, 0}),
	} {
		m := &metered{from: &sender{}, begun: map[uint32]*unended{}}
		assert.Error(t, m.follow(bad), name)
	}
	m, err := &metered{from: &sender{}, begun: map[uint32]*unended{}}, error(nil)
	for stream := uint32(1); err == nil && stream < 1000; stream += 2 {
		err = m.follow(frame(frameData, 0, stream, []byte{0}))
	}
	assert.ErrorContains(t, err, "of more than 16 streams")
}

// bringing is a connection that brings a text, however much of it is asked for.
type bringing struct {
	net.Conn
	text *bytes.Reader
}

// Read implements net.Conn.
func (c bringing) Read(into []byte) (int, error) { return c.text.Read(into) }

// TestReadByRecords: all of a connection is read, and no read goes beyond the end of a record of TLS.
func TestReadByRecords(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 3))
		var text, got []byte
		ends := []int{0}
		for range 20 {
			size := r.IntN(400)
			text = append(binary.BigEndian.AppendUint16(append(text, 23, 3, 3), uint16(size)), bytes.Repeat([]byte{byte(1 + size)}, size)...)
			ends = append(ends, len(text))
		}
		c := &counted{Conn: bringing{text: bytes.NewReader(text)}}
		for into := make([]byte, 1000); ; {
			n, err := c.Read(into[:1+r.IntN(len(into))])
			if err != nil {
				require.ErrorIs(t, err, io.EOF)
				break
			}
			record, _ := slices.BinarySearch(ends, len(got)+1)
			got = append(got, into[:n]...)
			require.LessOrEqual(t, len(got), ends[record], "seed %d", seed)
		}
		require.Equal(t, text, got)
	}
}

// FuzzMetered: whatever comes on a connection, nothing negative is held, and nothing once it is closed.
func FuzzMetered(f *testing.F) {
	f.Add(append(begins(1), frame(frameData, flagPadded, 1, []byte{3, 0, 0, 0, 0, 9, 1, 2, 0, 0, 0})...))
	f.Fuzz(func(t *testing.T, text []byte) {
		from := &sender{}
		m := &metered{Conn: &tls.Conn{}, from: from, begun: map[uint32]*unended{}}
		_ = m.follow(text)
		require.GreaterOrEqual(t, from.unended.Load(), int64(0))
		require.LessOrEqual(t, from.unended.Load(), int64(len(text)))
		for stream := range m.begun {
			m.end(stream)
		}
		require.Zero(t, from.unended.Load())
	})
}
