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
//	requesting process                  recording process
//	Send: creates cancel.request  ──►   Has: the file exists
//	                                    executes the request
//	Has: the file is gone         ◄──   Remove: removes it
const requestSuffix = ".request"

// Requests are the requests to the process that records a run. They own the files of requests in
// the run's directory.
type Requests struct{ dir string }

// Requests returns the requests to the process that records the run.
func (r *Run) Requests() Requests { return Requests{r.dir} }

func (r Requests) path(what string) string { return filepath.Join(r.dir, what+requestSuffix) }

// Send sends the named request. It is answered when [Requests.Has] returns false. The caller checks
// with [Run.Alive] that a process exists.
func (r Requests) Send(what string) error {
	f, err := os.OpenFile(r.path(what), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, os.ErrExist):
		return nil // the same request is already pending
	case errors.Is(err, os.ErrNotExist):
		return notFound(filepath.Base(r.dir))
	case err != nil:
		return fmt.Errorf("run %s: request %s: %w", filepath.Base(r.dir), what, err)
	}
	return f.Close()
}

// Has reports whether a request is pending.
func (r Requests) Has(what string) bool {
	_, err := os.Lstat(r.path(what))
	return err == nil
}

// Remove removes a request, which confirms or withdraws it.
func (r Requests) Remove(what string) error {
	err := os.Remove(r.path(what))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// drop removes all requests.
func (r Requests) drop() {
	for _, name := range names(r.dir) {
		if strings.HasSuffix(name, requestSuffix) {
			_ = os.Remove(filepath.Join(r.dir, name)) // otherwise the requesting process removes it
		}
	}
}
