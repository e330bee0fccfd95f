// Command get sends GET requests from inside a pod, whose image has nothing else
// that can:
//
//	get URL [COUNT]
//
// It prints the status and the body of each answer, and fails unless every status is
// 200.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "get: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 || len(args) > 2 {
		return fmt.Errorf("%d arguments; want a URL and, optionally, the number of requests", len(args))
	}
	count := 1
	if len(args) == 2 {
		var err error
		if count, err = strconv.Atoi(args[1]); err != nil {
			return fmt.Errorf("number of requests: %w", err)
		}
	}
	client := http.Client{Timeout: 10 * time.Second}
	failed := 0
	for range count {
		answer, err := client.Get(args[0]) //nolint:gosec // what the caller asks for
		if err != nil {
			return err
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil {
			return err
		}
		fmt.Printf("%d %s\n", answer.StatusCode, body)
		if answer.StatusCode != http.StatusOK {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d requests were not answered with 200", failed, count)
	}
	return nil
}
