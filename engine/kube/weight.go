package kube

import (
	"bytes"
	"reflect"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// perValue is what one value of an object may take in memory, in bytes, however few bytes it has when
// encoded: an empty container of a Pod, for instance, takes 2 bytes and becomes more than 500.
const perValue = 512

// weigh estimates what a document takes in memory when it is decoded, without decoding it.
func weigh(data []byte) int64 {
	var values int
	if rest, protobuf := bytes.CutPrefix(data, []byte("k8s\x00")); protobuf { // runtime/serializer/protobuf
		values, _ = messages(rest, 0)
	} else {
		values = bytes.Count(data, []byte("{")) + bytes.Count(data, []byte("null"))
	}
	return int64(len(data)) + perValue*int64(values)
}

// deepest bounds the nesting that messages follows; types of Kubernetes nest less.
const deepest = 16

// messages counts what can be a message in a Protobuf message, and reports whether the data is one.
// Text that happens to be a valid message counts, too.
func messages(data []byte, depth int) (count int, valid bool) {
	if depth > deepest {
		return 0, false
	}
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 || !number.IsValid() {
			return 0, false
		}
		data = data[n:]
		if kind == protowire.BytesType {
			inner, n := protowire.ConsumeBytes(data)
			if n < 0 {
				return 0, false
			}
			if below, valid := messages(inner, depth+1); valid {
				count += 1 + below
			}
			data = data[n:]
			continue
		}
		if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
			return 0, false
		}
		data = data[n:]
	}
	return count, true
}

// SizeOf estimates how many bytes of memory an object takes.
func SizeOf(object any) int64 {
	if object == nil {
		return 0
	}
	return sizeOf(reflect.ValueOf(object))
}

var instant = reflect.TypeFor[time.Time]()

// sizeOf is the size of a value, and of all that it leads to.
func sizeOf(v reflect.Value) int64 {
	size := int64(v.Type().Size())
	return size + behind(v)
}

// behind is the size of what a value leads to.
func behind(v reflect.Value) (size int64) {
	if v.Kind() == reflect.Struct && v.CanAddr() && v.Addr().CanInterface() {
		if message, ok := v.Addr().Interface().(proto.Message); ok {
			return 4 * int64(proto.Size(message)) // about what its fields take when decoded
		}
	}
	switch v.Kind() {
	case reflect.String:
		return int64(v.Len())
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return sizeOf(v.Elem())
		}
	case reflect.Struct:
		if v.Type() == instant { // it leads to a time zone, which all share
			return 0
		}
		for _, field := range v.Fields() {
			size += behind(field)
		}
	case reflect.Slice:
		size = int64(v.Type().Elem().Size()) * int64(v.Cap())
		fallthrough
	case reflect.Array:
		if flat(v.Type().Elem().Kind()) {
			return size
		}
		for i := range v.Len() {
			size += behind(v.Index(i))
		}
	case reflect.Map:
		for at := v.MapRange(); at.Next(); {
			size += sizeOf(at.Key()) + sizeOf(at.Value())
		}
	default:
	}
	return size
}

// flat kinds lead to nothing.
func flat(k reflect.Kind) bool { return k <= reflect.Complex128 }
