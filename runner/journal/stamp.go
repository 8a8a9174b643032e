package journal

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Stamp distinguishes states of a recorded run: it changes with each of its files except locks. It
// contains no blanks, and is empty for a run whose files cannot be read. result reports whether
// the run has a result.
func (r *Run) Stamp() (stamp string, result bool) {
	b := make([]byte, 0, 128)
	for _, name := range []string{runFile, journalFile, blobFile, resultFile} {
		var st unix.Stat_t
		err := unix.Lstat(r.dir+string(filepath.Separator)+name, &st) // filepath.Join is slower, and lists stat thousands of files
		switch {
		case err == nil:
			b = appendIdentity(b, &st)
			result = name == resultFile
		case !errors.Is(err, fs.ErrNotExist):
			return "", false
		}
		b = append(b, ':')
	}
	return string(b), result
}

// appendIdentity appends inode, time of the last change and size. A file that replaces another
// has another inode, even with the same size and within one clock tick. Programs can set the
// modification time of a file, but not the time of its last change.
func appendIdentity(b []byte, st *unix.Stat_t) []byte {
	b = strconv.AppendUint(b, st.Ino, 36)
	b = strconv.AppendInt(append(b, '.'), st.Ctim.Nano(), 36)
	return strconv.AppendInt(append(b, '.'), st.Size, 36)
}

// ReadingStamp distinguishes everything that the content of the record depends on for a reader: the
// files of [Run.Stamp], the key with the list of trusted runs, and whether a process records or
// amends the run. Two readings with the same stamp give the same. It is empty if
// that is unknown.
func (r *Run) ReadingStamp() string {
	stamp, _ := r.Stamp()
	var key unix.Stat_t
	if stamp == "" || unix.Lstat(filepath.Join(r.store.keys.dir, KeyFile), &key) != nil {
		return ""
	}
	b := appendIdentity([]byte(stamp), &key)
	return string(strconv.AppendBool(strconv.AppendBool(b, r.Alive()), r.amended()))
}
