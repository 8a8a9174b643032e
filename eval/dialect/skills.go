package dialect

import (
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/skill"
	"waza/eval/text"
)

// maxLevelsToSkill limits the directories above a file that [Translation.SkillDir] searches. A file is
// at most two below its skill, as in SKILL/evals/TOPIC/evals.json.
const maxLevelsToSkill = 3

// SkillDir returns the directory of the skill under test: one that contains the file of the
// translation, or one with the given name in a usual place of the repository. ok is false if there is
// no such skill.
func (t *Translation) SkillDir(name string) (dir string, ok bool) {
	dir = filepath.Dir(t.Source.Path)
	for range maxLevelsToSkill {
		if _, ok := t.SkillIn(dir); ok {
			return dir, true
		}
		dir = filepath.Dir(dir)
	}
	if !filepath.IsLocal(name) {
		return "", false
	}
	for _, place := range t.skillPlaces() {
		dir = filepath.Join(place, name)
		if _, ok := t.SkillIn(dir); ok {
			return dir, true
		}
	}
	for _, place := range t.skillPlaces() { // by the name in SKILL.md
		for dir, known := range t.skillsBelow(place) {
			if known == name {
				return dir, true
			}
		}
	}
	return "", false
}

// skillPlaces returns the usual places of skills in the directories from that of the file up to the root of
// the repository, the nearest first.
func (t *Translation) skillPlaces() (places []string) {
	for dir := filepath.Dir(t.Source.Path); ; dir = filepath.Dir(dir) {
		for _, usual := range skill.UsualPlaces {
			places = append(places, filepath.Join(dir, filepath.FromSlash(usual)))
		}
		if dir == t.Files.Root() || dir == filepath.Dir(dir) {
			return places
		}
	}
}

// skillsBelow returns the directories of the skills in a place, with the names of the skills, sorted by directory.
func (t *Translation) skillsBelow(place string) iter.Seq2[string, string] {
	return func(yield func(dir, name string) bool) {
		entries, _ := t.Files.List(place)
		for _, e := range entries {
			dir := filepath.Join(place, e.Name())
			if name, ok := t.SkillIn(dir); ok && !yield(dir, name) {
				return
			}
		}
	}
}

// UsualSkills returns the usual places of the repository that contain skills, relative to the directory of
// the suite, and the names of the skills. A place whose skills all have the names of earlier ones is left out,
// because repositories have copies of their skills for several agents.
func (t *Translation) UsualSkills() (places, names []string) {
	for _, place := range t.skillPlaces() {
		before := len(names)
		for _, name := range t.skillsBelow(place) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		if len(names) > before {
			places = append(places, t.Files.Relative(place))
		}
	}
	return places, names
}

// maxNamesShown limits the bytes of a list of skills in a message.
const maxNamesShown = 300

// LabelPlaces returns the places of the skills that agents get if a file names a collection of skills in
// place of a skill, and reports that. ok is false if some skill has the name, the repository has no
// skills in its usual places, or the name is that of a skill with a typing error.
func (t *Translation) LabelPlaces(name string, at *yaml.Node) (places []string, ok bool) {
	if _, found := t.SkillDir(name); found || name == "" {
		return nil, false
	}
	places, names := t.UsualSkills()
	if len(names) == 0 || slices.ContainsFunc(names, func(known string) bool { return decode.IsTypo(name, known) }) {
		return nil, false
	}
	if !t.HeadOnly {
		t.Reportf(t.Source, at, decode.Warning, decode.CodeMissingSkill,
			"no skill has the name %q, so it only names the suite; agents get all skills of the repository: %s",
			text.Clip(name, 60), text.Clip(strings.Join(names, ", "), maxNamesShown))
	}
	return places, true
}

// SkillIn returns the name of the skill in a directory as agents know it. ok is false if the directory
// has no SKILL.md.
func (t *Translation) SkillIn(dir string) (name string, ok bool) {
	file := filepath.Join(dir, skill.FileName)
	data, err := t.Files.ReadSkill(file, skill.MaxBytes)
	if err != nil {
		return "", false
	}
	if name = skill.Parse(file, data).Name; name == "" {
		name = filepath.Base(dir)
	}
	return name, true
}

// TriggerSign returns whether a value asks for the use of a skill: a boolean, or one of the texts that
// authors write in its place. ok is false for other values.
func TriggerSign(n *yaml.Node) (should, ok bool) {
	if n = decode.Follow(n); n == nil || n.Kind != yaml.ScalarNode {
		return false, false
	}
	switch signText.Replace(strings.ToLower(n.Value)) {
	case "true", "yes", "trigger", "triggers", "triggered", "should_trigger":
		return true, true
	case "false", "no", "no_trigger", "not_trigger", "not_triggered", "should_not_trigger", "does_not_trigger", "do_not_trigger", "dont_trigger":
		return false, true
	}
	return false, false
}

var signText = strings.NewReplacer("-", "_", " ", "_", "'", "")

// NamesTrigger reports whether a value is a [TriggerSign] that no other kind of test can mean.
func NamesTrigger(n *yaml.Node) bool {
	_, ok := TriggerSign(n)
	return ok && strings.Contains(strings.ToLower(n.Value), "trigger")
}
