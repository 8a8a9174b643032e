package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"waza/eval/text"
)

// The index tells which runs may hold a content, by its hash. It is made of
// files of lines "<hash> <run>", in cache/ by the first two digits of the hash.
// Lines are only ever added, by any process, so one may be torn, repeated or of a
// run that is gone: none of it does harm, for who looks a run up looks into it.
const (
	indexDir  = "cache"
	indexLock = "lock"
)

var hashForm = text.Pattern(`^[0-9a-f]{8,128}$`)

func (s *Store) index() string { return filepath.Join(s.dir, indexDir) }

// ErrIndexBusy says that another process tidies the index up.
var ErrIndexBusy = errors.New("the index of runs is being tidied up")

// Remember notes that a run may hold the contents of these hashes, which are of
// hexadecimal digits, at least 8. It may block for a moment while another process
// calls [Store.Forget], and gives up with [ErrIndexBusy].
func (s *Store) Remember(run string, hashes []string) error {
	if len(hashes) == 0 {
		return nil
	}
	lines := map[string]*bytes.Buffer{}
	for _, hash := range hashes {
		if !hashForm().MatchString(hash) || !ValidID(run) {
			return fmt.Errorf("index: %q of run %q cannot be noted", hash, run)
		}
		b := lines[hash[:2]]
		if b == nil {
			b = bytes.NewBufferString("\n") // what stands before may be torn
			lines[hash[:2]] = b
		}
		b.WriteString(hash + " " + run + "\n")
	}
	if err := os.MkdirAll(s.index(), 0o700); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	unlock, err := s.lockIndex(lockShared)
	if err != nil {
		return err
	}
	defer unlock()
	for name, b := range lines {
		if err := appendTo(filepath.Join(s.index(), name), b.Bytes()); err != nil {
			return fmt.Errorf("index: %w", err)
		}
	}
	return nil
}

// appendTo adds to a file in one write, so that lines of several processes do
// not mix.
func appendTo(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// lockIndex keeps others from replacing the index's files, or from using them.
func (s *Store) lockIndex(take func(*os.File) error) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(s.index(), indexLock), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	for range 100 {
		if err = take(f); err == nil {
			return func() {
				unlock(f)
				f.Close()
			}, nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	f.Close()
	return nil, ErrIndexBusy
}

// Holders returns, for each of the hashes that any run was noted with, the ids of
// those runs, newest first. They may be gone.
func (s *Store) Holders(hashes []string) (map[string][]string, error) {
	wanted, files := map[string]bool{}, map[string]bool{}
	for _, hash := range hashes {
		if hashForm().MatchString(hash) {
			wanted[hash], files[hash[:2]] = true, true
		}
	}
	holders := map[string][]string{}
	for name := range files {
		err := s.eachLine(name, func(hash, run string) {
			if wanted[hash] && !hides(s, run) {
				hash, run = strings.Clone(hash), strings.Clone(run) // not the whole file
				holders[hash] = append(holders[hash], run)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	for hash, runs := range holders {
		slices.Sort(runs)
		slices.Reverse(runs)
		holders[hash] = slices.Compact(runs)
	}
	return holders, nil
}

// eachLine calls visit for each line of a file of the index that is one.
func (s *Store) eachLine(name string, visit func(hash, run string)) error {
	data, err := os.ReadFile(filepath.Join(s.index(), name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		hash, run, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if ok && strings.HasSuffix(line, "\n") && hashForm().MatchString(hash) && ValidID(run) {
			visit(hash, run)
		}
	}
	return nil
}

// Forget takes the runs that are gone out of the index, and what else it need not
// hold. It returns how many lines were dropped. What others note meanwhile waits.
func (s *Store) Forget() (dropped int, err error) {
	if s.sees != nil {
		return 0, nil // the index is of all runs
	}
	entries, err := os.ReadDir(s.index())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("index: %w", err)
	}
	gone := map[string]bool{}
	for _, e := range entries {
		if len(e.Name()) != 2 {
			continue
		}
		n, err := s.forgetIn(e.Name(), gone)
		if err != nil {
			return dropped, err
		}
		dropped += n
	}
	return dropped, nil
}

// forgetIn tidies one file up. gone remembers which runs are.
func (s *Store) forgetIn(name string, gone map[string]bool) (dropped int, err error) {
	unlock, err := s.lockIndex(lock)
	if err != nil {
		return 0, err
	}
	defer unlock()
	kept := map[string]bool{}
	var out bytes.Buffer
	err = s.eachLine(name, func(hash, run string) {
		if _, known := gone[run]; !known {
			_, err := s.Open(run)
			gone[run] = errors.Is(err, ErrNotFound)
		}
		line := hash + " " + run + "\n"
		if gone[run] || kept[line] {
			dropped++
			return
		}
		kept[line] = true
		out.WriteString(line)
	})
	if err != nil || dropped == 0 {
		return 0, err
	}
	path := filepath.Join(s.index(), name)
	if out.Len() == 0 {
		return dropped, os.Remove(path)
	}
	return dropped, s.disk().writeAtomically(path, func(w io.Writer) error {
		_, err := w.Write(out.Bytes())
		return err
	})
}
