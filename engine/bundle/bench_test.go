package bundle

import (
	"strings"
	"testing"
)

// BenchmarkRedact redacts a log of a MiB, in which every tenth line has what a rule looks for.
func BenchmarkRedact(b *testing.B) {
	line := `{"time":"2026-11-28T00:42:00.106725697Z","level":"INFO","msg":"translated","cause":"start","took":26299756,"parts":2,"computed":2,"statuses":4,"issues":1}` + "\n"
	other := `{"time":"2026-11-28T00:42:00.106725697Z","level":"INFO","msg":"renewed","cluster":"cluster-1","token":"` + jwt + `"}` + "\n"
	text := []byte(strings.Repeat(strings.Repeat(line, 9)+other, 700))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Redact(text)
	}
}
