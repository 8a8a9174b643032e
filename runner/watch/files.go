package watch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/fsnotify/fsnotify"

	"waza/eval/files"
)

// An Error reports that changes of some or all files cannot be noticed.
type Error struct {
	Err error
	// Hint describes what to do about it; may be empty.
	Hint string
}

func (e *Error) Error() string { return fmt.Sprintf("cannot watch files: %v", e.Err) }

func (e *Error) Unwrap() error { return e.Err }

func watchError(err error) error {
	if err == nil {
		return nil
	}
	e := &Error{Err: err}
	switch {
	case errors.Is(err, syscall.ENOSPC):
		e.Err = errors.New("this machine watches too many directories")
		e.Hint = "raise the limit with sudo sysctl fs.inotify.max_user_watches=524288, or end other programs that watch files"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		e.Err = errors.New("too many programs of this user watch files, or too many files are open")
		e.Hint = "raise the limits with sudo sysctl fs.inotify.max_user_instances=512 and ulimit -n, or end other programs that watch files"
	}
	return e
}

// fileWatch notices when one of a set of files and directories may have changed. It watches only
// directories, because programs replace files instead of writing to them. These are the
// directories of the files, those in which files may appear and, where one does not exist, its
// nearest existing parent. All paths are free of links, like those of events. For a link, both
// its own directory and that of its target are watched.
type fileWatch struct {
	notify *fsnotify.Watcher
	// watched maps the watched directories to their state when they were added, because a
	// directory that was created again has to be added again.
	watched map[string]os.FileInfo
	// files contains the relevant paths and all their parents. dirs contains directories in
	// which every file is relevant.
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

// set watches exactly the given absolute paths. more reports whether more directories are
// watched than before, whose earlier changes were not noticed. An error names the
// paths that are not watched; all others are.
func (w *fileWatch) set(paths []string) (more bool, err error) {
	w.files, w.dirs = map[string]bool{}, map[string]bool{}
	wanted := map[string]bool{}
	for _, path := range paths {
		w.addDirs(filepath.Join(files.RealPath(filepath.Dir(path)), filepath.Base(path)), wanted)
		if real, err := filepath.EvalSymlinks(path); err == nil {
			w.addDirs(real, wanted)
		}
	}
	for dir, before := range w.watched {
		now, err := os.Stat(dir)
		if !wanted[dir] || err != nil || !os.SameFile(before, now) {
			_ = w.notify.Remove(dir) // it may have been removed already
			delete(w.watched, dir)
		}
	}
	for dir := range wanted {
		if w.watched[dir] != nil {
			continue
		}
		info, serr := os.Stat(dir)
		if serr != nil {
			more = true // it was just removed: check again
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

// addDirs adds the directories to watch for a path.
func (w *fileWatch) addDirs(path string, wanted map[string]bool) {
	w.files[path] = true
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		w.dirs[path], wanted[path] = true, true
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		w.files[dir] = true // creating or removing it affects the path
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

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
