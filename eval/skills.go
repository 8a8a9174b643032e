package eval

import (
	"maps"
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
	dirs  *[]string            // the result of directories; nil before
	agent *agentFile           // the agent under test; nil without one
}

// forTask returns the directories of the skills that a task's agent gets, and reports missing ones.
func (l *skillLoader) forTask(t *Task, c *taskCheck) []string {
	dirs, own := l.directories(), false
	if t.SkillDirectories != nil {
		dirs, own = t.SkillDirectories, true
	}
	var found []SkillIn
	for i, dir := range dirs {
		abs := l.suite.Path(dir)
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
		switch {
		case len(agentLoader{l}.filesIn(abs)) > 0:
			continue
		case !files.IsDir(abs):
			what = "is not a directory"
		}
		severity := decode.Warning
		if !l.options.NoSkills {
			severity = l.missingSeverity()
		}
		l.Reportf(src, decode.Place(node, path...), severity, decode.CodeMissingSkill, "%s %s", l.display(abs), what)
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

// directories returns the skill directories of tasks that name none. A suite whose directories
// lack the skill under test gets that skill as well.
func (l *skillLoader) directories() []string {
	if l.dirs == nil {
		dirs := l.suite.Config.SkillDirectories
		switch {
		case len(dirs) == 0:
			dirs = l.usualDirectories()
		case !slices.ContainsFunc(dirs, func(dir string) bool { return named(l.skillsIn(l.suite.Path(dir)), l.suite.Skill) != nil }):
			dirs = append(slices.Clip(dirs), l.usualDirectory()...)
		}
		l.dirs = &dirs
	}
	return *l.dirs
}

// named returns the skill with a name, or nil.
func named(skills []SkillIn, name string) *SkillIn {
	for i := range skills {
		if slices.Contains(skills[i].Names, name) {
			return &skills[i]
		}
	}
	return nil
}

// underTest returns the skill with a name that agents can get, or nil.
func (l *skillLoader) underTest(name string) *SkillIn {
	if name == "" {
		return nil
	}
	for _, dir := range l.directories() {
		l.skillsIn(l.suite.Path(dir))
	}
	return named(l.all(), name)
}

// all returns the skills that were found until now.
func (l *skillLoader) all() []SkillIn {
	var all []SkillIn
	for _, dir := range slices.Sorted(maps.Keys(l.found)) {
		all = append(all, l.found[dir]...)
	}
	return all
}

// missingSeverity returns the severity of a missing skill: an error if some executor of the suite
// passes skills to its agents, because it would measure an agent without the skill.
func (l *skillLoader) missingSeverity() decode.Severity {
	if l.options.Vocabulary != nil && slices.ContainsFunc(l.executors().kinds(), func(k Kind) bool { return k.TakesSkills }) {
		return decode.Error
	}
	return decode.Warning
}

// skillNames returns the names of skills as agents know them.
func skillNames(list []SkillIn) []string {
	var names []string
	for _, s := range list {
		if name := s.Names[len(s.Names)-1]; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// usualDirectories returns the skill directories of a suite that names none: the one of the
// skill under test, wherever it is, and those of the project.
func (l *skillLoader) usualDirectories() []string {
	dirs := l.usualDirectory()
	all := l.projectSkills()
	if all == "" || l.skillsIn(all) == nil || slices.Contains(dirs, all) {
		return dirs
	}
	return append(dirs, all)
}

// projectSkills returns the directory in which the project keeps skills, or "".
func (l *skillLoader) projectSkills() string {
	p := l.suite.Project
	if p == nil || p.Paths.Skills == "" || !filepath.IsLocal(filepath.FromSlash(p.Paths.Skills)) {
		return ""
	}
	return filepath.Join(p.Dir(), filepath.FromSlash(p.Paths.Skills))
}

// usualDirectory finds the skill under test for a suite that names no directory: beside the
// suite, above it, or among the skills of the project or repository.
func (l *skillLoader) usualDirectory() []string {
	name := l.suite.Skill
	if name == "" || !filepath.IsLocal(name) {
		return nil
	}
	places := l.usualPlaces()
	for i, dir := range places {
		if i >= besideSuite {
			dir = filepath.Join(dir, name)
		}
		if s, ok := l.skillAt(dir); ok && slices.Contains(s.Names, name) {
			return []string{dir}
		}
	}
	for _, dir := range places[besideSuite:] { // by the name in SKILL.md
		if s := named(l.below(dir), name); s != nil {
			return []string{s.Dir}
		}
	}
	return nil
}

func (l *skillLoader) below(dir string) []SkillIn {
	l.dependsOn(dir)
	entries, _ := os.ReadDir(dir)
	var out []SkillIn
	for _, e := range entries {
		if s, ok := l.skillAt(filepath.Join(dir, e.Name())); ok {
			out = append(out, s)
		}
	}
	return out
}

// besideSuite is the number of usual places that can be the skill under test. The others contain
// skills.
const besideSuite = 3

// The numbers of directories above a suite whose skills are searched. A suite is at most two below
// the root of its project, as in evals/NAME/eval.yaml, and a repository can contain projects. The
// root of the repository is always among them.
const (
	levelsOfRepository = 4
	levelsElsewhere    = 2
)

// usualPlaces returns the directories where the skill under test can be: the suite's directory, the
// two above it, and the places for skills in them and in the directories above. The nearest is first.
func (l *skillLoader) usualPlaces() []string {
	dir := l.suite.Dir
	places := []string{dir, filepath.Dir(dir), filepath.Dir(filepath.Dir(dir))}
	if all := l.projectSkills(); all != "" {
		places = append(places, all)
	}
	root, levels := files.RepositoryRoot(dir), levelsOfRepository
	if root == "" {
		levels = levelsElsewhere
	}
	for up := dir; ; levels-- {
		for _, usual := range skill.UsualPlaces {
			places = append(places, filepath.Join(up, filepath.FromSlash(usual)))
		}
		if levels == 0 || up == root || filepath.Dir(up) == up {
			break
		}
		if up = filepath.Dir(up); levels == 1 && root != "" {
			up = root
		}
	}
	return places
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
	} else {
		out = l.below(dir)
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
	if err != nil {
		l.reportUnreadable(file, nil, nil, err)
		return SkillIn{}, false
	}
	parsed := skill.Parse(file, data)
	if name := parsed.Name; name != "" && name != s.Names[0] {
		s.Names = append(s.Names, name)
	}
	s.parsed = parsed
	return s, true
}

// withheld reports whether the suite keeps a skill from its agents.
func (l *skillLoader) withheld(name string) bool {
	return slices.Contains(l.suite.Config.DisabledSkills, "*") || slices.Contains(l.suite.Config.DisabledSkills, name)
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
	var missing []string
	names := skillNames(found)
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
		searched[i] = l.display(l.suite.Path(dir))
	}
	l.reportAt(decode.Error, decode.CodeMissingSkill, decode.At("config", "required_skills", first),
		"required skills are missing: %s (searched: %s; found: %s)",
		strings.Join(missing, ", "), orNothing(searched), orNothing(names))
}

func orNothing(list []string) string {
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}
