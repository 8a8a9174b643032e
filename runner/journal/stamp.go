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

// Stamp distinguishes two states of a recorded run: it changes with each of its files
// beside contents and locks. It holds no blanks, and is empty for a run whose files
// cannot be looked at. result says that there is a result.
func (r *Run) Stamp() (stamp string, result bool) {
	b := make([]byte, 0, 128)
	for _, name := range []string{runFile, journalFile, resultFile} {
		info, err := os.Lstat(r.dir + string(filepath.Separator) + name) // Join is slower, and lists stat thousands
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

// identity is inode, time and size: a file that replaces another has another inode,
// also when it is as large and no clock has ticked in between.
func identity(info fs.FileInfo) string {
	inode := uint64(0)
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = st.Ino
	}
	b := strconv.AppendUint(nil, inode, 36)
	b = strconv.AppendInt(append(b, '.'), info.ModTime().UnixNano(), 36)
	return string(strconv.AppendInt(append(b, '.'), info.Size(), 36))
}

// ReadCache returns a file of the state directory that can be made again, as
// [Store.WriteCache] wrote it, or whatever is there; nil when there is none.
func (s *Store) ReadCache(name string) []byte {
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		return nil
	}
	return b
}

// WriteCache replaces such a file. Whoever reads it meanwhile gets the old one or
// the new one; after a power failure it may hold anything.
func (s *Store) WriteCache(name string, data []byte) error {
	if s.sees != nil {
		return nil // the file is of all runs
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
