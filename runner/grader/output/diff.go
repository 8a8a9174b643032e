package output

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/text"
	"waza/runner/grader"
)

// Diff compares files of the workspace with snapshots.
var Diff = grader.KindOf(eval.Kind{
	Name:    "diff",
	Summary: "Compares files of the workspace with snapshots and fragments. The score is the share of checks met; all must be.",
}, checkDiff, newDiff)

// DiffOptions are the options of the diff grader.
type DiffOptions struct {
	// Files of the workspace and what is expected of them. Each must exist.
	ExpectedFiles []DiffFile `yaml:"expected_files"`
	// Directory of the snapshots, found as files of the suite are; the fixture directory when absent.
	ContextDir string `yaml:"context_dir" jsonschema_extras:"x-refers=suite-directory"`
	// Write what the agent made over the snapshots instead of comparing with them.
	UpdateSnapshots bool `yaml:"update_snapshots"`

	eval.Beside `yaml:"-"`
}

// DiffFile is one file of the workspace and what is expected of it.
type DiffFile struct {
	// File, relative to the workspace.
	Path string `yaml:"path" jsonschema:"required"`
	// File that it must equal byte for byte: in context_dir, else in the fixture directory, else relative to the suite,
	// to the repository's root, to the task file or to the process's directory.
	Snapshot string `yaml:"snapshot" jsonschema_extras:"x-refers=snapshot"`
	// Fragments: one that begins with + or with neither must be in the file, one that begins with - must not.
	Contains []string `yaml:"contains"`
}

// Refers names the snapshots.
func (o *DiffOptions) Refers(suite *eval.Suite, task *eval.Task) []string {
	dirs := o.snapshotDirs(suite, task)
	var files []string
	for _, f := range o.ExpectedFiles {
		if abs := o.findSnapshot(suite, dirs, f.Snapshot); f.Snapshot != "" && abs != "" {
			files = append(files, abs)
		}
	}
	return files
}

func checkDiff(c *eval.Check, o *DiffOptions) {
	dirs := o.snapshotDirs(c.Suite(), c.Task())
	if o.ContextDir != "" && len(dirs) == 0 {
		c.Errorf(decode.At("context_dir"), decode.CodeMissingFile, "context_dir: no such directory: %s", o.ContextDir)
	}
	snapshots := 0
	for i, f := range o.ExpectedFiles {
		grader.CheckLocal(c, decode.At("expected_files", i, "path"), f.Path)
		for j, fragment := range f.Contains {
			if _, text := fragmentRule(fragment); text == "" {
				c.Errorf(decode.At("expected_files", i, "contains", j), decode.CodeInvalidValue,
					"expected_files[%d].contains[%d] is empty, and every file contains that", i, j)
			}
		}
		if f.Snapshot == "" {
			continue
		}
		snapshots++
		at := decode.At("expected_files", i, "snapshot")
		if !grader.IsLocal(f.Snapshot) {
			c.Errorf(at, decode.CodeEscapingPath, "%s: %q is absolute or leads out of its directory", at, f.Snapshot)
			continue
		}
		// The fixture directory of a grader of the suite depends on the task.
		found := o.findSnapshot(c.Suite(), dirs, f.Snapshot)
		if found == "" && !o.UpdateSnapshots && (o.ContextDir != "" || c.Task() != nil) {
			c.Errorf(at, decode.CodeMissingFile, "%s: no such file: %s (searched in %s)", at, f.Snapshot, searched(dirs))
		}
		if found != "" {
			c.Allows(at, found)
		}
	}
	if o.UpdateSnapshots && snapshots == 0 {
		c.Warnf(decode.At("update_snapshots"), decode.CodeNoEffect, "update_snapshots has no effect without a snapshot")
	}
	if len(o.ExpectedFiles) == 0 {
		c.Errorf(decode.At(), decode.CodeChecksNothing, "nothing to check: give expected_files")
	}
}

func newDiff(o *DiffOptions, env *grader.Env) (grader.Grader, error) {
	return &diffGrader{options: o, suite: env.Suite}, nil
}

type diffGrader struct {
	options *DiffOptions
	suite   *eval.Suite
}

