package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"waza/eval"
	"waza/eval/files"
)

// BlockedError means that the agent keeps waza from putting a file into its workspace.
type BlockedError struct{ Err error }

func (e *BlockedError) Error() string {
	return fmt.Sprintf("the agent left something in its place that cannot be replaced: %v", files.WithoutPath(e.Err))
}

func (e *BlockedError) Unwrap() error { return e.Err }

// blocked turns an error at a place that the agent could change into a [BlockedError], unless it is a fault of the machine.
func blocked(err error) error {
	for _, fault := range []error{
		syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENAMETOOLONG,
		syscall.EINVAL, context.Canceled, context.DeadlineExceeded, os.ErrClosed,
	} {
		if errors.Is(err, fault) {
			return err
		}
	}
	return &BlockedError{err}
}

// replace writes one input file in place of anything that the agent left there. It follows no link, writes to no file of the
// agent, which can have other names, and opens no pipe, which would block.
func (w *Workspace) replace(f eval.InputFile) error {
	name := filepath.Clean(filepath.FromSlash(f.Path))
	return w.write(f, func(perm fs.FileMode) (*os.File, error) {
		file, err := createNew(w.root, name, perm)
		if err != nil {
			return nil, blocked(err)
		}
		return file, nil
	})
}

// createNew creates a file at a path, in place of anything else.
func createNew(root *os.Root, name string, perm fs.FileMode) (*os.File, error) {
	for i, c := range name {
		if os.IsPathSeparator(uint8(c)) && i > 0 {
			if err := makeFolder(root, name[:i]); err != nil {
				return nil, err
			}
		}
	}
	if err := removeIn(root, name); err != nil {
		return nil, err
	}
	return root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
}

// makeFolder makes a folder in place of anything else, or makes an existing one accessible.
func makeFolder(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	switch {
	case err == nil && info.IsDir():
		if perm := info.Mode().Perm(); perm&0o700 != 0o700 {
			return root.Chmod(name, perm|0o700)
		}
		return nil
	case err == nil:
		err = root.Remove(name)
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err != nil {
		return err
	}
	return root.Mkdir(name, 0o755)
}

// removeIn removes a tree below a root, including directories without permissions.
func removeIn(root *os.Root, name string) error {
	err := root.RemoveAll(name)
	if err == nil || !errors.Is(err, os.ErrPermission) {
		return err
	}
	_ = fs.WalkDir(root.FS(), filepath.ToSlash(name), func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = root.Chmod(filepath.FromSlash(path), 0o700)
		}
		return nil
	})
	return root.RemoveAll(name)
}
