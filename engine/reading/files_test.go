package reading_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/reading"
)

// TestManyMistakesInAFolder: the first are told, and the others counted.
func TestManyMistakesInAFolder(t *testing.T) {
	t.Parallel()
	for mistakes, want := range map[int]int{1: 2, 10: 11, 11: 12, 500: 12} {
		dir := t.TempDir()
		for i := range mistakes {
			folder := filepath.Join(dir, fmt.Sprintf("cluster-%d", i%3))
			require.NoError(t, os.MkdirAll(folder, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d.yaml", i)), []byte("apiVersion: v1\nkind: Service\nmetadata: {nme: x}\n"), 0o600))
		}
		_, err := reading.Folder(dir)
		require.Error(t, err)
		assert.Len(t, strings.Split(err.Error(), "\n"), want, "%d mistakes: %v", mistakes, err)
		if mistakes > 10 {
			assert.Contains(t, err.Error(), fmt.Sprintf("\nand %d more; ", mistakes-10))
		}
	}
}
