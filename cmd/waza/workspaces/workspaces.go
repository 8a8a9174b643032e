// Package workspaces writes the workspaces of a run that has ended to a directory, for people to
// inspect. Call [Keep].
package workspaces

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"waza/eval/text"
	"waza/runner/journal"
	"waza/runner/record"
	"waza/runner/workspace"
)

// Keep writes the files that each trial left in its workspace to dir/TASK/TRIAL. It returns the
// number of trials that left files. Files that the record omits, such as files beyond its
// limits, are missing.
func Keep(h record.Handle, dir string) (n int, err error) {
	opened, err := h.Blobs()
	if err != nil {
		return 0, err
	}
	defer opened.Close()
	blobs, ok := opened.(*journal.BlobReader)
	if !ok {
		return 0, errors.New("the record of the run contains no files")
	}
	err = h.Trials(func(_ int, t *record.Trial) error {
		if t.Workspace == nil || len(t.Workspace.Entries) == 0 {
			return nil
		}
		path := filepath.Join(dir, name(t.TaskID), fmt.Sprint(t.TrialNum))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := workspace.Restore(t.Workspace, path, blobs); err != nil {
			return fmt.Errorf("task %s, trial %d: %w", t.TaskID, t.TrialNum, err)
		}
		n++
		return nil
	})
	return n, err
}

// name returns a directory name for the id of a task.
func name(id string) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-#", r) {
			return r
		}
		return '-'
	}, id)
	if clean = text.Head(strings.TrimLeft(clean, "."), 100); clean == "" {
		return "task"
	}
	return clean
}
