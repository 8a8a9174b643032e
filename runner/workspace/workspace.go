// Package workspace creates the directory in which a trial works, and records its final content.
// Fill a [Workspace] and call its Dir method, which creates the directory when it is first
// needed.
package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"waza/eval"
	"waza/eval/files"
	"waza/runner/internal/checkout"
	"waza/runner/internal/secrets"
	"waza/runner/journal"
	"waza/runner/record"
)

// Workspace is the directory of one attempt. It is created on first use, because many trials
// never touch a file. It remains until Close, because graders read what the executor left. It is
// safe for concurrent use.
type Workspace struct {
	Ctx context.Context // of the attempt: files are copied until it ends
	// Path is the directory. If it is empty, Dir sets it to that of an attempt at the trial of an
	// order, below Parent.
	Path    string
	Parent  string
	Order   *record.Order
	Attempt int

	Suite *eval.Suite
	Task  *eval.Task
	Fill  func(text string) string // expands template variables of inline content
	// Repos are checked out before the task's files are written.
	Repos []record.Checkout
	// Planned maps the paths of the task's files to the hashes of their contents when the run was
	// planned. An agent can have changed them since. Files that it lacks can have any content.
	Planned map[string]string
	// From is the snapshot of a recorded trial to restore. If it is nil, the workspace contains
	// the task's files. blobs contains its contents.
	From  *record.Snapshot
	Blobs *journal.BlobReader
	// Spares provides the directory and keeps it afterwards, if it has not changed. All processes
	// that know the directory must have ended at Close. Nil means a new directory.
	Spares *Spares

	mu      sync.Mutex // guards the fields below
	made    bool
	err     error
	gone    bool
	root    *os.Root         // the original directory, whatever the agent does to its path; nil before it is created
	started *record.Snapshot // initial content for the agent; nil means the task's files
	added   []eval.InputFile // files that followed while the agent waited
	written []givenFile      // files that commands of the suite wrote while the agent waited
	unread  string           // why written lacks files; empty if it is complete
}

var errWorkspaceGone = errors.New("the trial has ended and its workspace was removed")

// Dir returns the directory, which contains the task's files.
func (w *Workspace) Dir() (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone {
		return "", errWorkspaceGone
	}
	if !w.made {
		w.made = true
		if w.Path == "" {
			w.Path = filepath.Join(w.Parent, dirName(w.Order.TaskNum, w.Order.TaskID, w.Order.Num, w.Attempt))
		}
		w.err = w.makeLocked()
	}
	return w.Path, w.err
}

