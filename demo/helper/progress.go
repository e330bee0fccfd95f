package helper

import "time"

// Progress receives the progress of a build.
type Progress struct {
	// Report is called with one short message at a time, from one goroutine.
	Report func(string)
	// Every is the time between two messages: short if they overwrite each
	// other, long if each remains as a line.
	Every time.Duration
}

func (p Progress) notify(message string) {
	if p.Report != nil {
		p.Report(message)
	}
}

func (p Progress) after() <-chan time.Time {
	if p.Every <= 0 {
		return time.After(10 * time.Second)
	}
	return time.After(p.Every)
}
