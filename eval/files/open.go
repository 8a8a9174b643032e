// Package files opens, copies and replaces files that somebody else named: a
// suite, or the user who asked for a report. [OpenWithin] reads a file of a suite,
// [Open] any other, [Copy] copies one, and [Replace] writes one. A [View] is the disk
// with the unsaved files of an editor over it.
//
// Nothing here waits for another process, follows a link out of its directory, or
// reads without end.
package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// The reasons why a file is refused. Errors of this package wrap them.
var (
	ErrNotRegular = errors.New("not a regular file")
	ErrTooLarge   = errors.New("file too large")
	ErrEscapes    = errors.New("leads out of the directory it must stay in")
)

// Open opens a regular file for reading. It returns at once whatever is at path: a
// pipe, which would otherwise wait for a writer, a device and a socket are
// [ErrNotRegular]. The type is that of the open file, so that replacing the file
// between two steps makes no difference. The caller closes the file.
func Open(path string) (*os.File, error) {
	return open(path, os.Stat, os.OpenFile)
}

// OpenWithin is [Open] for a file that must be dir or below it after all symbolic
// links are followed; any other is [ErrEscapes]. Links may be absolute as long as
// they lead back into dir. dir itself may be reached through links. The caller
// closes the file.
func OpenWithin(dir, path string) (*os.File, error) {
	root, rel, err := openRoot(dir, path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return OpenIn(root, rel)
}

// OpenIn is [Open] for a file below an open root, which refuses links that lead out
// of it.
func OpenIn(root *os.Root, name string) (*os.File, error) {
	return open(name, root.Stat, root.OpenFile)
}

// openRoot opens dir, and returns the path of a file below it without links. That
// path is resolved first because an os.Root refuses absolute links. A link that is
// put into the path afterwards cannot lead out of the root.
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

// open looks at a file before it opens it, because opening a device can have
// effects, and again afterwards, because it may have been replaced meanwhile.
func open(path string, stat func(string) (os.FileInfo, error), openFile func(string, int, os.FileMode) (*os.File, error)) (*os.File, error) {
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

// TypeOf names the type of a file that is not a regular one, for messages.
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

// Within reports whether path is dir or below it, first as it is written and then
// after all symbolic links are followed. A path that does not exist counts as it
// is written.
func Within(dir, path string) bool {
	if !local(dir, path) {
		return false
	}
	realDir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return true
	}
	real, err := filepath.EvalSymlinks(path)
	return err != nil || local(realDir, real)
}

// local reports whether path is dir or below it as both are written.
func local(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// Reason returns what an error of the file system says, without the path that it
// repeats.
func Reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
