package output

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/text"
	"waza/runner/grader"
)

// Diff compares files of the workspace with snapshots.
var Diff = grader.KindOf(eval.Kind{
	Name:    "diff",
	Summary: "Compares files of the workspace with snapshots and fragments. The score is the share of checks met. Passes if all are met.",
}, checkDiff, newDiff)

// DiffOptions holds the options of the diff grader.
type DiffOptions struct {
	// Files of the workspace and their expected content. Each file must exist.
	ExpectedFiles []DiffFile `yaml:"expected_files"`
	// Directory of the snapshots, found like other files of the suite; the fixture directory
	// when absent.
	ContextDir string `yaml:"context_dir" jsonschema_extras:"x-refers=suite-directory" path:"maybe"`
	// Replace the snapshots with the agent's files instead of comparing them.
	UpdateSnapshots bool `yaml:"update_snapshots"`

	eval.Beside `yaml:"-"`
}

// A DiffFile is a file of the workspace and its expected content.
type DiffFile struct {
	// File, relative to the workspace.
	Path string `yaml:"path" jsonschema:"required"`
	// File that it must equal byte for byte: in context_dir, else in the fixture directory, else
	// relative to the suite, to the repository's root, to the task file or to the process's
	// directory.
	Snapshot string `yaml:"snapshot" jsonschema_extras:"x-refers=snapshot"`
	// Fragments. The file must contain a fragment that starts with +, or with neither sign. It
	// must not contain a fragment that starts with -.
	Contains []string `yaml:"contains"`
}

// Refers returns the paths of the snapshots.
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

// UpdatesSnapshots makes the grader replace its snapshots, if it has any.
func (o *DiffOptions) UpdatesSnapshots() {
	for _, f := range o.ExpectedFiles {
		o.UpdateSnapshots = o.UpdateSnapshots || f.Snapshot != ""
	}
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
					"expected_files[%d].contains[%d] is empty, so every file contains it", i, j)
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
		// The fixture directory of a suite's grader depends on the task.
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
	return &diffGrader{options: o, env: env}, nil
}

type diffGrader struct {
	options *DiffOptions
	env     *grader.Env
}

func (g *diffGrader) Grade(_ context.Context, s *grader.Subject) (grader.Score, error) {
	root, err := grader.OpenWorkspace(s)
	if err != nil {
		return grader.Score{}, err
	}
	defer root.Close()
	var t grader.Checklist
	var replaced []string
	for _, f := range g.options.ExpectedFiles {
		if err := s.MissingAt(f.Path); err != nil {
			return grader.Score{}, err
		}
		data, unreadable, err := readForChecks(root, f.Path)
		if err != nil {
			return grader.Score{}, err
		}
		t.Add(f.Path+" exists", unreadable)
		if f.Snapshot != "" {
			complaint := unreadable
			if complaint == "" {
				var changed bool
				if complaint, changed, err = g.snapshot(s.Task, f, data); err != nil {
					return grader.Score{}, err
				}
				if changed {
					replaced = append(replaced, SnapshotReplaced+f.Snapshot)
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
	score := t.Score()
	if score.Feedback != "" {
		replaced = append(replaced, score.Feedback)
	}
	score.Feedback = strings.Join(replaced, "\n")
	return score, nil
}

// SnapshotReplaced is the start of a feedback line for each snapshot that the grader replaced or
// created; the snapshot's name follows.
const SnapshotReplaced = "replaced the snapshot "

// snapshot compares a file with its snapshot, or replaces the snapshot.
func (g *diffGrader) snapshot(task *eval.Task, f DiffFile, data []byte) (complaint string, changed bool, err error) {
	dirs := g.options.snapshotDirs(g.env.Suite, task)
	path := g.options.findSnapshot(g.env.Suite, dirs, f.Snapshot)
	if g.options.UpdateSnapshots {
		path, changed, err = writeSnapshot(g.env.Suite, dirs, path, f.Snapshot, data)
		if changed {
			g.env.Planned.Replace(path, data)
		}
		return "", changed, err
	}
	if planned := g.env.Planned.First(g.options.snapshotPaths(g.env.Suite,
		g.options.possibleDirs(g.env.Suite, task), f.Snapshot)); planned != "" {
		path = planned
	}
	if path == "" {
		return "", false, fmt.Errorf("snapshot %s: no such file (searched in %s)", f.Snapshot, searched(dirs))
	}
	want, err := g.env.ReadFile(path)
	if err != nil {
		return "", false, fmt.Errorf("snapshot %s: %w", f.Snapshot, err)
	}
	return difference(f.Path, f.Snapshot, data, want), false, nil
}

// difference describes the first difference of two texts; it is empty if they are equal.
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

// lineAt quotes the line that starts at an offset. It includes the line's end, so that
// differences in white space are visible.
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

// fragmentRule splits a fragment into its rule, which states whether it must not occur, and its
// text.
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
		return fmt.Sprintf("%s contains %q, which is forbidden", path, text.Clip(part, grader.ExcerptBytes))
	case !found && !forbidden:
		return fmt.Sprintf("%s does not contain %q; it starts with %s", path, text.Clip(part, grader.ExcerptBytes), grader.Excerpt(string(data)))
	}
	return ""
}
