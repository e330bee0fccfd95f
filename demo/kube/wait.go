package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// pollEvery is short because the servers run on this machine.
const pollEvery = 50 * time.Millisecond

// Final wraps an error that waiting cannot resolve: Until returns it at once.
func Final(err error) error { return finalError{err} }

type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// Until polls until condition returns nil. If ctx ends first, the error has what
// was waited for and the last error of condition.
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
		// The error of a request that ctx cancelled is not informative.
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

// GetOK requests a health endpoint; anything but 200 within 10 seconds is an error.
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
