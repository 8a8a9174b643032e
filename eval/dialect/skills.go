package dialect

import (
	"path/filepath"

	"waza/eval/skill"
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
	for _, usual := range skill.UsualPlaces {
		dir = filepath.Join(t.Files.Root(), filepath.FromSlash(usual), name)
		if _, ok := t.SkillIn(dir); ok {
			return dir, true
		}
	}
	return "", false
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
