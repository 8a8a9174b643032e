package container

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// copyIn copies directories and files of a program into a container. They belong to the container's user
// there, as does the home directory, which can be empty.
func (c *Containers) copyIn(b *box, home string, paths []string, places []Place) error {
	if home == "" && len(paths) == 0 {
		return nil
	}
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := writeArchive(w, home, paths, places)
		w.CloseWithError(err)
		written <- err
	}()
	err := c.engine.run(context.Background(), copyTime, r, nil, "cp", "--archive", "-", b.name+":/")
	r.CloseWithError(errors.New("the copy has ended"))
	if fault := <-written; err == nil && fault != nil {
		err = fault // the engine has got an incomplete archive
	}
	if err != nil {
		return fmt.Errorf("files cannot be copied into the container: %w", err)
	}
	return nil
}

// writeArchive writes an archive with directories and files, named as below the root directory, and
// an empty home directory. Directories that are elsewhere are named by their places. It leaves out
// sockets, pipes and devices.
func writeArchive(w io.Writer, home string, paths []string, places []Place) error {
	t := tar.NewWriter(w)
	if home != "" {
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: nameInside(home) + "/", Mode: 0o700, ModTime: time.Now()}); err != nil {
			return err
		}
	}
	for _, path := range paths {
		if err := writeTree(t, path, places); err != nil {
			return err
		}
	}
	return t.Close()
}

func nameInside(path string) string {
	return strings.TrimPrefix(filepath.ToSlash(filepath.Clean(path)), "/")
}

// writeTree adds a directory with everything below it, or a file.
func writeTree(t *tar.Writer, path string, places []Place) error {
	dir, only := path, "."
	if info, err := os.Stat(path); err != nil {
		return err
	} else if !info.IsDir() {
		dir, only = filepath.Split(path)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return walk(t, root, only, dir, places)
}

// walk adds a file of root, or a directory with everything below it. dir is the path of root in the
// archive, except for directories with places.
func walk(t *tar.Writer, root *os.Root, only, dir string, places []Place) error {
	info, err := root.Lstat(only)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, only)
	if p := placeAt(places, path); p != nil {
		err = p.write(t, places, info.ModTime())
	} else {
		err = writeFile(t, root, only, nameInside(pathInside(places, path)), info)
	}
	if err != nil || !info.IsDir() {
		return err
	}
	names, err := namesIn(root, only)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := walk(t, root, filepath.Join(only, name), dir, places); err != nil {
			return err
		}
	}
	return nil
}

// namesIn returns the names in a directory of root, in their order. Unlike those of [os.Root.FS], they can be any bytes.
func namesIn(root *os.Root, dir string) ([]string, error) {
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// writeArchiveOf writes an archive with a file or a directory of root, as the engine does: named by its
// last element.
func writeArchiveOf(w io.Writer, root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return errGone
	}
	if err != nil {
		return err
	}
	t := tar.NewWriter(w)
	if !info.IsDir() {
		if err := writeFile(t, root, name, path.Base(name), info); err != nil {
			return err
		}
		return t.Close()
	}
	below, err := root.OpenRoot(name)
	if err != nil {
		return err
	}
	defer below.Close()
	if err := walk(t, below, ".", "/"+path.Base(name), nil); err != nil {
		return err
	}
	return t.Close()
}

// transfer passes an archive from one function to another.
func transfer(write func(*os.File) error, read func(*os.File) error) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	written := make(chan error, 1)
	go func() {
		err := write(w)
		w.Close()
		written <- err
	}()
	err = read(r)
	if err == nil {
		_, err = io.Copy(io.Discard, r)
	}
	r.Close()
	if fault := <-written; fault != nil && err == nil {
		err = fault
	}
	return err
}

// unpack extracts an archive that waza itself wrote into a directory.
func unpack(dir string, archive io.Reader) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	x := &extraction{root: root, whole: true, left: math.MaxInt64 - 1, modes: map[string]fs.FileMode{}}
	return x.read(tar.NewReader(archive))
}