func (w *Workspace) makeLocked() error {
	if w.From != nil {
		if err := Restore(w.From, w.Path, w.Blobs); err != nil {
			return fmt.Errorf("cannot restore the workspace: %w", err)
		}
		return w.openLocked()
	}
	if w.root = w.Spares.take(w.Path); w.root == nil {
		if err := os.MkdirAll(w.Path, 0o700); err != nil {
			return fmt.Errorf("workspace: %w", err)
		}
		if err := w.openLocked(); err != nil {
			return err
		}
	}
	for _, r := range w.Repos {
		if err := checkout.Make(w.Ctx, r.Source, r.Commit, filepath.Join(w.Path, filepath.FromSlash(r.Dest))); err != nil {
			return fmt.Errorf("workspace: repos: %w", err)
		}
	}
	if err := w.putAll(w.Task.Inputs.Files); err != nil {
		return err
	}
	for _, target := range w.Task.Sandbox.Targets() {
		if err := w.root.MkdirAll(filepath.FromSlash(w.Task.Sandbox.Paths[target]), 0o755); err != nil {
			return fmt.Errorf("workspace: sandbox.paths %s: %w", target, files.WithoutPath(err))
		}
	}
	if dir := w.Task.Inputs.Workdir; dir != "" {
		if err := w.root.MkdirAll(filepath.FromSlash(dir), 0o755); err != nil {
			return fmt.Errorf("workspace: workdir %s: %w", dir, files.WithoutPath(err))
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

// Open returns the original directory. The agent may have replaced the directory at its path.
// The caller closes it.
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

// Destroyed describes how the agent deleted or replaced its workspace; empty when it did not.
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
	case now.Mode().Perm()&0o700 != 0o700: // graders need access
		_ = os.Chmod(w.Path, now.Mode().Perm()|0o700)
	}
	if made, err := w.root.Stat("."); err == nil && !os.SameFile(made, now) {
		return "the agent replaced its workspace by another directory"
	}
	return ""
}

// Add puts more files into the directory while the agent waits, or after its end. They replace anything that the
// agent left in their place. It returns a [BlockedError] if the agent prevents that.
func (w *Workspace) Add(list []eval.InputFile) error {
	if len(list) == 0 {
		return nil
	}
	if _, err := w.Dir(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone {
		return errWorkspaceGone
	}
	w.added = append(w.added, list...)
	for _, f := range list {
		if err := w.replace(f); err != nil {
			return inputFault(f, err)
		}
	}
	return nil
}

func (w *Workspace) putAll(list []eval.InputFile) error {
	for _, f := range list {
		if err := w.put(f); err != nil {
			return inputFault(f, err)
		}
	}
	return nil
}

func inputFault(f eval.InputFile, err error) error {
	return fmt.Errorf("workspace: file %s: %w", f.Path, err)
}

// put writes one input file before the agent starts. The root keeps it inside the workspace whatever its path contains.
func (w *Workspace) put(f eval.InputFile) error {
	name := filepath.FromSlash(f.Path)
	if dir := filepath.Dir(name); dir != "." {
		if err := w.root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return w.write(f, func(perm fs.FileMode) (*os.File, error) {
		return w.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	})
}

// write writes the content of an input file to the file that create returns.
func (w *Workspace) write(f eval.InputFile, create func(perm fs.FileMode) (*os.File, error)) error {
	if f.Content != nil {
		dst, err := create(0o644)
		if err != nil {
			return err
		}
		_, err = dst.WriteString(w.Fill(*f.Content))
		return cmp.Or(err, dst.Close())
	}
	src, err := w.Suite.Open(f.Source)
	if err != nil {
		return err
	}
	defer src.Close()
	info, err := src.Stat()
	if err != nil {
		return err
	}
	if err := files.CheckBytes(info.Size(), eval.MaxFixtureBytes); err != nil {
		return err
	}
	dst, err := create(info.Mode().Perm() | 0o600)
	if err != nil {
		return err
	}
	to, copied := io.Writer(dst), (*files.Hasher)(nil)
	planned := w.Planned[f.Source]
	if planned != "" { // an agent that lives can change the new file, so that is not read
		copied = files.NewHasher()
		to = io.MultiWriter(dst, copied)
	}
	err = files.Copy(w.Ctx, to, src, eval.MaxFixtureBytes)
	if err = cmp.Or(err, dst.Close()); err == nil && planned != "" && copied.Digest() != planned {
		err = &record.ChangedError{File: f.Source}
	}
	return err
}

// Snapshot records the content of the directory; nil when the workspace was never used.
func (w *Workspace) Snapshot(ctx context.Context, blobs Keeper, secrets *secrets.Redactor) *record.Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.made || w.err != nil || w.gone {
		return nil
	}
	return takeSnapshot(ctx, w.root, w.givenLocked(), blobs, secrets)
}

// Close removes the directory with its contents, or gives it to Spares.
func (w *Workspace) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = true
	if !w.made {
		return nil
	}
	path, kept := w.Path, false
	if w.root != nil {
		path, kept = w.Spares.keep(path, w.root)
		w.root.Close()
	}
	if kept {
		return nil
	}
	return RemoveAll(path)
}

// RemoveAll removes a tree, including directories without write permission, which agents and
// package managers leave.
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

// TreeSize returns the total size of the files below a path in bytes. It ignores files that it
// cannot read or that disappear in the meantime.
func TreeSize(path string) (bytes int64) {
	_ = filepath.WalkDir(path, func(_ string, d os.DirEntry, err error) error {
		if err != nil {
			return nil // ignored, see above
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}

// dirName returns the name of the directory of an attempt, below that of its run.
func dirName(task int, id string, trial, attempt int) string {
	return fmt.Sprintf("%d-%s-%d-%d", task, fileName(id), trial, attempt)
}

// fileName turns a task id into a part of a file name.
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
