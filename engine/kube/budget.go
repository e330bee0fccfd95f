package kube

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Budget holds one API server to its Bounds, over all Clients that share it. When the server has
// exceeded one, each request and each open answer fails with a TooMuchError, until a pause is over.
type Budget struct {
	bounds Bounds
	// answers is what is being read and decoded, in bytes.
	answers atomic.Int64
	// broken is set while the pause lasts.
	broken atomic.Pointer[TooMuchError]

	mu sync.Mutex
	// times is how often a bound was exceeded without a long time between; until is when the pause ends.
	times int
	until time.Time
	// events were counted since then.
	events int
	since  time.Time
}

// NewBudget makes a Budget; what is zero in bounds is that of DefaultBounds.
func NewBudget(bounds Bounds) *Budget { return &Budget{bounds: bounds.or(DefaultBounds())} }

// check returns an error while the pause lasts.
func (b *Budget) check() error {
	broken := b.broken.Load()
	if broken == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Now().Before(b.until) {
		return broken
	}
	b.broken.CompareAndSwap(broken, nil)
	return nil
}

// exceed begins the pause, unless it has begun, and returns the error with which requests fail.
func (b *Budget) exceed(server, what string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if broken := b.broken.Load(); broken != nil {
		return broken
	}
	now := time.Now()
	if now.Sub(b.until) > b.bounds.PauseMost {
		b.times = 0
	}
	b.times++
	b.until = now.Add(Backoff(b.bounds.Pause, b.bounds.PauseMost, b.times))
	broken := &TooMuchError{Server: strings.TrimSuffix(server, "/"), What: what}
	b.broken.Store(broken)
	return broken
}

// meter counts for a Budget what one Client reads. A nil meter counts nothing.
type meter struct {
	*Budget
	server string
	// kept is what is kept, and arrived what waits until its list is complete, and takes the place of what is kept then, in bytes.
	kept, arrived atomic.Int64
}

// hold counts what is kept; negative if it is kept no longer.
func (m *meter) hold(bytes int64) {
	if m != nil {
		m.bound(&m.kept, bytes)
	}
}

// arrive counts what waits until its list is complete; negative if it does no longer.
func (m *meter) arrive(bytes int64) { m.bound(&m.arrived, bytes) }

func (m *meter) bound(of *atomic.Int64, bytes int64) {
	if of.Add(bytes) <= m.bounds.Kept || bytes <= 0 {
		return
	}
	_ = m.exceed(m.server, fmt.Sprintf("its objects take more than the %s of memory that one cluster may have; remove what is not needed there, or raise the memory limit of meshctl", mebibytes(m.bounds.Kept)))
}

// event counts an event of a watch.
func (m *meter) event() {
	if m == nil {
		return
	}
	m.mu.Lock()
	if now := time.Now(); now.Sub(m.since) > EventsPeriod {
		m.since, m.events = now, 0
	}
	m.events++
	tooMany := m.events > m.bounds.Events
	if tooMany {
		m.events = 0
	}
	m.mu.Unlock()
	if tooMany {
		_ = m.exceed(m.server, fmt.Sprintf("more than %d changes within %s; find out what changes its objects", m.bounds.Events, EventsPeriod))
	}
}

// answer counts bytes that are being read or decoded; negative if that is over.
func (m *meter) answer(bytes int64) error {
	if m.answers.Add(bytes) <= m.bounds.Answers || bytes <= 0 {
		return nil
	}
	return m.exceed(m.server, fmt.Sprintf("its answers take more than %s of memory at once; find out what is so large there, or raise the memory limit of meshctl", mebibytes(m.bounds.Answers)))
}

func mebibytes(n int64) string { return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20)) }

// metered counts the bodies of answers.
type metered struct {
	*meter
	base http.RoundTripper
}

