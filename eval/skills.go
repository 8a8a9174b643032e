package eval

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/skill"
)

// SkillNames returns the names that agents can use for a skill of the suite: its directory's
// name, and the one in its SKILL.md. It returns a name unchanged if no skill of the suite has
// it.
func (s *Suite) SkillNames(name string) []string {
	for _, sk := range s.skills {
		if slices.Contains(sk.Names, name) {
			return sk.Names
		}
	}
	return []string{name}
}

// skillLoader finds skills. It reads each directory once.
type skillLoader struct {
	*loader
	found map[string][]SkillIn // by the path of the directory
	usual *[]string            // the result of usualDirectories; nil before
}

// forTask returns the directories of the skills that a task's agent gets, and reports missing ones.
func (l *skillLoader) forTask(t *Task, c *taskCheck) []string {
	dirs, own := l.suite.Config.SkillDirectories, false
	if t.SkillDirectories != nil {
		dirs, own = t.SkillDirectories, true
	}
	if len(dirs) == 0 && !own {
		if l.usual == nil {
			found := l.usualDirectories()
			l.usual = &found
		}
		dirs = *l.usual
	}
	var found []SkillIn
	for i, dir := range dirs {
		abs := l.fromSuite(dir)
		here := l.skillsIn(abs)
		found = append(found, here...)
		if len(here) > 0 {
			continue
		}
		path, src, node := decode.At("config", "skill_directories", i), l.src, l.src.Root
		if own {
			path, src, node = decode.At("skill_directories", i), c.src, c.node
		}
		what := "contains no SKILL.md, directly or one level down"
		if !files.IsDir(abs) {
			what = "is not a directory"
		}
		l.Reportf(src, decode.Place(node, path...), decode.Warning, decode.CodeMissingSkill, "%s %s", l.display(abs), what)
	}
	if l.options.NoSkills {
		return nil
	}
	l.checkRequired(found, dirs)
	var out []string
	for _, s := range found {
		if !l.disabled(s) && !slices.Contains(out, s.Dir) {
			out = append(out, s.Dir)
		}
	}
	return out
}

// usualDirectories returns the skill directories of a suite that names none: the one of the
// skill under test, wherever it is, and those of the project.
func (l *skillLoader) usualDirectories() []string {
	dirs := l.usualDirectory()
	p := l.suite.Project
	if p == nil || p.Paths.Skills == "" || !filepath.IsLocal(filepath.FromSlash(p.Paths.Skills)) {
		return dirs
	}
	all := filepath.Join(p.Dir(), filepath.FromSlash(p.Paths.Skills))
	if l.skillsIn(all) == nil || slices.Contains(dirs, all) {
		return dirs
	}
	return append(dirs, all)
}

// usualDirectory finds the skill under test for a suite that names no directory: beside the
// suite, above it, or among the repository's skills.
func (l *skillLoader) usualDirectory() []string {
	name := l.suite.Skill
	if name == "" || !filepath.IsLocal(name) {
		return nil
	}
	candidates := []string{l.suite.Dir, filepath.Dir(l.suite.Dir), filepath.Dir(filepath.Dir(l.suite.Dir))}
	if p := l.suite.Project; p != nil && p.Paths.Skills != "" {
		candidates = append(candidates, filepath.Join(filepath.Dir(p.File), p.Paths.Skills, name))
	}
	if root := files.RepositoryRoot(l.suite.Dir); root != "" {
		candidates = append(candidates, filepath.Join(root, "skills", name), filepath.Join(root, ".github", "skills", name))
	}
	for _, dir := range candidates {
		if s, ok := l.skillAt(dir); ok && slices.Contains(s.Names, name) {
			return []string{dir}
		}
	}
	return nil
}

// skillsIn returns the skills of a directory: the directory itself, or those one level down.
func (l *skillLoader) skillsIn(dir string) []SkillIn {
	l.dependsOn(dir)
	if known, ok := l.found[dir]; ok {
		return known
	}
	var out []SkillIn
	if s, ok := l.skillAt(dir); ok {
		out = append(out, s)
	} else if entries, err := os.ReadDir(dir); err == nil {
		for _, e := range entries {
			if s, ok := l.skillAt(filepath.Join(dir, e.Name())); ok {
				out = append(out, s)
			}
		}
	}
	l.found[dir] = out
	return out
}

func (l *skillLoader) skillAt(dir string) (SkillIn, bool) {
	file := filepath.Join(dir, skill.FileName)
	l.dependsOn(file)
	if _, unsaved := l.options.Overlay[file]; !unsaved && !files.IsRegular(file) {
		return SkillIn{}, false
	}
	s := SkillIn{Dir: dir, Names: []string{filepath.Base(dir)}}
	data, err := l.readSkill(file, skill.MaxBytes)
	if errors.Is(err, files.ErrEscapes) {
		l.reportUnreadable(file, nil, nil, err)
		return SkillIn{}, false
	}
	if name := skill.Parse(file, data).Name; name != "" && name != s.Names[0] {
		s.Names = append(s.Names, name)
	}
	return s, true
}

func (l *skillLoader) disabled(s SkillIn) bool {
	for _, name := range l.suite.Config.DisabledSkills {
		if name == "*" || slices.Contains(s.Names, name) {
			return true
		}
	}
	return false
}

// checkRequired reports the required skills that were not found.
func (l *skillLoader) checkRequired(found []SkillIn, dirs []string) {
	var missing, names []string
	for _, s := range found {
		names = append(names, s.Names[len(s.Names)-1])
	}
	first := -1
	for i, want := range l.suite.Config.RequiredSkills {
		if !slices.ContainsFunc(found, func(s SkillIn) bool { return slices.Contains(s.Names, want) }) {
			missing = append(missing, want)
			if first < 0 {
				first = i
			}
		}
	}
	if first < 0 {
		return
	}
	searched := make([]string, len(dirs))
	for i, dir := range dirs {
		searched[i] = l.display(l.fromSuite(dir))
	}
	l.reportAt(decode.Error, decode.CodeMissingSkill, decode.At("config", "required_skills", first), "required skills are missing: %s (searched: %s; found: %s)",
		strings.Join(missing, ", "), orNothing(searched), orNothing(names))
}

func orNothing(list []string) string {
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}
