package journal

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"waza/eval/files"
)

// A state directory has one key, which all its processes use to authenticate records. Its file
// has a line per value:
//
//	waza record key 1
//	8f…                                  32 random bytes
//	20250101-000000.000-abcdefghij       the trusted runs, one per line
//	mac 77…                              digest of all lines before
//
// Records of trusted runs are read although nobody can verify them: they have no digests, or
// digests of another key. Every other run must have digests of this key. The runs of versions
// before digests were introduced become trusted when the key is created; [Store.Trust] adds
// further runs. The list is authenticated, so nobody without the key can add runs.
//
// A key is never replaced on its own while some run has digests. Otherwise somebody could remove
// the key and all digests, and pass the records off as those of an older version.
const (
	keyHead = "waza record key 1\n"
	keySize = 32
	// maxKeyFile limits the bytes of the file. The list of a million runs fits.
	maxKeyFile = 64 << 20
)

// KeyFile is the name of the file with the key of a state directory.
const KeyFile = files.StateMarker

// ErrKeyMissing reports that the state directory has no key, although runs were recorded with
// one.
var ErrKeyMissing = errors.New("the key of records is missing, although runs were recorded with it; restore " +
	KeyFile + " from a backup, or create another key with waza runs trust --all, which marks these runs as not verifiable")

// A stateKey is the key of a state directory.
type stateKey struct {
	secret  [keySize]byte
	id      keyID
	trusted map[string]bool // ids of runs
}

// A keyID distinguishes keys without disclosing them. run.json contains that of its key.
type keyID [8]byte

func newStateKey(secret [keySize]byte, trusted []string) *stateKey {
	key := &stateKey{secret: secret, trusted: map[string]bool{}}
	sum := sha256.Sum256(append([]byte("waza record key id\n"), secret[:]...))
	copy(key.id[:], sum[:])
	for _, id := range trusted {
		key.trusted[id] = true
	}
	return key
}

// encode returns the content of the key's file.
func (k *stateKey) encode() []byte {
	b := fmt.Appendf(nil, "%s%x\n", keyHead, k.secret)
	for _, id := range slices.Sorted(maps.Keys(k.trusted)) {
		b = append(append(b, id...), '\n')
	}
	return fmt.Appendf(b, "mac %x\n", newSigner(k, "").tag(forKey, b))
}

func decodeKey(b []byte) (*stateKey, bool) {
	body, ok := bytes.CutSuffix(b, []byte("\n"))
	at := bytes.LastIndexByte(body, '\n') + 1
	mac, macOK := bytes.CutPrefix(body[at:], []byte("mac "))
	rest, headOK := bytes.CutPrefix(body[:at], []byte(keyHead))
	first, list, listOK := bytes.Cut(rest, []byte("\n"))
	var secret [keySize]byte
	var t tag
	if !ok || !macOK || !headOK || !listOK || len(first) != 2*keySize || !decodeHex(secret[:], first) ||
		len(mac) != 2*tagSize || !decodeHex(t[:], mac) {
		return nil, false
	}
	key := newStateKey(secret, strings.Fields(string(list)))
	return key, newSigner(key, "").tag(forKey, body[:at]) == t
}

// A keyring reads the key of a state directory and creates it. It is safe for concurrent use.
type keyring struct {
	dir string

	mu    sync.Mutex // guards the fields below
	key   *stateKey  // nil until it is read
	stamp string     // of the file that was read
}

// load returns the key. The error is [os.ErrNotExist] when the state directory has none.
func (k *keyring) load() (*stateKey, error) {
	path := filepath.Join(k.dir, KeyFile)
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if stamp := string(appendIdentity(nil, &st)); k.key == nil || stamp != k.stamp {
		key, err := readKey(path)
		if err != nil {
			return nil, err
		}
		k.key, k.stamp = key, stamp
	}
	return k.key, nil
}

