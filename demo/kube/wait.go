package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// pollEvery is short because the servers asked are on this machine.
const pollEvery = 50 * time.Millisecond

// Final wraps an error that waiting cannot mend: Until gives up at once.
func Final(err error) error { return finalError{err} }

type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// Until asks again and again until condition returns nil. When ctx ends first,
// the error says what was waited for and what condition said last.
func Until(ctx context.Context, what string, condition func(context.Context) error) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var last error
	for {
		err := condition(ctx)
		if err == nil {
			return nil
		}
		if final := (finalError{}); errors.As(err, &final) {
			return fmt.Errorf("%s: %w", what, err)
		}
		// The answer to a request that ctx cut off says nothing new.
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			if last == nil {
				return fmt.Errorf("%s: %w", what, ctx.Err())
			}
			return fmt.Errorf("%s: %w; last: %w", what, ctx.Err(), last)
		case <-tick.C:
		}
	}
}

// GetOK asks a health endpoint; anything but 200 within 10 seconds is an error.
func GetOK(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return nil
}
