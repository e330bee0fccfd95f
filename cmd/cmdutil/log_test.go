package cmdutil

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLogger(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log, err := NewLogger(&out, false, "warn", "auto")
	require.NoError(t, err)
	log.Info("unheard")
	log.Warn("heard", "cluster", "west")
	var line map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &line), "elsewhere than on a terminal it is one line of JSON")
	assert.Equal(t, "west", line["cluster"])

	out.Reset()
	log, err = NewLogger(&out, true, "debug", "auto")
	require.NoError(t, err)
	log.Debug("heard")
	assert.Contains(t, out.String(), "level=DEBUG msg=heard")
}

func TestLoggerNamesWrongFlags(t *testing.T) {
	t.Parallel()
	streams, _, _, _ := TestStreams()
	var flag *FlagError
	_, err := (&LogFlags{Level: "loud", Format: "auto"}).Logger(streams)
	require.ErrorAs(t, err, &flag)
	require.ErrorContains(t, flag, "debug, info, warn, error")
	_, err = (&LogFlags{Level: "info", Format: "xml"}).Logger(streams)
	require.ErrorAs(t, err, &flag)
	require.ErrorContains(t, flag, "auto, text, json")
}
