// Package quiet keeps the terminal libraries from talking to the terminal of
// commands that have no use for them.
//
// Bubble Tea asks the terminal for its background colour as the program starts,
// before any command is chosen, and waits for seconds where nothing answers. It
// does not ask a dumb terminal. This package says that the terminal is dumb
// until the libraries have started, and Restore takes it back.
//
// That it comes first is the order of the language: of packages whose imports
// are ready, the one whose path sorts first is initialized first, and this one
// needs package os only, while github.com/muesli/termenv, which sorts after it,
// needs os, too. A test starts the program on a terminal and listens.
package quiet

import "os"

const variable = "TERM"

// before is what the variable was; ok is false if it was not set.
type before struct {
	value string
	ok    bool
}

// was is set as the program starts.
var was = hush()

func hush() before {
	value, ok := os.LookupEnv(variable)
	// It cannot fail: the name and the value are well-formed.
	_ = os.Setenv(variable, "dumb")
	return before{value, ok}
}

// Restore gives back the terminal's name. Call it once the libraries have
// started; it may be called again.
func Restore() bool {
	if !was.ok {
		return os.Unsetenv(variable) == nil
	}
	return os.Setenv(variable, was.value) == nil
}