// writeFile adds one file of root to an archive.
func writeFile(t *tar.Writer, root *os.Root, name, inside string, info fs.FileInfo) error {
	h := &tar.Header{Name: inside, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime()}
	switch {
	case info.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, inside+"/"
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := root.Readlink(name)
		if err != nil {
			return err
		}
		h.Typeflag, h.Linkname = tar.TypeSymlink, to
	case info.Mode().IsRegular():
		f, err := root.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		h.Typeflag, h.Size = tar.TypeReg, info.Size()
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.CopyN(t, f, info.Size()); err != nil {
			return fmt.Errorf("%s: changed while it was read: %w", inside, err)
		}
		return nil
	default:
		return nil
	}
	return t.WriteHeader(h)
}

// copyOut replaces a directory or file by the one in a container. Directories in it that are elsewhere
// in the container are replaced by those.
func (c *Containers) copyOut(b *box, p *Program, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	dir, only := path, ""
	if !info.IsDir() {
		dir, only = filepath.Dir(path), filepath.Base(path)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	err = c.copyTo(b, pathInside(p.Places, path), root, only, p.MaxOut)
	if errors.Is(err, errGone) {
		return os.RemoveAll(path)
	}
	if err != nil || only != "" {
		return err
	}
	for _, place := range below(p.Places, path) {
		if err := c.copyPlace(b, root, path, place, p.MaxOut); err != nil {
			return err
		}
	}
	return nil
}

// copyPlace replaces a directory in root, whose path is dir, by the one at its place in a container. The
// program can have replaced the directories above by links or files.
func (c *Containers) copyPlace(b *box, root *os.Root, dir string, place Place, limit int64) error {
	rel, err := filepath.Rel(dir, place.Source)
	if err != nil {
		return err
	}
	for above := "."; above != rel; {
		name, _, _ := strings.Cut(strings.TrimPrefix(rel, above+"/"), "/")
		if above = filepath.Join(above, name); above == rel {
			break
		}
		if info, err := root.Lstat(above); err == nil && !info.IsDir() {
			if err := root.Remove(above); err != nil {
				return err
			}
		}
	}
	if err := root.RemoveAll(rel); err != nil { // the link to the place
		return err
	}
	if err := root.MkdirAll(rel, 0o700); err != nil {
		return err
	}
	at, err := root.OpenRoot(rel)
	if err != nil {
		return err
	}
	defer at.Close()
	err = c.copyTo(b, place.Target, at, "", limit)
	if errors.Is(err, errGone) {
		return root.RemoveAll(rel)
	}
	return err
}

// copyTo replaces the content of a directory, or the one file only of it, by that at a path of a container.
func (c *Containers) copyTo(b *box, inside string, root *os.Root, only string, limit int64) error {
	return c.copyFrom(b, inside, func(r io.Reader) error { return replaceIn(root, only, r, limit) })
}

// copyFrom passes an archive with a directory or a file of a container to a function.
func (c *Containers) copyFrom(b *box, inside string, read func(io.Reader) error) error {
	r, w := io.Pipe()
	copied := make(chan error, 1)
	go func() {
		err := c.engine.run(context.Background(), copyTime, nil, w, "cp", b.name+":"+inside, "-")
		w.CloseWithError(cmp.Or(err, io.EOF))
		copied <- err
	}()
	err := read(r)
	if err == nil {
		_, err = io.Copy(io.Discard, r) // the engine writes blocks of zeros at the end
	}
	r.CloseWithError(errTooLarge)
	if fault := <-copied; fault != nil && (err == nil || errors.Is(err, fault)) {
		err = fault
		if isMissing(fault, inside) || isTooLong(fault) {
			err = errGone
		}
	}
	return err
}

// errGone is the error of a directory that a program removed, replaced by something else, or filled with paths that
// nobody can copy.
var errGone = errors.New("the directory became something else")

// isMissing reports whether an error of the engine's command cp means that a path does not exist in a container.
// Engines have no exit code for it.
func isMissing(err error, inside string) bool {
	text := strings.ToLower(err.Error())
	return strings.Contains(text, strings.ToLower(path.Base(inside))) &&
		slices.ContainsFunc([]string{"no such file or directory", "could not find the file", "not a directory"}, func(s string) bool { return strings.Contains(text, s) })
}

// isTooLong reports whether an error of the engine means that a program made a path that is longer than the system
// allows, by directories in directories.
func isTooLong(err error) bool {
	return err != nil && strings.Contains(strings.ToLower(err.Error()), syscall.ENAMETOOLONG.Error())
}

var errTooLarge = errors.New("the copy has ended")

// replace replaces the content of a directory, or a file, by that of an archive whose first entry
// is the directory or file. It is written by programs that nobody trusts.
func replace(path string, archive io.Reader, limit int64) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	dir, only := path, ""
	if !info.IsDir() {
		dir, only = filepath.Dir(path), filepath.Base(path)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return replaceIn(root, only, archive, limit)
}

// replaceIn is like replace, for a directory or the one file only of it.
func replaceIn(root *os.Root, only string, archive io.Reader, limit int64) error {
	if limit <= 0 {
		limit = math.MaxInt64 - 1
	}
	x := &extraction{root: root, only: only, left: limit, limit: limit, modes: map[string]fs.FileMode{}}
	if only == "" {
		if err := removeContent(root); err != nil {
			return err
		}
	}
	return x.read(tar.NewReader(archive))
}

// removeContent removes everything in a directory.
func removeContent(root *os.Root) error {
	list, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	for _, d := range list {
		if err := root.RemoveAll(d.Name()); err != nil {
			return err
		}
	}
	return nil
}

// extraction reads an archive into a directory.
type extraction struct {
	root        *os.Root
	only        string // the one file to replace; empty means all
	whole       bool   // names are those of root, not of a directory in which it is
	started     bool   // the first entry is read
	left, limit int64
	modes       map[string]fs.FileMode // of directories, which are set at the end
}

// ErrDisk is the error of files that are larger than the limit of a program.
var ErrDisk = errors.New("too large")

// entrySize is how many bytes an entry of an archive counts besides its content.
const entrySize = 512

func (x *extraction) read(t *tar.Reader) error {
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return x.setModes()
		}
		if err != nil {
			return err
		}
		if x.left -= entrySize + max(0, h.Size); x.left < 0 {
			return fmt.Errorf("%w: it has more than %d bytes, config.sandbox.limits.disk", ErrDisk, x.limit)
		}
		if err := x.entry(t, h); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
}

