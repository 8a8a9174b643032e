package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A request of another process to the process that records a run is an empty file in the run's
// directory, named after the request. Each kind of request has its own file, so no request
// replaces another, and repeating a request has no effect:
//
//	requesting process                         recording process
//	SendRequest: creates cancel.request  ──►   HasRequest: the file exists
//	                                           executes the request
//	HasRequest: the file is gone         ◄──   RemoveRequest: removes it
const requestSuffix = ".request"

func (r *Run) requestPath(what string) string { return filepath.Join(r.dir, what+requestSuffix) }

// SendRequest sends the named request to the process that records the run. The request is
// answered when [Run.HasRequest] returns false. The caller checks with [Run.Alive] that a
// process exists.
func (r *Run) SendRequest(what string) error {
	f, err := os.OpenFile(r.requestPath(what), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, os.ErrExist):
		return nil // the same request is already pending
	case errors.Is(err, os.ErrNotExist):
		return ErrNotFound
	case err != nil:
		return fmt.Errorf("request %s: %w", what, err)
	}
	return f.Close()
}

// HasRequest reports whether a request is pending.
func (r *Run) HasRequest(what string) bool {
	_, err := os.Lstat(r.requestPath(what))
	return err == nil
}

// RemoveRequest removes a request, which confirms or withdraws it.
func (r *Run) RemoveRequest(what string) error {
	err := os.Remove(r.requestPath(what))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// dropRequests removes all requests.
func (r *Run) dropRequests() {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), requestSuffix) {
			_ = os.Remove(filepath.Join(r.dir, e.Name())) // otherwise the requesting process removes it
		}
	}
}
