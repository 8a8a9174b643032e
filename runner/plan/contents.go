package plan

import (
	"os"
	"slices"

	"waza/eval"
	"waza/eval/reach"
)

// graderFilesOf returns the hashes of the contents of the files below the suite's root that the
// graders of a task name, by path. It returns nil if hooks can write them before the first task.
func (d *contents) graderFilesOf(t *eval.Task) (map[string]string, error) {
	s := d.plan.Suite
	if len(s.Hooks.BeforeRun) > 0 {
		return nil, nil
	}
	sums := map[string]string{}
	lists := [][]*eval.Grader{t.Effective}
	for _, c := range t.Inputs.Checkpoints {
		lists = append(lists, c.Graders)
	}
	for _, g := range slices.Concat(lists...) {
		for _, path := range d.refers(g.Options, s, t) {
			if !reach.Within(s.Root(), path) {
				continue // another machine can have another version
			}
			sum, err := d.File(path)
			if err != nil {
				return nil, err
			}
			sums[path] = sum
		}
	}
	return sums, nil
}

// fixturesOf returns the hashes of the contents of a task's fixtures, by path. It returns nil if
// hooks can write them.
func (d *contents) fixturesOf(t *eval.Task) (map[string]string, error) {
	if writesBefore(d.plan.Suite) {
		return nil, nil
	}
	var sums map[string]string
	for _, f := range t.AllFiles() {
		if f.Content != nil {
			continue
		}
		sum, err := d.File(f.Source)
		if err != nil {
			return nil, err
		}
		if sums == nil {
			sums = map[string]string{}
		}
		sums[f.Source] = sum
	}
	return sums, nil
}

func writesBefore(s *eval.Suite) bool { return len(s.Hooks.BeforeRun)+len(s.Hooks.BeforeTask) > 0 }

// Limits of the files that waza reads again before each trial, see [contents.inputsOf].
const (
	maxInputs     = 500
	maxInputBytes = 1 << 20
)

// inputsOf returns the hashes of the contents of the files that an executor reads for a task, by
// path: its program, instructions, skills and files of its setup. It leaves out files outside of the
// suite's root that are not of a revision, large files, and those beyond a number. It returns nil if
// hooks can write them. [contents.execution] must have read the skills.
func (d *contents) inputsOf(t *eval.Task, options any) (map[string]string, error) {
	s := d.plan.Suite
	if writesBefore(s) {
		return nil, nil
	}
	paths := append(slices.Clone(d.refers(options, s, nil)), s.Mentioned("", t.SetupCommands()...)...)
	for _, f := range slices.Concat(s.Instructions, t.Instructions) {
		if f.Path != "" {
			paths = append(paths, f.Path)
		}
	}
	for _, dir := range t.Skills {
		paths = append(paths, d.at(dir).skillFiles[dir]...)
	}
	sums := map[string]string{}
	for _, path := range paths {
		info, err := os.Stat(path)
		if len(sums) == maxInputs || err != nil || info.Size() > maxInputBytes || !d.reads(path) {
			continue
		}
		sum, err := d.at(path).File(path)
		if err != nil {
			return nil, err
		}
		sums[path] = sum
	}
	return sums, nil
}
