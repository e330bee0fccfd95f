package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// logEvery is the time between two looks for new lines of a log that is followed.
const logEvery = 100 * time.Millisecond

// serveLogs writes what a pod's proxy, or its application, has printed. Lines have no
// times, so what asks for them is refused; of an earlier process, the lines come first.
func serveLogs(p *pod, w http.ResponseWriter, r *http.Request) {
	container := r.PathValue("container")
	if err := p.hasContainer(container); err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	query := r.URL.Query()
	for _, unknown := range []string{"previous", "timestamps", "sinceSeconds", "sinceTime"} {
		if value := query.Get(unknown); value != "" && value != "false" {
			http.Error(w, fmt.Sprintf("the demo's logs have no times, and one file for all processes of a container: leave out %s", unknown), http.StatusBadRequest)
			return
		}
	}
	name := "app"
	if container == proxyName {
		name = "agent"
	}
	file, err := os.Open(filepath.Join("logs", p.logName(name)))
	if errors.Is(err, os.ErrNotExist) {
		return // it has not started
	}
	if err == nil {
		defer func() { _ = file.Close() }()
		err = fromLine(file, query.Get("tailLines"))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	out := io.Writer(w)
	if limit, err := strconv.ParseInt(query.Get("limitBytes"), 10, 64); err == nil {
		_, _ = io.CopyN(out, file, limit)
		return
	}
	for {
		if _, err := io.Copy(out, file); err != nil || query.Get("follow") != "true" {
			return
		}
		if flusher, ok := w.(http.Flusher); ok {
			flusher.Flush()
		}
		select {
		case <-r.Context().Done():
			return
		case <-p.ending:
			return
		case <-time.After(logEvery):
		}
	}
}

// fromLine moves to the first of the last lines; all of them without a number.
func fromLine(file *os.File, lines string) error {
	if lines == "" {
		return nil
	}
	wanted, err := strconv.Atoi(lines)
	if err != nil {
		return fmt.Errorf("tailLines: %w", err)
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	data = bytes.TrimSuffix(data, []byte("\n"))
	at := len(data)
	for ; wanted > 0 && at >= 0; wanted-- {
		at = bytes.LastIndexByte(data[:at], '\n')
	}
	_, err = file.Seek(int64(at+1), io.SeekStart)
	return err
}
