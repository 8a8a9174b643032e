package eval

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/files"
)

// skill is a directory with a SKILL.md. It goes by its directory's name and by
// the name that the file gives.
type skill struct {
	dir   string
	names []string
}

// SkillNames returns the names by which agents may call a skill of the suite: that
// of its directory, and the one that its SKILL.md gives. A name that no skill of
// the suite has stands for itself.
func (s *Suite) SkillNames(name string) []string {
	for _, sk := range s.skills {
		if slices.Contains(sk.names, name) {
			return sk.names
		}
	}
	return []string{name}
}

// maxSkillFile bounds what is read of a SKILL.md for its name.
const maxSkillFile = 1 << 20

// maxFrontMatter bounds the keys and items of the YAML at its head.
const maxFrontMatter = 100_000

// skillLoader finds skills. It reads each directory once.
type skillLoader struct {
	*loader
	found map[string][]skill // by the path of the directory
	usual *[]string          // what usualDirectory found; nil before
}

// of returns the directories of the skills that a task's agent is given,
// and reports what is missing.
func (l *skillLoader) of(t *Task, c *taskCheck) []string {
	dirs, own := l.suite.Config.SkillDirectories, false
	if t.SkillDirectories != nil {
		dirs, own = t.SkillDirectories, true
	}
	if len(dirs) == 0 && !own {
		if l.usual == nil {
			found := l.usualDirectory()
			l.usual = &found
		}
		dirs = *l.usual
	}
	var found []skill
	for i, dir := range dirs {
		abs := l.fromSuite(dir)
		here := l.in(abs)
		found = append(found, here...)
		if len(here) > 0 {
			continue
		}
		path, src, node := decode.At("config", "skill_directories", i), l.src, l.src.Root
		if own {
			path, src, node = decode.At("skill_directories", i), c.src, c.node
		}
		what := "holds no SKILL.md, directly or one level down"
		if !files.IsDir(abs) {
			what = "is not a directory"
		}
		l.Reportf(src, decode.Place(node, path...), decode.Warning, decode.CodeMissingSkill, "%s %s", l.display(abs), what)
	}
	l.required(found, dirs)
	var out []string
	for _, s := range found {
		if !l.disabled(s) && !slices.Contains(out, s.dir) {
			out = append(out, s.dir)
		}
	}
	return out
}

// usualDirectory finds the skill under test where the suite names no
// directory: beside the suite, above it, or among the repository's skills.
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
		if s, ok := l.skillAt(dir); ok && slices.Contains(s.names, name) {
			return []string{dir}
		}
	}
	return nil
}

// in returns the skills of a directory: its own, or those one level down.
func (l *skillLoader) in(dir string) []skill {
	l.looked(dir)
	if known, ok := l.found[dir]; ok {
		return known
	}
	var out []skill
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

func (l *skillLoader) skillAt(dir string) (skill, bool) {
	file := filepath.Join(dir, "SKILL.md")
	l.looked(file)
	if _, unsaved := l.options.Overlay[file]; !unsaved && !files.IsRegular(file) {
		return skill{}, false
	}
	s := skill{dir: dir, names: []string{filepath.Base(dir)}}
	data, err := l.readSkill(file, maxSkillFile)
	if errors.Is(err, files.ErrEscapes) {
		l.unreadable(file, nil, nil, err)
		return skill{}, false
	}
	if name := frontMatterName(string(data)); name != "" && name != s.names[0] {
		s.names = append(s.names, name)
	}
	return s, true
}

// frontMatterName returns the name in the YAML between the two lines of dashes
// that a SKILL.md begins with.
func frontMatterName(text string) string {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\uFEFF"), "\r\n", "\n")
	head, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return ""
	}
	head, _, ok = strings.Cut(head, "\n---")
	if !ok || decode.Large(head, maxFrontMatter) {
		return ""
	}
	var doc yaml.Node
	if yaml.Unmarshal([]byte(head), &doc) != nil || len(doc.Content) == 0 {
		return ""
	}
	if n := decode.Follow(decode.Lookup(doc.Content[0], "name")); n != nil && n.Kind == yaml.ScalarNode {
		return n.Value
	}
	return ""
}

func (l *skillLoader) disabled(s skill) bool {
	for _, name := range l.suite.Config.DisabledSkills {
		if name == "*" || slices.Contains(s.names, name) {
			return true
		}
	}
	return false
}

// required reports the required skills that were not found.
func (l *skillLoader) required(found []skill, dirs []string) {
	var missing, names []string
	for _, s := range found {
		names = append(names, s.names[len(s.names)-1])
	}
	first := -1
	for i, want := range l.suite.Config.RequiredSkills {
		if !slices.ContainsFunc(found, func(s skill) bool { return slices.Contains(s.names, want) }) {
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
	l.at(decode.Error, decode.CodeMissingSkill, decode.At("config", "required_skills", first), "required skills are missing: %s (searched: %s; found: %s)",
		strings.Join(missing, ", "), orNothing(searched), orNothing(names))
}

func orNothing(list []string) string {
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}
