// Package workspace makes the directory that a trial works in, and records what the
// trial left there. Fill a [Workspace] and call its Dir method, which creates the
// directory when it is first needed.
package workspace

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
	"waza/runner/record"
)

// Workspace is the directory of one attempt. It is made when somebody first
// asks for it, for many a trial never touches a file, and stays until close:
// graders read what the executor left. It is safe for concurrent use.
type Workspace struct {
	Ctx   context.Context // of the attempt: files are copied until it ends
	Path  string
	Suite *eval.Suite
	Task  *eval.Task
	Fill  func(text string) string // expands template variables of inline content
	// From is what the executor left, of a recorded trial; nil means that the
	// task's files are what is in the workspace. blobs holds its contents.
	From  *record.Snapshot
	Blobs *journal.BlobReader

	mu    sync.Mutex // guards the fields below
	made  bool
	err   error
	gone  bool
	root  *os.Root         // the directory as it was made, whatever the agent does to its path; nil before
	begun *record.Snapshot // what the agent began with; nil: the task's files
}

var errWorkspaceGone = errors.New("the trial has ended and its workspace is gone")

// Dir returns the directory, which holds the task's files.
func (w *Workspace) Dir() (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone {
		return "", errWorkspaceGone
	}
	if !w.made {
		w.made = true
		w.err = w.makeLocked()
	}
	return w.Path, w.err
}

func (w *Workspace) makeLocked() error {
	if w.From != nil {
		if err := Restore(w.From, w.Path, w.Blobs); err != nil {
			return fmt.Errorf("the workspace cannot be restored: %w", err)
		}
		return w.openLocked()
	}
	if err := os.MkdirAll(w.Path, 0o700); err != nil {
		return fmt.Errorf("workspace: %w", err)
	}
	if err := w.openLocked(); err != nil {
		return err
	}
	for _, f := range w.Task.Inputs.Files {
		if err := w.put(w.root, f); err != nil {
			return fmt.Errorf("workspace: file %s: %w", f.Path, err)
		}
	}
	return nil
}

func (w *Workspace) openLocked() (err error) {
	if w.root, err = os.OpenRoot(w.Path); err != nil {
		return fmt.Errorf("workspace: %w", err)
	}
	return nil
}

// Open returns the directory as it was made: what the agent may have put at its
// path is another. The caller closes it.
func (w *Workspace) Open() (*os.Root, error) {
	if _, err := w.Dir(); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone {
		return nil, errWorkspaceGone
	}
	return w.root.OpenRoot(".")
}

// Destroyed says what the agent did to its workspace, if that is not the directory
// any more that the agent was given; else it is empty.
func (w *Workspace) Destroyed() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.root == nil || w.gone {
		return ""
	}
	now, err := os.Lstat(w.Path)
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
		_ = os.Chmod(w.Path, now.Mode().Perm()|0o700)
	}
	if made, err := w.root.Stat("."); err == nil && !os.SameFile(made, now) {
		return "the agent replaced its workspace by another directory"
	}
	return ""
}

// put writes one input file. The root keeps it inside the workspace whatever its path says.
func (w *Workspace) put(root *os.Root, f eval.InputFile) error {
	name := filepath.FromSlash(f.Path)
	if dir := filepath.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if f.Content != nil {
		return root.WriteFile(name, []byte(w.Fill(*f.Content)), 0o644)
	}
	src, err := w.Suite.Open(f.Source)
	if err != nil {
		return err
	}
	defer src.Close()
	return files.CopyTo(w.Ctx, root, name, src, eval.MaxFixtureBytes)
}

// Snapshot keeps what is in the directory; nil when nobody asked for one.
func (w *Workspace) Snapshot(ctx context.Context, blobs *journal.Blobs, secrets *provider.Redactor) *record.Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.made || w.err != nil || w.gone {
		return nil
	}
	return takeSnapshot(ctx, w.root, w.givenLocked(), blobs, secrets)
}

// Close removes the directory with all the agent left in it.
func (w *Workspace) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = true
	if !w.made {
		return nil
	}
	if w.root != nil {
		w.root.Close()
	}
	return RemoveAll(w.Path)
}

// RemoveAll removes a tree, also one that holds directories without write
// permission, as agents and package managers leave them.
func RemoveAll(path string) error {
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

// Name is the directory of an attempt, among those of its run.
func Name(task int, id string, trial, attempt int) string {
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
