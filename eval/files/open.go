// Package files opens, copies and replaces files that a suite or a user names. [OpenWithin]
// opens a file of a suite, [Open] any other, [Copy] copies one, and [Replace] writes one. A
// [View] is the disk with the unsaved files of an editor over it.
//
// The functions never wait for another process, follow a link out of its directory, or read
// without a limit.
package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// The reasons for refusing a file. Errors of this package wrap them.
var (
	ErrNotRegular = errors.New("not a regular file")
	ErrTooLarge   = errors.New("file too large")
	ErrEscapes    = errors.New("leads out of the directory that must contain it")
)

// Open opens a regular file for reading. It returns at once for any file at path: a pipe, which
// would otherwise wait for a writer, a device and a socket give [ErrNotRegular]. It checks the
// type of the open file, so that replacing the file between two steps has no effect. The caller
// closes the file.
func Open(path string) (*os.File, error) {
	return open(path, os.Stat, os.OpenFile)
}

// OpenWithin is like [Open], but returns [ErrEscapes] if path, after all symbolic links are
// followed, is neither dir nor below it. Links can be absolute if they lead back into dir. dir
// itself can be reached through links. The caller closes the file.
func OpenWithin(dir, path string) (*os.File, error) {
	root, rel, err := openRoot(dir, path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return OpenIn(root, rel)
}

// OpenIn is like [Open], for a file below an open root, which refuses links that lead out of it.
func OpenIn(root *os.Root, name string) (*os.File, error) {
	return open(name, root.Stat, root.OpenFile)
}

// openRoot opens dir, and returns the path of a file below it without links. It resolves that
// path first because an os.Root refuses absolute links. A link that is added to the path
// afterwards cannot lead out of the root.
func openRoot(dir, path string) (root *os.Root, rel string, err error) {
	realDir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, "", err
	}
	rel, err = filepath.Rel(realDir, real)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, "", &fs.PathError{Op: "open", Path: path, Err: ErrEscapes}
	}
	root, err = os.OpenRoot(realDir)
	return root, rel, err
}

// open checks a file before it opens it, because opening a device can have effects. It checks
// again afterwards, because the file may have been replaced meanwhile.
func open(
	path string, stat func(string) (os.FileInfo, error),
	openFile func(string, int, os.FileMode) (*os.File, error),
) (*os.File, error) {
	info, err := stat(path)
	if err == nil {
		err = checkRegular(info)
	}
	if err != nil {
		return nil, err
	}
	f, err := openFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ENXIO) {
		return nil, fmt.Errorf("%w: a socket", ErrNotRegular)
	}
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = checkRegular(info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func checkRegular(info os.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %s", ErrNotRegular, TypeOf(info.Mode()))
	}
	return nil
}

// TypeOf returns the type of a file that is not regular, for messages.
func TypeOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}

// Within reports whether path is dir or below it, both literally and after all symbolic links
// are followed. A path that does not exist is compared literally.
func Within(dir, path string) bool {
	if !isBelow(dir, path) {
		return false
	}
	realDir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return true
	}
	real, err := filepath.EvalSymlinks(path)
	return err != nil || isBelow(realDir, real)
}

// isBelow reports whether path is dir or below it, literally.
func isBelow(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// WithoutPath returns an error of the file system without its path, and other errors unchanged.
func WithoutPath(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// Reason returns the text of a file system error without the path.
func Reason(err error) string { return WithoutPath(err).Error() }