// Metered returns a transport whose answers a Budget bounds, for clients that are no Client.
func Metered(base http.RoundTripper, server string, budget *Budget) http.RoundTripper {
	return &metered{&meter{Budget: budget, server: server}, base}
}

// RoundTrip implements http.RoundTripper.
func (t *metered) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	response, err := t.base.RoundTrip(request)
	if err != nil {
		return nil, err // a RoundTripper returns the error of the transport
	}
	// Of a watch, the events are counted (events), and they are read one by one.
	stream := request.URL.Query().Has("watch") && response.StatusCode == http.StatusOK
	response.Body = &meteredBody{ReadCloser: response.Body, meter: t.meter, stream: stream}
	return response, nil
}

// WrappedRoundTripper lets client-go find the transport, to close idle connections.
func (t *metered) WrappedRoundTripper() http.RoundTripper { return t.base }

// meteredBody fails where too much is sent, while it is being read.
type meteredBody struct {
	io.ReadCloser
	*meter
	stream bool
	read   atomic.Int64
}

// Read implements io.Reader.
func (b *meteredBody) Read(p []byte) (int, error) {
	if err := b.check(); err != nil {
		return 0, err
	}
	n, err := b.ReadCloser.Read(p)
	if !b.stream {
		b.read.Add(int64(n))
		if tooMuch := b.answer(int64(n)); tooMuch != nil {
			return 0, tooMuch
		}
	}
	return n, err //nolint:wrapcheck // a reader
}

// Close implements io.Closer.
func (b *meteredBody) Close() error {
	_ = b.answer(-b.read.Swap(0))
	return b.ReadCloser.Close() //nolint:wrapcheck // a closer
}

// meteredSerializer counts what is decoded, before it takes memory.
type meteredSerializer struct {
	runtime.NegotiatedSerializer
	*meter
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (s meteredSerializer) SupportedMediaTypes() []runtime.SerializerInfo {
	var out []runtime.SerializerInfo
	for _, info := range s.NegotiatedSerializer.SupportedMediaTypes() {
		if info.StreamSerializer != nil {
			stream := *info.StreamSerializer
			stream.Framer = meteredFramer{stream.Framer, s.meter}
			info.StreamSerializer = &stream
		}
		out = append(out, info)
	}
	return out
}

// DecoderToVersion implements runtime.NegotiatedSerializer.
func (s meteredSerializer) DecoderToVersion(d runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	return meteredDecoder{s.NegotiatedSerializer.DecoderToVersion(d, gv), s.meter}
}

type meteredDecoder struct {
	runtime.Decoder
	*meter
}

// Decode implements runtime.Decoder.
func (d meteredDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	weight := weigh(data)
	defer func() { _ = d.answer(-weight) }()
	if err := d.answer(weight); err != nil {
		return nil, nil, err
	}
	return d.Decoder.Decode(data, defaults, into) //nolint:wrapcheck // a decoder
}

// meteredFramer bounds each event of a watch: package framer reads one whole.
type meteredFramer struct {
	runtime.Framer
	*meter
}

// NewFrameReader implements runtime.Framer.
func (f meteredFramer) NewFrameReader(r io.ReadCloser) io.ReadCloser {
	in := &eventReader{ReadCloser: r, meter: f.meter}
	return &frameReader{f.Framer.NewFrameReader(in), in}
}

// eventReader counts what was read since the last event was complete.
type eventReader struct {
	io.ReadCloser
	*meter
	read int
}

func (r *eventReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if r.read += n; r.read > maxEvent {
		return 0, r.exceed(r.server, fmt.Sprintf("one change has more than %s, which no object of Kubernetes has", mebibytes(maxEvent)))
	}
	return n, err //nolint:wrapcheck // a reader
}

type frameReader struct {
	io.ReadCloser
	in *eventReader
}

func (r *frameReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err == nil { // the frame is complete
		r.in.read = 0
	}
	return n, err //nolint:wrapcheck // package streaming knows io.ErrShortBuffer
}
