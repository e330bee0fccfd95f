package helper

import "time"

// Progress hears how a build is coming along.
type Progress struct {
	// Say is called with one short sentence at a time, from one goroutine.
	Say func(string)
	// Every is the time between two sentences: a fraction of a second where
	// they overwrite each other, many seconds where each stays as a line.
	Every time.Duration
}

func (p Progress) say(sentence string) {
	if p.Say != nil {
		p.Say(sentence)
	}
}

func (p Progress) after() <-chan time.Time {
	if p.Every <= 0 {
		return time.After(10 * time.Second)
	}
	return time.After(p.Every)
}
