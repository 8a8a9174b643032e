package vally

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/files"
)

// projectName is the name of Vally's project file.
const projectName = ".vally.yaml"

// A project is the .vally.yaml of a suite. The zero value means that it does not exist.
type project struct {
	dir  string
	src  *decode.Source
	root *yaml.Node
}

// findProject reads the nearest .vally.yaml in or above the directory of the suite.
func (tr *translator) findProject() (p project) {
	for dir := filepath.Dir(tr.Source.Path); ; dir = filepath.Dir(dir) {
		file := filepath.Join(dir, projectName)
		if data, err := tr.Files.Read(file, decode.MaxTextBytes); err == nil {
			if src := tr.Files.Parse(file, data); src != nil && src.Root != nil {
				return project{dir, src, decode.Follow(src.Root)}
			}
			return project{}
		}
		if dir == tr.Files.Root() || dir == filepath.Dir(dir) {
			return project{}
		}
	}
}

// maxLevelsToProject limits the directories that homeOf searches: a suite is at evals/NAME/eval.yaml.
const maxLevelsToProject = 3

// homeOf returns the directory of the project of a suite in no repository.
func homeOf(file string) string {
	dir := filepath.Dir(file)
	for range maxLevelsToProject {
		if info, err := os.Stat(filepath.Join(dir, projectName)); err == nil && info.Mode().IsRegular() {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

// maxLevelsUp limits the directories above an eval that are searched for a project.
const maxLevelsUp = 10

// evalFilenames returns the patterns of paths.evalFilenames for the names of evals in a directory. One that is
// malformed matches nothing.
func evalFilenames(dir string, v files.View) (patterns []string) {
	for above := range files.Upwards(dir, maxLevelsUp) {
		file := filepath.Join(above, projectName)
		data, err := v.Read(file, decode.MaxTextBytes, files.Read)
		if err != nil {
			continue
		}
		p := project{root: decode.Follow(decode.Parse(file, file, data, &decode.Findings{}).Root)}
		for _, pattern := range valuesOf(p.get("paths", "evalFilenames")) {
			if doublestar.ValidatePattern(pattern) && strings.Count(pattern, "{")+strings.Count(pattern, ",") <= maxAlternatives {
				patterns = append(patterns, pattern)
			}
		}
		return patterns
	}
	return nil
}

// get returns the value at a path of keys, or nil.
func (p project) get(keys ...string) *yaml.Node {
	n := p.root
	for _, key := range keys {
		n = decode.Follow(decode.Lookup(n, key))
	}
	return n
}

// skills returns the directories of skills for stimuli that name none: those of paths.skills that exist.
func (tr *translator) skills() (dirs []string) {
	if tr.project.root == nil {
		return nil
	}
	list := dialect.Items(tr.project.get("paths", "skills"))
	if n := tr.project.get("paths", "skills"); dialect.TextOf(n) != "" {
		list = []*yaml.Node{n}
	} else if n == nil {
		list = []*yaml.Node{dialect.Scalar(nil, "skills")}
	}
	for _, n := range list {
		if name := dialect.TextOf(n); name != "" {
			if dir := filepath.Join(tr.project.dir, filepath.FromSlash(name)); tr.Files.Exists(dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}
