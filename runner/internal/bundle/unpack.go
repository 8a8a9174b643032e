package bundle

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"time"

	"waza/eval/files"
	"waza/eval/relocate"
	"waza/runner/internal/checkout"
	"waza/runner/record"
	"waza/runner/workspace"
)

// stamp is the modification time of unpacked files. A file with a different time was changed.
var stamp = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)

// Unpacked is a bundle in a directory of this machine. It is safe for concurrent use.
type Unpacked struct {
	dir    string
	copier *relocate.Copier
	shared map[string]string // full hashes of files that are objects, by the short hashes of records
	lock   *lock
}

// Unpack unpacks a bundle into a directory below dir, and keeps it from being removed until
// Close. It reuses an existing bundle and restores files that were changed. Several processes
// can unpack a bundle at the same time. The bundle is untrusted: the limits apply, and no file
// is outside the directory.
func Unpack(ctx context.Context, s Store, hash, dir string, l Limits) (*Unpacked, error) {
	l = l.orDefaults()
	fail := func(err error) (*Unpacked, error) { return nil, fmt.Errorf("files of the run: %w", err) }
	if !isHash(hash) {
		return fail(fmt.Errorf("invalid manifest hash %q", hash))
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fail(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fail(err)
	}
	b, err := Fetch(ctx, s, hash, maxManifest)
	if err != nil {
		return fail(err)
	}
	m, err := decode(b, l)
	if err != nil {
		return fail(err)
	}
	u := &unpacker{ctx: ctx, store: s, limits: l, manifest: m, dir: filepath.Join(dir, hash)}
	held, err := u.unpack()
	if err != nil {
		return fail(err)
	}
	out := &Unpacked{dir: u.dir, copier: incoming(u.dir), lock: held, shared: map[string]string{}}
	for _, e := range m.Entries {
		if e.Hash != "" {
			out.shared[e.Hash[:recordHash]] = e.Hash
		}
	}
	return out, nil
}

// Dir returns the directory of the bundle.
func (u *Unpacked) Dir() string { return u.dir }

// Relocate returns an order of [Packed.Relocate] with the paths of this machine. It rejects an
// order with a path that is not portable but must be, or leads out of the bundle. Options must
// be decoded, see [trial.Env.Decode].
func (u *Unpacked) Relocate(o *record.Order) (*record.Order, error) { return o.Relocate(u.copier) }

// Close allows [Trim] to remove the bundle.
func (u *Unpacked) Close() error {
	now := time.Now()
	_ = os.Chtimes(u.dir, now, now) // marks it as most recently used
	u.lock.release()
	return nil
}

// unpacker unpacks one bundle.
type unpacker struct {
	ctx      context.Context
	store    Store
	limits   Limits
	manifest *manifest
	dir      string
}

// unpack makes the directory match the manifest. It returns a shared lock.
func (u *unpacker) unpack() (*lock, error) {
	for {
		held, alone, err := acquire(u.ctx, u.dir, func() bool { return files.IsDir(u.dir) })
		if err != nil {
			return nil, err
		}
		switch {
		case !files.IsDir(u.dir) && alone:
			err = u.fresh()
		case files.IsDir(u.dir):
			err = u.repair(u.dir, alone)
		}
		ok := true
		if err == nil && alone { // other processes can use it from here on
			ok, err = held.take(false)
		}
		if err == nil && ok && files.IsDir(u.dir) {
			now := time.Now()
			_ = os.Chtimes(u.dir, now, now)
			return held, nil
		}
		held.release()
		if err != nil {
			return nil, err
		}
	}
}

// fresh unpacks next to the directory, and moves the complete bundle there.
func (u *unpacker) fresh() error {
	tmp, err := os.MkdirTemp(filepath.Dir(u.dir), tempPrefix+filepath.Base(u.dir)+"-")
	if err != nil {
		return err
	}
	if err = u.repair(tmp, true); err == nil {
		err = os.Rename(tmp, u.dir)
	}
	if err != nil {
		_ = workspace.RemoveAll(tmp)
	}
	return err
}

// repair makes a directory match the manifest. If no other process uses the directory, it also
// removes files that are not in the manifest.
func (u *unpacker) repair(dir string, alone bool) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if alone {
		if err := u.removeOthers(root); err != nil {
			return err
		}
	}
	var missing []*entry
	for i := range u.manifest.Entries {
		e := &u.manifest.Entries[i]
		if asListed(root, e) {
			continue
		}
		if !e.Dir {
			missing = append(missing, e)
			continue
		}
		if err := makeDir(root, e); err != nil {
			return fmt.Errorf("%s: %w", e.Path, err)
		}
	}
	if err := each(u.ctx, missing, func(ctx context.Context, e *entry) error { return u.put(ctx, root, e) }); err != nil {
		return err
	}
	return u.repos(dir)
}

