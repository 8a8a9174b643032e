package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// What another process asks of the one that records a run is an empty file in the
// run's directory, named after what is asked. One file for each thing that can be
// asked means that no request can take the place of another, and that asking
// twice is asking once:
//
//	asking process                     recording process
//	Ask: makes cancel.request    ──►   Asked: it is there
//	                                   does what is asked
//	Asked: it is gone            ◄──   Answer: removes it
const requestSuffix = ".request"

func (r *Run) requestPath(what string) string { return filepath.Join(r.dir, what+requestSuffix) }

// Ask asks the process that records the run for something that has a name. It is
// answered when [Run.Asked] reports false; that there is a process to answer is
// for the caller to see to, with [Run.Alive].
func (r *Run) Ask(what string) error {
	f, err := os.OpenFile(r.requestPath(what), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, os.ErrExist):
		return nil // somebody asks for the same
	case errors.Is(err, os.ErrNotExist):
		return ErrNotFound
	case err != nil:
		return fmt.Errorf("ask for %s: %w", what, err)
	}
	return f.Close()
}

// Asked reports whether something is asked for and not answered yet.
func (r *Run) Asked(what string) bool {
	_, err := os.Lstat(r.requestPath(what))
	return err == nil
}

// Answer tells whoever asked that it was heard, or takes back what was asked.
func (r *Run) Answer(what string) error {
	err := os.Remove(r.requestPath(what))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// dropRequests takes back all that was asked.
func (r *Run) dropRequests() {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), requestSuffix) {
			_ = os.Remove(filepath.Join(r.dir, e.Name())) // or whoever asked takes it back
		}
	}
}
