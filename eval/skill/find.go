package skill

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"waza/eval/files"
	"waza/eval/project"
)

// Limits of a search for skills.
const (
	maxDepth = 8
	maxDirs  = 20_000
)

// mostSearched limits the directories in the message of a [NotFoundError].
const mostSearched = 4

// A NotFoundError means that no skill has the name. It lists the searched directories.
type NotFoundError struct {
	Name     string
	Searched []string
}

func (e *NotFoundError) Error() string {
	searched := strings.Join(e.Searched[:min(len(e.Searched), mostSearched)], ", ")
	if more := len(e.Searched) - mostSearched; more > 0 {
		searched += fmt.Sprintf(", and %d more", more)
	}
	return fmt.Sprintf("skill %q: no %s found (searched %s)", e.Name, FileName, searched)
}

// IsPath reports whether an argument names a file or directory rather than a skill: whether it
// contains a slash or an extension, or is "." or "..".
func IsPath(arg string) bool {
	return arg == "." || strings.ContainsAny(arg, `/\`) || filepath.Ext(arg) != ""
}

// FindAll returns the directories of the skills that arguments name, as for [Find]. A directory
// without SKILL.md means all skills below it.
func FindAll(args []string, from string, dirs ...string) (found []string, err error) {
	for _, arg := range args {
		dir, err := Find(arg, from, dirs...)
		if err == nil {
			found = append(found, dir)
			continue
		}
		if !filepath.IsAbs(arg) {
			arg = filepath.Join(from, arg)
		}
		below := Below(arg)
		if len(below) == 0 {
			return nil, err
		}
		found = append(found, below...)
	}
	return found, nil
}

// Find returns the directory of the skill that an argument names: a path ([IsPath]), or the
// name of a skill's directory or in its SKILL.md. Find looks for a name in this order:
//
//   - from and the directories above it, up to the root of its repository
//   - below the given directories
//   - below the [UsualPlaces] of from and the directories above it
//   - below from
//
// The error is a [*NotFoundError].
func Find(arg, from string, dirs ...string) (string, error) {
	if IsPath(arg) {
		dir := arg
		if filepath.Base(arg) == FileName {
			dir = filepath.Dir(arg)
		}
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(from, dir)
		}
		if !isSkill(dir) {
			return "", &NotFoundError{arg, []string{dir}}
		}
		return dir, nil
	}
	searched := []string{}
	for dir := range above(from) {
		if isSkill(dir) && hasName(dir, arg) {
			return dir, nil
		}
	}
	try := func(root string) string {
		if slices.Contains(searched, root) {
			return ""
		}
		searched = append(searched, root)
		found := Below(root)
		if i := slices.IndexFunc(found, func(dir string) bool { return hasName(dir, arg) }); i >= 0 {
			return found[i]
		}
		return ""
	}
	for _, root := range dirs {
		if dir := try(root); dir != "" {
			return dir, nil
		}
	}
	for dir := range above(from) {
		for _, usual := range UsualPlaces {
			if found := try(filepath.Join(dir, filepath.FromSlash(usual))); found != "" {
				return found, nil
			}
		}
	}
	if found := try(from); found != "" {
		return found, nil
	}
	return "", &NotFoundError{arg, searched}
}

// UsualPlaces are the directories of a repository that contain skills, with slashes.
var UsualPlaces = []string{"skills", ".github/skills", ".claude/skills", ".agents/skills"}

// above yields a directory and those above it, up to the root of its repository or ten levels.
func above(dir string) iter.Seq[string] { return files.Upwards(dir, project.MaxLevelsUp+1) }

func isSkill(dir string) bool { return files.IsRegular(filepath.Join(dir, FileName)) }

// hasName reports whether the name is that of a skill's directory or in its SKILL.md.
func hasName(dir, name string) bool {
	if filepath.Base(dir) == name {
		return true
	}
	s, err := Read(dir)
	return err == nil && s.Name == name
}

// Below returns the directories at or below root with a SKILL.md, in order. It skips version
// control, installed packages and hidden directories except .github and .claude. It does not
// follow links to directories, and stops at 8 levels and 20,000 directories.
func Below(root string) []string {
	var found []string
	left := maxDirs
	var walk func(dir string, depth int)
	walk = func(dir string, depth int) {
		left--
		if left < 0 {
			return
		}
		if isSkill(dir) {
			found = append(found, dir)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || depth == maxDepth {
			return
		}
		for _, e := range entries {
			if e.IsDir() && !skipped(e.Name()) {
				walk(filepath.Join(dir, e.Name()), depth+1)
			}
		}
	}
	walk(root, 0)
	return found
}

func skipped(name string) bool {
	switch name {
	case "node_modules", "vendor", "dist":
		return true
	case ".github", ".claude":
		return false
	}
	return strings.HasPrefix(name, ".")
}
