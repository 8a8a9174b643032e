package runner

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// LatestRun names the newest run. A run that is dated in the
// future is it only when there is no other.
const LatestRun = "latest"

// leastPrefix is how much of an id must be given.
const leastPrefix = 4

// AmbiguousRunError says that what should name a run fits several.
type AmbiguousRunError struct {
	Ref string
	// RunIDs are those it fits, newest first.
	RunIDs []string
}

func (e *AmbiguousRunError) Error() string {
	return fmt.Sprintf("%q fits %d runs: %s", e.Ref, len(e.RunIDs), some(e.RunIDs))
}

// Find returns the run that ref names: by its id, by the beginning of the id or of
// what follows its last hyphen (four characters at least), or as latest. With ~N
// after it, it is the Nth run before that one of the same suite file: latest~1.
// The error is [ErrRunNotFound], an [*AmbiguousRunError], or tells why the
// run cannot be read.
func (r *Runner) Find(ref string) (Handle, error) {
	name, back, err := cutBack(ref)
	if err != nil {
		return nil, err
	}
	h, err := r.findNamed(name)
	if err != nil || back == 0 {
		return h, err
	}
	before := 0
	err = r.earlier(h.ID(), func(o Handle) bool {
		if o.Record().Suite.Path == h.Record().Suite.Path {
			before++
			h = o
		}
		return before < back
	})
	if err == nil && before < back {
		err = fmt.Errorf("%w: %s: of that suite there are %d before it", ErrRunNotFound, ref, before)
	}
	if err != nil {
		return nil, err
	}
	return h, nil
}

// cutBack takes ~N off.
func cutBack(ref string) (name string, back int, err error) {
	name, number, ok := strings.Cut(ref, "~")
	if !ok {
		return ref, 0, nil
	}
	if number == "" {
		return name, 1, nil
	}
	if back, err = strconv.Atoi(number); err != nil || back < 0 {
		return "", 0, fmt.Errorf("%w: %s: after ~ stands how many runs before", ErrRunNotFound, ref)
	}
	return name, back, nil
}

func (r *Runner) findNamed(name string) (Handle, error) {
	if name == LatestRun {
		return r.newest()
	}
	h, err := r.Run(name)
	if !errors.Is(err, ErrRunNotFound) || len(name) < leastPrefix {
		return h, err
	}
	ids, err := r.store.List()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, id := range ids {
		if strings.HasPrefix(id, name) || strings.HasPrefix(id[strings.LastIndexByte(id, '-')+1:], name) {
			found = append(found, id)
		}
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("%w: %s", ErrRunNotFound, name)
	case len(found) > 1:
		return nil, &AmbiguousRunError{Ref: name, RunIDs: found}
	}
	return r.Run(found[0])
}

func (r *Runner) newest() (Handle, error) {
	var newest Handle
	err := r.earlier("", func(h Handle) bool {
		newest = h
		return false
	})
	if err == nil && newest == nil {
		err = fmt.Errorf("%w: %s, for none is recorded", ErrRunNotFound, LatestRun)
	}
	if err != nil {
		return nil, err
	}
	return newest, nil
}

// earlier visits the runs before one, newest first, as long as visit wants more.
// An empty id visits all. Runs whose files cannot be read are left out.
func (r *Runner) earlier(id string, visit func(Handle) bool) error {
	ids, err := r.store.List()
	if err != nil {
		return err
	}
	for _, other := range ids[slices.Index(ids, id)+1:] { // all when there is no such id
		h, err := r.Run(other)
		if err == nil && !visit(h) {
			break
		}
	}
	return nil
}
