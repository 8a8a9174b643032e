package journal

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"waza/eval/files"
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

// A CacheSealer authenticates the lines of a file that [Store.WriteCache] writes, so that nobody
// without the key of the state directory can add some. It is safe for concurrent use.
type CacheSealer struct{ signers *sync.Pool } // nil without a key

// CacheSealer returns a sealer. Without a key, it accepts no line.
func (s *Store) CacheSealer() CacheSealer {
	key, err := s.keys.load()
	if err != nil {
		return CacheSealer{}
	}
	// Lines depend on the trusted runs, because these determine the damage of a run.
	trusted := string(key.encode())
	return CacheSealer{&sync.Pool{New: func() any { return newSigner(key, trusted) }}}
}

// Seal returns a line, a JSON object with members, with its digest, a checksum and a newline; nil
// without a key.
func (c CacheSealer) Seal(line []byte) []byte {
	if c.signers == nil {
		return nil
	}
	s := c.signers.Get().(*signer)
	defer c.signers.Put(s)
	sealed, _ := s.sign(nil, line, tag{})
	return sealed
}

// Unseal returns the original of a sealed line, and whether it is authentic.
func (c CacheSealer) Unseal(line string) (body []byte, ok bool) {
	if c.signers == nil {
		return nil, false
	}
	s := c.signers.Get().(*signer)
	defer c.signers.Put(s)
	body, sealed, err := unseal([]byte(strings.TrimSuffix(line, "\n")))
	if !sealed || err != nil {
		return nil, false
	}
	body, _, _, err = (&verifier{signer: s}).check(body, tag{}, true)
	return body, err == nil
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
	return StateError(files.WriteWhole(filepath.Join(s.dir, name), func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}, nil))
}
