package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// stagesDir is the directory of incomplete runs, which no list shows.
const stagesDir = "staged"

// stageAge is the age from which another process removes a stage.
const stageAge = 24 * time.Hour

// A Stage is a directory in which a run is recorded completely before it becomes visible.
type Stage struct {
	// Store receives the run. It is a separate directory without other runs.
	Store *Store
	of    *Store
}

// NewStage creates a stage of a store, and removes old stages of killed processes. The caller
// closes it.
func (s *Store) NewStage() (*Stage, error) {
	parent := filepath.Join(s.dir, stagesDir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, StateError(err)
	}
	if old, err := os.ReadDir(parent); err == nil {
		for _, e := range old {
			if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > stageAge {
				_ = os.RemoveAll(filepath.Join(parent, e.Name()))
			}
		}
	}
	dir, err := os.MkdirTemp(parent, "")
	if err != nil {
		return nil, StateError(err)
	}
	staged := NewStore(dir)
	staged.Sync, staged.fsync, staged.keys = s.Sync, s.fsync, s.keys
	return &Stage{Store: staged, of: s}, nil
}

// Publish moves a run to the store in one step. The run's writer must be closed. The error is
// [os.ErrExist] when the store has a run with that id.
func (s *Stage) Publish(id string) error {
	if err := os.MkdirAll(s.of.RunsDir(), 0o700); err != nil {
		return StateError(err)
	}
	to := s.of.At(id).dir
	if _, err := os.Lstat(to); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("run %s: %w", id, os.ErrExist)
	}
	if err := os.Rename(s.Store.At(id).dir, to); err != nil {
		return StateError(err)
	}
	s.of.At(id).touch()
	return s.of.disk().syncDir(s.of.RunsDir())
}

// Close removes everything that was not published.
func (s *Stage) Close() error {
	err := os.RemoveAll(s.Store.dir)
	_ = os.Remove(filepath.Dir(s.Store.dir)) // fails if other stages exist
	return err
}
