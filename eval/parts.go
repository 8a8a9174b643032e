package eval

import (
	"os"
	"path/filepath"
	"slices"
	"sync"

	"waza/eval/files"
	"waza/eval/reach"
)

// Own returns the absolute paths of the files that only graders and people read: the suite file, the
// files of its tasks, their prompts and solutions.
func (s *Suite) Own() []string {
	own := []string{s.File}
	if s.Project != nil {
		own = append(own, s.Project.File)
	}
	if s.Triggers != nil {
		own = append(own, s.Triggers.File)
	}
	for _, t := range s.Tasks {
		own = append(own, t.File)
		if t.Inputs.PromptFile != "" {
			own = append(own, filepath.Join(filepath.Dir(t.File), filepath.FromSlash(t.Inputs.PromptFile)))
		}
		own = append(own, t.Solution.Sources()...)
	}
	own = slices.DeleteFunc(own, func(path string) bool { return path == "" })
	slices.Sort(own)
	return slices.Compact(own)
}

// PartsIn returns the parts of the suite in a skill, by their paths below the directory of the skill:
// the suite's directory if the skill contains that, and the files of [Suite.Own]. Agents get only the
// rest of the skill, since the suite contains the answers. A part that can be reached through links has
// several paths.
func (s *Suite) PartsIn(skill string) []string {
	real := files.RealPath(skill)
	var parts []string
	for _, path := range append(s.Own(), s.Dir) {
		for dir, path := range map[string]string{skill: path, real: files.RealPath(path)} {
			if in, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(in) && in != "." {
				parts = append(parts, filepath.Join(skill, in))
			}
		}
	}
	slices.Sort(parts)
	return slices.Compact(parts)
}

// Withholds returns a function that reports whether a path below a skill is a part of the suite, or a
// link to one.
func (s *Suite) Withholds(skill string) func(path string) bool {
	parts := s.PartsIn(skill)
	real := sync.OnceValue(func() (list []string) {
		for _, part := range parts {
			list = append(list, files.RealPath(part))
		}
		return list
	})
	return func(path string) bool {
		if slices.Contains(parts, path) {
			return true
		}
		if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink == 0 {
			return false
		}
		to := files.RealPath(path)
		return slices.ContainsFunc(real(), func(part string) bool { return reach.Within(part, to) })
	}
}
