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

	"waza/eval/files"
	"waza/eval/text"
	"waza/runner/record"
)

// The index lists the runs that may contain a content, by the hash of the content. It consists
// of files with lines "<hash> <run>" in cache/, one file per first two digits of the hash.
// Processes only append lines, so a line may be incomplete, repeated or name a removed run. This
// is harmless, because a reader of the index checks the run.
const (
	indexDir  = "cache"
	indexLock = "lock"
)

var hashForm = text.Pattern(`^[0-9a-f]{8,128}$`)

// An Index is the index of a state directory. It owns the files of its directory and their lock. It
// is safe for concurrent use, also by several processes.
type Index struct {
	store *Store
	dir   string
}

// Index returns the index of the store's runs.
func (s *Store) Index() *Index { return &Index{s, filepath.Join(s.dir, indexDir)} }

// Dir returns the directory of the index, which may not exist.
func (x *Index) Dir() string { return x.dir }

// ErrIndexBusy reports that another process is cleaning up the index.
var ErrIndexBusy = errors.New("another process is cleaning up the index of runs")

// Add records that a run may contain the contents with these hashes, which consist of at
// least 8 hexadecimal digits. It can block for a moment while another process calls
// [Index.Clean], and eventually returns [ErrIndexBusy].
func (x *Index) Add(run string, hashes []string) error {
	if len(hashes) == 0 {
		return nil
	}
	lines := map[string]*bytes.Buffer{}
	for _, hash := range hashes {
		if !hashForm().MatchString(hash) || !ValidID(run) {
			return fmt.Errorf("index: invalid hash %q or run id %q", hash, run)
		}
		b := lines[hash[:2]]
		if b == nil {
			b = bytes.NewBufferString("\n") // the preceding line may be incomplete
			lines[hash[:2]] = b
		}
		b.WriteString(hash + " " + run + "\n")
	}
	if err := os.MkdirAll(x.dir, 0o700); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	unlock, err := x.lock(files.LockShared)
	if err != nil {
		return err
	}
	defer unlock()
	for name, b := range lines {
		if err := appendTo(filepath.Join(x.dir, name), b.Bytes()); err != nil {
			return fmt.Errorf("index: %w", err)
		}
	}
	return nil
}

// appendTo appends to a file in one write, so that lines of several processes do not mix.
func appendTo(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// lock prevents others from replacing the files of the index, or from using them.
func (x *Index) lock(take func(*os.File) error) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(x.dir, indexLock), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	for range 100 {
		if err = take(f); err == nil {
			return func() { _ = files.Unlock(f) }, nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	f.Close()
	return nil, ErrIndexBusy
}

// Runs returns the ids of the runs that were recorded for each hash, newest first. Hashes
// without runs are missing. The runs may no longer exist.
func (x *Index) Runs(hashes []string) (map[string][]string, error) {
	wanted, files := map[string]bool{}, map[string]bool{}
	for _, hash := range hashes {
		if hashForm().MatchString(hash) {
			wanted[hash], files[hash[:2]] = true, true
		}
	}
	holders := map[string][]string{}
	for name := range files {
		err := x.eachLine(name, func(hash, run string) {
			if wanted[hash] && !x.store.hides(run) {
				hash, run = strings.Clone(hash), strings.Clone(run) // do not keep the whole file in memory
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

// eachLine calls visit for each valid line of a file of the index.
func (x *Index) eachLine(name string, visit func(hash, run string)) error {
	data, err := os.ReadFile(filepath.Join(x.dir, name))
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

// Clean removes entries of removed runs and other useless entries from the index. It returns
// the number of removed lines. Other processes that write to the index wait.
func (x *Index) Clean() (dropped int, err error) {
	if x.store.sees != nil {
		return 0, nil // the index covers all runs
	}
	entries, err := os.ReadDir(x.dir)
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
		n, err := x.forgetIn(e.Name(), gone)
		if err != nil {
			return dropped, err
		}
		dropped += n
	}
	return dropped, nil
}

// forgetIn cleans up one file. gone caches which runs no longer exist.
func (x *Index) forgetIn(name string, gone map[string]bool) (dropped int, err error) {
	unlock, err := x.lock(files.Lock)
	if err != nil {
		return 0, err
	}
	defer unlock()
	kept := map[string]bool{}
	var out bytes.Buffer
	err = x.eachLine(name, func(hash, run string) {
		if _, known := gone[run]; !known {
			_, err := x.store.Open(run)
			gone[run] = errors.Is(err, record.ErrRunNotFound)
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
	path := filepath.Join(x.dir, name)
	if out.Len() == 0 {
		return dropped, os.Remove(path)
	}
	return dropped, x.store.disk().writeAtomically(path, func(w io.Writer) error {
		_, err := w.Write(out.Bytes())
		return err
	})
}
