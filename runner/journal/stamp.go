package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Stamp distinguishes states of a recorded run: it changes with each of its files except
// contents and locks. It contains no blanks, and is empty for a run whose files cannot be read.
// result reports whether the run has a result.
func (r *Run) Stamp() (stamp string, result bool) {
	b := make([]byte, 0, 128)
	for _, name := range []string{runFile, journalFile, resultFile} {
		info, err := os.Lstat(r.dir + string(filepath.Separator) + name) // filepath.Join is slower, and lists stat thousands of files
		switch {
		case err == nil:
			b = append(b, identity(info)...)
			result = name == resultFile
		case !errors.Is(err, fs.ErrNotExist):
			return "", false
		}
		b = append(b, ':')
	}
	return string(b), result
}

// identity returns inode, modification time and size. A file that replaces another has another
// inode, even with the same size and within one clock tick.
func identity(info fs.FileInfo) string {
	inode := uint64(0)
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = st.Ino
	}
	b := strconv.AppendUint(nil, inode, 36)
	b = strconv.AppendInt(append(b, '.'), info.ModTime().UnixNano(), 36)
	return string(strconv.AppendInt(append(b, '.'), info.Size(), 36))
}

// ReadCache returns a replaceable file of the state directory, written by [Store.WriteCache].
// The content may be anything; nil when the file does not exist.
func (s *Store) ReadCache(name string) []byte {
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		return nil
	}
	return b
}

// WriteCache replaces such a file. Concurrent readers get the old or the new file. After a power
// failure it may contain anything.
func (s *Store) WriteCache(name string, data []byte) error {
	if s.sees != nil {
		return nil // the file covers all runs
	}
	f, err := os.CreateTemp(s.dir, "."+name+"-*")
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	_, err = f.Write(data)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(s.dir, name))
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
