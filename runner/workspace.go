package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"waza/eval"
	"waza/eval/files"
	"waza/runner/journal"
	"waza/runner/provider"
)

// workspace is the directory of one attempt. It is made when somebody first
// asks for it, for many a trial never touches a file, and stays until close:
// graders read what the executor left. It is safe for concurrent use.
type workspace struct {
	ctx   context.Context // of the attempt: files are copied until it ends
	path  string
	suite *eval.Suite
	task  *eval.Task
	fill  func(text string) string // expands template variables of inline content
	// from is what the executor left, of a recorded trial; nil means that the
	// task's files are what is in the workspace. blobs holds its contents.
	from  *Snapshot
	blobs *journal.BlobReader

	mu    sync.Mutex // guards the fields below
	made  bool
	err   error
	gone  bool
	root  *os.Root  // the directory as it was made, whatever the agent does to its path; nil before
	begun *Snapshot // what the agent began with; nil: the task's files
}

var errWorkspaceGone = errors.New("the trial has ended and its workspace is gone")

// dir returns the directory, which holds the task's files.
func (w *workspace) dir() (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone {
		return "", errWorkspaceGone
	}
	if !w.made {
		w.made = true
		w.err = w.makeLocked()
	}
	return w.path, w.err
}

func (w *workspace) makeLocked() error {
	if w.from != nil {
		if err := w.from.Restore(w.path, w.blobs); err != nil {
			return fmt.Errorf("the workspace cannot be restored: %w", err)
		}
		return w.openLocked()
	}
	if err := os.MkdirAll(w.path, 0o700); err != nil {
		return fmt.Errorf("workspace: %w", err)
	}
	if err := w.openLocked(); err != nil {
		return err
	}
	for _, f := range w.task.Inputs.Files {
		if err := w.put(w.root, f); err != nil {
			return fmt.Errorf("workspace: file %s: %w", f.Path, err)
		}
	}
	return nil
}

func (w *workspace) openLocked() (err error) {
	if w.root, err = os.OpenRoot(w.path); err != nil {
		return fmt.Errorf("workspace: %w", err)
	}
	return nil
}

// open returns the directory as it was made: what the agent may have put at its
// path is another. The caller closes it.
func (w *workspace) open() (*os.Root, error) {
	if _, err := w.dir(); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone {
		return nil, errWorkspaceGone
	}
	return w.root.OpenRoot(".")
}

// destroyed says what the agent did to its workspace, if that is not the directory
// any more that the agent was given; else it is empty.
func (w *workspace) destroyed() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.root == nil || w.gone {
		return ""
	}
	now, err := os.Lstat(w.path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return "the agent deleted its workspace"
	case err != nil:
		return ""
	case now.Mode()&fs.ModeSymlink != 0:
		return "the agent replaced its workspace by a symbolic link"
	case !now.IsDir():
		return "the agent replaced its workspace by a file"
	case now.Mode().Perm()&0o700 != 0o700: // graders must get in
		_ = os.Chmod(w.path, now.Mode().Perm()|0o700)
	}
	if made, err := w.root.Stat("."); err == nil && !os.SameFile(made, now) {
		return "the agent replaced its workspace by another directory"
	}
	return ""
}

// put writes one input file. The root keeps it inside the workspace whatever its path says.
func (w *workspace) put(root *os.Root, f eval.InputFile) error {
	name := filepath.FromSlash(f.Path)
	if dir := filepath.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if f.Content != nil {
		return root.WriteFile(name, []byte(w.fill(*f.Content)), 0o644)
	}
	src, err := w.suite.Open(f.Source)
	if err != nil {
		return err
	}
	defer src.Close()
	return files.CopyTo(w.ctx, root, name, src, eval.MaxFixtureBytes)
}

// snapshot keeps what is in the directory; nil when nobody asked for one.
func (w *workspace) snapshot(ctx context.Context, blobs *journal.Blobs, secrets *provider.Redactor) *Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.made || w.err != nil || w.gone {
		return nil
	}
	return takeSnapshot(ctx, w.root, w.givenLocked(), blobs, secrets)
}

// close removes the directory with all the agent left in it.
func (w *workspace) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = true
	if !w.made {
		return nil
	}
	if w.root != nil {
		w.root.Close()
	}
	return removeAll(w.path)
}

// removeAll removes a tree, also one that holds directories without write
// permission, as agents and package managers leave them.
func removeAll(path string) error {
	err := os.RemoveAll(path)
	if err == nil || !errors.Is(err, os.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(path, func(p string, d os.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(p, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}

// workspaceName is the directory of an attempt, among those of its run.
func workspaceName(task int, id string, trial, attempt int) string {
	return fmt.Sprintf("%d-%s-%d-%d", task, fileName(id), trial, attempt)
}

// fileName makes a task id usable as part of a file name.
func fileName(id string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '_'
	}, id)
	return name[:min(len(name), 40)]
}