func (g *diffGrader) Grade(_ context.Context, s *grader.Subject) (grader.Score, error) {
	root, err := grader.OpenWorkspace(s)
	if err != nil {
		return grader.Score{}, err
	}
	defer root.Close()
	var t grader.Checklist
	for _, f := range g.options.ExpectedFiles {
		if err := s.LostAt(f.Path); err != nil {
			return grader.Score{}, err
		}
		data, err := grader.ReadFile(root, f.Path)
		unreadable := ""
		switch {
		case errors.Is(err, fs.ErrNotExist):
			unreadable = f.Path + " does not exist"
		case errors.Is(err, fs.ErrPermission):
			return grader.Score{}, fmt.Errorf("%s: %w", f.Path, err)
		case err != nil:
			unreadable = fmt.Sprintf("%s cannot be read: %s", f.Path, err)
		}
		t.Add(f.Path+" exists", unreadable)
		if f.Snapshot != "" {
			complaint := unreadable
			if complaint == "" {
				if complaint, err = g.snapshot(s.Task, f, data); err != nil {
					return grader.Score{}, err
				}
			}
			t.Add(f.Path+" equals "+f.Snapshot, complaint)
		}
		for _, fragment := range f.Contains {
			complaint := unreadable
			if complaint == "" {
				complaint = fragmentComplaint(f.Path, data, fragment)
			}
			t.Add(f.Path+" contains "+fragment, complaint)
		}
	}
	return t.Score(), nil
}

// snapshot compares a file with its snapshot, or renews the snapshot.
func (g *diffGrader) snapshot(task *eval.Task, f DiffFile, data []byte) (complaint string, err error) {
	dirs := g.options.snapshotDirs(g.suite, task)
	path := g.options.findSnapshot(g.suite, dirs, f.Snapshot)
	if g.options.UpdateSnapshots {
		return "", writeSnapshot(g.suite, dirs, path, f.Snapshot, data)
	}
	if path == "" {
		return "", fmt.Errorf("snapshot %s: no such file (searched in %s)", f.Snapshot, searched(dirs))
	}
	want, err := g.suite.ReadFile(path, grader.MaxFileBytes)
	if err != nil {
		return "", fmt.Errorf("snapshot %s: %w", f.Snapshot, err)
	}
	return difference(f.Path, f.Snapshot, data, want), nil
}

// difference says where two texts differ first, or nothing.
func difference(path, snapshot string, have, want []byte) string {
	if bytes.Equal(have, want) {
		return ""
	}
	n := 0
	for n < len(have) && n < len(want) && have[n] == want[n] {
		n++
	}
	line := bytes.Count(want[:n], []byte("\n")) + 1
	begin := bytes.LastIndexByte(want[:n], '\n') + 1
	return fmt.Sprintf("%s differs from %s in line %d: expected %s, got %s", path, snapshot, line, lineAt(want, begin), lineAt(have, begin))
}

// lineAt quotes the line that begins at an offset, its end included so that a
// difference in white space shows.
func lineAt(data []byte, begin int) string {
	if begin >= len(data) {
		return "the end of the file"
	}
	line := data[begin:]
	if i := bytes.IndexByte(line, '\n'); i >= 0 {
		line = line[:i+1]
	}
	return fmt.Sprintf("%q", text.Clip(string(line), grader.ExcerptBytes))
}

// fragmentRule splits a fragment into its rule, whether it must not occur, and
// its text.
func fragmentRule(fragment string) (forbidden bool, text string) {
	if rest, ok := strings.CutPrefix(fragment, "-"); ok {
		return true, rest
	}
	return false, strings.TrimPrefix(fragment, "+")
}

func fragmentComplaint(path string, data []byte, fragment string) string {
	forbidden, part := fragmentRule(fragment)
	switch found := bytes.Contains(data, []byte(part)); {
	case found && forbidden:
		return fmt.Sprintf("%s contains %q, which it must not", path, text.Clip(part, grader.ExcerptBytes))
	case !found && !forbidden:
		return fmt.Sprintf("%s does not contain %q; it begins %s", path, text.Clip(part, grader.ExcerptBytes), grader.Excerpt(string(data)))
	}
	return ""
}