// inside returns the name of an entry below the directory that the archive contains.
func inside(name string) (string, bool) {
	name = path.Clean(strings.TrimPrefix(name, "/"))
	_, rest, below := strings.Cut(name, "/")
	if !below {
		rest = "."
	}
	return rest, filepath.IsLocal(name)
}

func (x *extraction) entry(t *tar.Reader, h *tar.Header) error {
	name, ok := inside(h.Name)
	if x.whole {
		name = path.Clean(h.Name)
		if err := x.root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
	}
	if !ok {
		return errors.New("the name leads out of the directory")
	}
	if x.only != "" {
		if name != "." || h.Typeflag != tar.TypeReg {
			return errors.New("the file became something else")
		}
		name = x.only
	}
	if !x.started && !x.whole && x.only == "" && h.Typeflag != tar.TypeDir {
		return errGone
	}
	x.started = true
	mode := fs.FileMode(h.Mode).Perm()
	switch h.Typeflag {
	case tar.TypeDir:
		if name != "." {
			x.modes[name] = mode | 0o700 // so that this user can delete it
			return x.root.MkdirAll(name, 0o700)
		}
		return nil
	case tar.TypeReg:
		return x.file(t, name, mode|0o600, h.ModTime)
	case tar.TypeSymlink:
		return x.root.Symlink(h.Linkname, name)
	case tar.TypeLink:
		to, ok := inside(h.Linkname)
		if !ok {
			return errors.New("the link leads out of the directory")
		}
		return x.root.Link(to, name)
	}
	return nil // pipes and devices
}

func (x *extraction) file(r io.Reader, name string, mode fs.FileMode, modified time.Time) error {
	f, err := x.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(f, r); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil { // regardless of the umask
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return x.root.Chtimes(name, modified, modified)
}

// setModes sets the permissions of directories, the deepest first.
func (x *extraction) setModes() error {
	names := make([]string, 0, len(x.modes))
	for name := range x.modes {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(b, "/"), strings.Count(a, "/")), cmp.Compare(a, b))
	})
	for _, name := range names {
		if err := x.root.Chmod(name, x.modes[name]); err != nil {
			return err
		}
	}
	return nil
}

// variable returns the value of a variable in an environment. The last one counts.
func variable(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}
