package watch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/fsnotify/fsnotify"
)

// Error says that changes of files cannot be noticed, all or some of them.
type Error struct {
	Err error
	// Hint says what to do about it; may be empty.
	Hint string
}

func (e *Error) Error() string { return fmt.Sprintf("files cannot be watched: %v", e.Err) }

func (e *Error) Unwrap() error { return e.Err }

func watchError(err error) error {
	if err == nil {
		return nil
	}
	e := &Error{Err: err}
	switch {
	case errors.Is(err, syscall.ENOSPC):
		e.Err = errors.New("too many directories are watched on this machine")
		e.Hint = "raise the limit, sudo sysctl fs.inotify.max_user_watches=524288, or end other programs that watch files"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		e.Err = errors.New("too many programs of this user watch files, or too many files are open")
		e.Hint = "raise the limits, sudo sysctl fs.inotify.max_user_instances=512 and ulimit -n, or end other programs that watch files"
	}
	return e
}

// fileWatch notices when one of a set of files and directories may have changed.
// What it watches are directories, for files are replaced rather than written to:
// those of the files, those in which others may appear and, where one is not
// there, the nearest above it. All paths are without links, as those of events
// are: a link is watched where it stands, and what it leads to where that is.
type fileWatch struct {
	notify *fsnotify.Watcher
	// watched are the directories, with what they were when they were added: one
	// that was made anew has to be added anew.
	watched map[string]os.FileInfo
	// files are the paths that matter and all that lead to them; dirs are
	// directories of which everything does.
	files, dirs map[string]bool
}

func newFileWatch() (*fileWatch, error) {
	n, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, watchError(err)
	}
	return &fileWatch{notify: n, watched: map[string]os.FileInfo{}}, nil
}

func (w *fileWatch) close() { w.notify.Close() }

// concerns reports whether an event may have changed one of the files.
func (w *fileWatch) concerns(e fsnotify.Event) bool {
	return e.Op != fsnotify.Chmod && (w.files[e.Name] || w.dirs[filepath.Dir(e.Name)] || w.dirs[e.Name]) ||
		e.Op == fsnotify.Chmod && w.files[e.Name] // it may be executable now
}

// set watches these paths and no others; they are absolute. It reports whether
// more directories are watched than before: what happened there until now was not
// noticed. An error tells of what is not watched; all else is.
func (w *fileWatch) set(paths []string) (more bool, err error) {
	w.files, w.dirs = map[string]bool{}, map[string]bool{}
	wanted := map[string]bool{}
	for _, path := range paths {
		w.want(filepath.Join(resolved(filepath.Dir(path)), filepath.Base(path)), wanted)
		if real, err := filepath.EvalSymlinks(path); err == nil {
			w.want(real, wanted)
		}
	}
	for dir, before := range w.watched {
		now, err := os.Stat(dir)
		if !wanted[dir] || err != nil || !os.SameFile(before, now) {
			_ = w.notify.Remove(dir) // it may be gone by itself
			delete(w.watched, dir)
		}
	}
	for dir := range wanted {
		if w.watched[dir] != nil {
			continue
		}
		info, serr := os.Stat(dir)
		if serr != nil {
			more = true // it has just gone: look again
			continue
		}
		if aerr := w.notify.Add(dir); aerr != nil {
			err = watchError(aerr)
			continue
		}
		w.watched[dir], more = info, true
	}
	return more, err
}

// want adds the directories to watch for a path.
func (w *fileWatch) want(path string, wanted map[string]bool) {
	w.files[path] = true
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		w.dirs[path], wanted[path] = true, true
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		w.files[dir] = true // when it is made or goes, so may the path
		info, err := os.Stat(dir)
		if err == nil && info.IsDir() {
			wanted[dir] = true
			return
		}
		if dir == filepath.Dir(dir) {
			return
		}
	}
}

// resolved is a path without links, as far as there is such a path.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if up := filepath.Dir(path); up != path {
		return filepath.Join(resolved(up), filepath.Base(path))
	}
	return path
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
