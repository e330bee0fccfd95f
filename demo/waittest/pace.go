package waittest

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// Pace is what a machine can do. A busy one needs longer for everything, so tests wait for multiples of it.
type Pace struct {
	// Start is how long an API server takes to start, Apply how long it takes to apply an object.
	Start, Apply time.Duration
}

// Variable is the environment variable with the pace of the machine, as String formats it.
const Variable = "MESHCTL_TEST_PACE"

// quietPace is that of a quiet machine with two cores; it is used if nobody has measured.
var quietPace = Pace{Start: 4 * time.Second, Apply: 5 * time.Millisecond}

// Limit bounds every wait of a test: a hundred starts of an API server, or ten thousand applied objects, whichever
// is longer. A wait ends when its condition holds, so a long limit only delays failures.
func (p Pace) Limit() time.Duration { return max(100*p.Start, 10_000*p.Apply, 2*time.Minute) }

// Soon bounds what a program must do promptly, such as to exit: four starts of an API server.
func (p Pace) Soon() time.Duration { return max(4*p.Start, 15*time.Second) }

// String formats a pace.
func (p Pace) String() string { return p.Start.String() + " " + p.Apply.String() }

// current is the pace of this run.
var current = sync.OnceValue(func() Pace {
	text := os.Getenv(Variable)
	if text == "" {
		return quietPace
	}
	p, err := parsePace(text)
	if err != nil {
		panic(err) // the tests cannot run
	}
	return p
})

func parsePace(text string) (p Pace, err error) {
	var start, apply string
	if _, err := fmt.Sscan(text, &start, &apply); err != nil {
		return p, fmt.Errorf("%s=%q: want two durations: %w", Variable, text, err)
	}
	if p.Start, err = time.ParseDuration(start); err != nil {
		return p, fmt.Errorf("%s=%q: %w", Variable, text, err)
	}
	if p.Apply, err = time.ParseDuration(apply); err != nil {
		return p, fmt.Errorf("%s=%q: %w", Variable, text, err)
	}
	return p, nil
}

// Limit bounds every wait of a test, see Pace.
func Limit() time.Duration { return current().Limit() }

// Soon bounds what must be done promptly, see Pace.
func Soon() time.Duration { return current().Soon() }
