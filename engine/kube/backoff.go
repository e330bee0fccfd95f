package kube

import (
	"math/rand/v2"
	"time"
)

// Backoff is the pause after a number of failures in a row: first, doubled with
// each further failure, at most longest; 0 after none.
func Backoff(first, longest time.Duration, failures int) time.Duration {
	if failures <= 0 {
		return 0
	}
	for ; failures > 1 && first < longest; failures-- {
		first *= 2
	}
	return min(first, longest)
}

// Jitter adds up to a quarter to a pause, so that requests that failed together are
// not retried together.
func Jitter(d time.Duration) time.Duration {
	return d + time.Duration(rand.Int64N(int64(d)/4+1))
}
