package agent

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// FuzzUnpack: what is stored may be damaged in any way.
func FuzzUnpack(f *testing.F) {
	packed, err := pack([][]byte{[]byte(`{"kind":"a"}`), []byte(`{}`)})
	require.NoError(f, err)
	f.Add(packed)
	f.Fuzz(func(t *testing.T, raw []byte) {
		documents, err := unpack(raw)
		if err != nil {
			return
		}
		again, err := pack(documents)
		require.NoError(t, err)
		back, err := unpack(again)
		require.NoError(t, err)
		assert.Equal(t, documents, back)
	})
}
