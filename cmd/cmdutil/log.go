package cmdutil

import (
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/meshctl/meshctl/engine/kube"
)

// LogFlags are the flags of the log of a command that runs until it is stopped.
type LogFlags struct {
	// Level is the least level of messages, Format is text, json or auto.
	Level, Format string
}

// AddFlags adds --log-level and --log-format.
func (l *LogFlags) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&l.Level, "log-level", "info", "minimum `level` of log messages: debug, info, warn, error")
	flags.StringVar(&l.Format, "log-format", "auto", "log `format`: text, json, or auto (text on a terminal, json otherwise)")
	for name, values := range map[string][]string{"log-level": logLevels(), "log-format": logFormats()} {
		// An error here means that the flag does not exist; it was added above.
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
}

func logLevels() []string  { return []string{"debug", "info", "warn", "error"} }
func logFormats() []string { return []string{"auto", "text", "json"} }

// Logger writes to the error stream. Warnings and errors of client-go go to the same log.
func (l *LogFlags) Logger(streams *Streams) (*slog.Logger, error) {
	log, err := NewLogger(streams.Err, streams.ErrTTY, l.Level, l.Format)
	if err != nil {
		return nil, err
	}
	warnings, err := NewLogger(streams.Err, streams.ErrTTY, "warn", l.Format)
	if err != nil {
		return nil, err
	}
	klog.SetSlogLogger(warnings)
	return log, nil
}

// NewLogger writes to out, for people or for machines.
func NewLogger(out io.Writer, terminal bool, level, format string) (*slog.Logger, error) {
	options := &slog.HandlerOptions{ReplaceAttr: func(_ []string, attr slog.Attr) slog.Attr {
		if err, is := attr.Value.Any().(error); is {
			attr.Value = slog.StringValue(kube.Text(err))
		}
		return attr
	}}
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		return nil, FlagErrorf("--log-level %q: must be one of %s", level, strings.Join(logLevels(), ", "))
	}
	options.Level = least
	if format == "auto" {
		format = "json"
		if terminal {
			format = "text"
		}
	}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(out, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(out, options)), nil
	}
	return nil, FlagErrorf("--log-format %q: must be one of %s", format, strings.Join(logFormats(), ", "))
}