// removeOthers removes files that are not in the manifest.
func (u *unpacker) removeOthers(root *os.Root) error {
	listed := map[string]bool{}
	for i := range u.manifest.Entries {
		listed[u.manifest.Entries[i].Path] = true
	}
	var others []string
	err := fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || p == "." || listed[p]:
			return err
		case path.Dir(p) == "." && isRepo(p, len(u.manifest.Repos)):
			return fs.SkipDir
		}
		others = append(others, p)
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	for _, p := range others {
		if err := root.RemoveAll(filepath.FromSlash(p)); err != nil {
			return err
		}
	}
	return err
}

func isRepo(name string, count int) bool {
	for i := range count {
		if name == repoName(i) {
			return true
		}
	}
	return false
}

func repoName(i int) string { return "g" + strconv.Itoa(i) }

// asListed reports whether an entry exists as listed. For a file it compares size, permissions
// and time.
func asListed(root *os.Root, e *entry) bool {
	name := filepath.FromSlash(e.Path)
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return false
	case e.Dir:
		return info.IsDir() && info.Mode().Perm() == e.dirMode()
	case e.Link != "":
		link, err := root.Readlink(name)
		return err == nil && filepath.ToSlash(link) == e.Link
	}
	return info.Mode().IsRegular() && info.Size() == e.Size && info.Mode().Perm() == e.fileMode() && info.ModTime().Equal(stamp)
}

// dirMode returns the mode of a directory, which this process must be able to list and change.
func (e *entry) dirMode() fs.FileMode { return fs.FileMode(e.Mode).Perm() | 0o700 }

// fileMode returns the mode of a file, which this process must be able to read.
func (e *entry) fileMode() fs.FileMode { return fs.FileMode(e.Mode).Perm() | 0o400 }

func makeDir(root *os.Root, e *entry) error {
	name := filepath.FromSlash(e.Path)
	if info, err := root.Lstat(name); err == nil && !info.IsDir() {
		if err := root.RemoveAll(name); err != nil {
			return err
		}
	}
	if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return root.Chmod(name, e.dirMode())
}

// put writes a file or link and replaces an existing one.
func (u *unpacker) put(ctx context.Context, root *os.Root, e *entry) error {
	name := filepath.FromSlash(e.Path)
	if info, err := root.Lstat(name); err == nil && info.IsDir() {
		if err := root.RemoveAll(name); err != nil {
			return fmt.Errorf("%s: %w", e.Path, err)
		}
	}
	tmp, err := u.beside(ctx, root, e)
	if err == nil {
		err = root.Rename(tmp, name)
	}
	if err != nil {
		_ = root.Remove(tmp)
		return fmt.Errorf("%s: %w", e.Path, err)
	}
	return nil
}

// beside creates an entry under a temporary name, which it returns.
func (u *unpacker) beside(ctx context.Context, root *os.Root, e *entry) (tmp string, err error) {
	tmp = filepath.Join(filepath.FromSlash(path.Dir(e.Path)), tempPrefix+rand.Text())
	if e.Link != "" {
		return tmp, root.Symlink(filepath.FromSlash(e.Link), tmp)
	}
	f, err := root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return tmp, err
	}
	if e.Hash == "" {
		_, err = f.Write(e.Data)
	} else {
		var n int64
		if n, err = fetchTo(ctx, u.store, e.Hash, f, e.Size); err == nil && n != e.Size {
			err = fmt.Errorf("object %s has %d bytes, want %d as in the manifest", e.Hash, n, e.Size)
		}
	}
	if err == nil {
		err = f.Chmod(e.fileMode())
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = root.Chtimes(tmp, stamp, stamp)
	}
	return tmp, err
}

// repos creates the repositories. A repository is complete if the list of its commits exists
// next to it.
func (u *unpacker) repos(dir string) error {
	for i, r := range u.manifest.Repos {
		at := filepath.Join(dir, repoName(i))
		want, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if have, err := os.ReadFile(filepath.Join(at, "waza-commits")); err == nil && bytes.Equal(have, want) {
			continue
		}
		if err := workspace.RemoveAll(at); err != nil {
			return err
		}
		for _, id := range r.Commits {
			if err := u.commit(id, at); err != nil {
				return err
			}
		}
		if err := os.MkdirAll(at, 0o700); err != nil { // for a repository without commits
			return err
		}
		if err := os.WriteFile(filepath.Join(at, "waza-commits"), want, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// commit adds the pack of a commit to a repository.
func (u *unpacker) commit(id, at string) error {
	name := packName(id)
	ctx, cancel := context.WithCancelCause(u.ctx)
	defer cancel(nil)
	r, err := u.store.Get(ctx, name)
	if err != nil {
		return fmt.Errorf("object %s: %w", name, err)
	}
	defer r.Close()
	// Git checks each object against its id, and so all of them against the commit id.
	return checkout.Unpack(ctx, &most{r, u.limits.FileBytes, cancel}, id, at)
}

// most is a reader that fails after a number of bytes.
type most struct {
	r    io.Reader
	left int64
	stop context.CancelCauseFunc
}

func (m *most) Read(b []byte) (int, error) {
	n, err := m.r.Read(b)
	if m.left -= int64(n); m.left < 0 {
		m.stop(files.ErrTooLarge)
		return 0, files.ErrTooLarge
	}
	return n, err
}
