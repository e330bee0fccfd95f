package agent

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Disk stores what stands in a cluster, for the next start of an agent without a hub.
type Disk interface {
	// Save stores documents, and the generation that they are of.
	Save(ctx context.Context, generation uint64, documents [][]byte) error
	// Load returns those that were stored last; none if there are none. What is damaged is an error.
	Load(ctx context.Context) ([][]byte, error)
	// Drop removes all that was stored.
	Drop(ctx context.Context) error
}

// ConfigMaps is a Disk of ConfigMaps in the agent's namespace, which are named snapshot.RelayOutputPrefix and a number.
type ConfigMaps struct {
	Client    kube.Clientset
	Namespace string
}

const (
	// piece is the most that is in one ConfigMap, in bytes: API servers take 1 MiB of each.
	piece = 900 << 10
	// maxStored bounds what is unpacked.
	maxStored = 64 << 20
	// dataKey has a piece. The first ConfigMap has the annotations, too: how many pieces there are, and the digest of all.
	dataKey       = "output"
	countNote     = "relay.meshctl.io/pieces"
	digestNote    = "relay.meshctl.io/digest"
	generatedNote = "relay.meshctl.io/generation"
)

func pieceName(n int) string { return snapshot.RelayOutputName(n) }

// Save implements Disk. The first piece is written last, so that what is stored is all of one time, or damaged.
func (d ConfigMaps) Save(ctx context.Context, generation uint64, documents [][]byte) error {
	packed, err := pack(documents)
	if err != nil {
		return err
	}
	pieces := slices.Collect(slices.Chunk(packed, piece))
	for n, part := range slices.Backward(pieces) {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: pieceName(n)}, BinaryData: map[string][]byte{dataKey: part}}
		if n == 0 {
			o.Annotations = map[string]string{countNote: strconv.Itoa(len(pieces)), digestNote: digestOf(packed), generatedNote: strconv.FormatUint(generation, 10)}
		}
		if err := d.write(ctx, o); err != nil {
			return fmt.Errorf("ConfigMap %s/%s: %w", d.Namespace, o.Name, err)
		}
	}
	return d.trim(ctx, len(pieces))
}

func (d ConfigMaps) write(ctx context.Context, o *corev1.ConfigMap) error {
	maps := d.Client.CoreV1().ConfigMaps(d.Namespace)
	_, err := maps.Update(ctx, o, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = maps.Create(ctx, o, metav1.CreateOptions{})
	}
	return err
}

// trim deletes the pieces that are left from more.
func (d ConfigMaps) trim(ctx context.Context, from int) error {
	for n := from; ; n++ {
		err := d.Client.CoreV1().ConfigMaps(d.Namespace).Delete(ctx, pieceName(n), metav1.DeleteOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("ConfigMap %s/%s: %w", d.Namespace, pieceName(n), err)
		}
	}
}

// Drop implements Disk.
func (d ConfigMaps) Drop(ctx context.Context) error { return d.trim(ctx, 0) }

// Load implements Disk.
func (d ConfigMaps) Load(ctx context.Context) ([][]byte, error) {
	var packed []byte
	count, digest := 1, ""
	for n := 0; n < count; n++ {
		o, err := d.Client.CoreV1().ConfigMaps(d.Namespace).Get(ctx, pieceName(n), metav1.GetOptions{})
		if apierrors.IsNotFound(err) && n == 0 {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("ConfigMap %s/%s: %w", d.Namespace, pieceName(n), err)
		}
		if n == 0 {
			digest = o.Annotations[digestNote]
			if count, err = strconv.Atoi(o.Annotations[countNote]); err != nil || count < 1 {
				return nil, fmt.Errorf("ConfigMap %s/%s: it does not say how many there are", d.Namespace, o.Name)
			}
		}
		if packed = append(packed, o.BinaryData[dataKey]...); len(packed) > maxStored {
			return nil, fmt.Errorf("ConfigMap %s/%s: it is too large", d.Namespace, o.Name)
		}
	}
	if digestOf(packed) != digest {
		return nil, fmt.Errorf("ConfigMaps %s/%s*: they are damaged, or of different times", d.Namespace, snapshot.RelayOutputPrefix)
	}
	return unpack(packed)
}

func digestOf(packed []byte) string {
	sum := sha256.Sum256(packed)
	return hex.EncodeToString(sum[:])
}

// pack compresses documents, which have a line each.
func pack(documents [][]byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	for _, document := range documents {
		if _, err := w.Write(append(slices.Clone(document), '\n')); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// unpack reads what pack has written.
func unpack(packed []byte) ([][]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(r, maxStored+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxStored {
		return nil, errors.New("it is too large")
	}
	var out [][]byte
	for line := range strings.Lines(string(text)) {
		if !json.Valid([]byte(line)) {
			return nil, errors.New("a line of it is no JSON")
		}
		out = append(out, []byte(strings.TrimSuffix(line, "\n")))
	}
	return out, nil
}