// ensure returns the key. If the state directory has none, it creates one first, and trusts all
// runs. It returns [ErrKeyMissing] if one of them has digests.
func (k *keyring) ensure(d disk) (*stateKey, error) {
	key, err := k.load()
	if !errors.Is(err, os.ErrNotExist) {
		return key, err
	}
	err = k.create(d, func() ([]string, error) {
		ids, err := k.runs()
		if err == nil && slices.ContainsFunc(ids, k.hasDigests) {
			err = ErrKeyMissing
		}
		return ids, err
	})
	if key, lerr := k.load(); lerr == nil || err == nil || errors.Is(err, os.ErrExist) { // of another process, perhaps
		return key, lerr
	}
	return nil, fmt.Errorf("%s: %w", filepath.Join(k.dir, KeyFile), err)
}

// create creates a key that trusts runs. Of several processes that create it at once, one
// succeeds; the others get [os.ErrExist].
func (k *keyring) create(d disk, trusted func() ([]string, error)) (err error) {
	ids, err := trusted()
	if err != nil {
		return err
	}
	var secret [keySize]byte
	_, _ = rand.Read(secret[:])                      // never fails
	f, err := os.CreateTemp(k.dir, "."+KeyFile+"-*") // its mode is 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err = f.Write(newStateKey(secret, ids).encode()); err == nil {
		err = d.sync(f)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	path := filepath.Join(k.dir, KeyFile)
	// A link, unlike a rename, never replaces the key of another process.
	err = os.Link(f.Name(), path)
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.ENOSYS) { // a file system without links
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return err
	}
	return d.syncDir(k.dir)
}

// readKey reads a key. It follows no link.
func readKey(path string) (*stateKey, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return nil, err
	}
	key, ok := decodeKey(b)
	if !ok {
		return nil, fmt.Errorf("%s: not a record key; restore it from a backup, or remove it and create another key "+
			"with waza runs trust --all, which marks earlier runs as not verifiable",
			path)
	}
	return key, nil
}

// runs returns the ids of all runs.
func (k *keyring) runs() ([]string, error) { return NewStore(k.dir).List() }

// hasDigests reports whether a file of a run's record ends with a digest.
func (k *keyring) hasDigests(id string) bool {
	return slices.ContainsFunc([]string{runFile, journalFile, resultFile}, func(name string) bool {
		return bytes.Contains(endOf(filepath.Join(k.dir, runsDir, id, name)), []byte(macHead))
	})
}

// keyOf returns the id of the key with which a run was recorded, if its run.json contains it.
func (k *keyring) keyOf(id string) (key keyID, ok bool) {
	_, rest, ok := bytes.Cut(endOf(filepath.Join(k.dir, runsDir, id, runFile)), []byte(keyIDHead))
	return key, ok && len(rest) > 2*len(key) && decodeHex(key[:], rest[:2*len(key)])
}

// endOf returns the last bytes of a file, which contain the digest and the members before it.
func endOf(path string) []byte {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	b, _ := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-256), 256)) // what can be read is enough
	return b
}

// EnsureKey creates the key of an existing state directory. It does nothing if the directory
// does not exist; the first run creates both. It returns [ErrKeyMissing] if runs were recorded
// with a key that is missing.
func (s *Store) EnsureKey() error {
	if _, err := os.Stat(s.dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	_, err := s.keys.ensure(s.disk())
	return err
}

// Trust makes runs readable although nobody can verify that waza wrote them: runs without
// digests, and runs that were recorded with a different key. It returns the ids of those among
// the given runs that now are trusted and were not before. If the state directory has no key,
// Trust creates one; runs that are not given are then damaged.
func (s *Store) Trust(ids ...string) (added []string, err error) {
	old, err := s.keys.load()
	if errors.Is(err, os.ErrNotExist) {
		return ids, s.keys.create(s.disk(), func() ([]string, error) { return ids, nil })
	}
	if err != nil {
		return nil, err
	}
	runs, err := s.keys.runs()
	if err != nil {
		return nil, err
	}
	next := newStateKey(old.secret, nil)
	for _, id := range runs { // deleted runs are no longer trusted
		if !old.trusted[id] {
			key, ok := s.keys.keyOf(id)
			if !slices.Contains(ids, id) || s.keys.hasDigests(id) && (!ok || key == old.id) {
				continue
			}
			added = append(added, id)
		}
		next.trusted[id] = true
	}
	if len(added) == 0 {
		return nil, nil
	}
	return added, s.disk().writeAtomically(filepath.Join(s.dir, KeyFile), func(w io.Writer) error {
		_, err := w.Write(next.encode())
		return err
	})
}
