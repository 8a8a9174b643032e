package harbor

import (
	"cmp"
	"path"
	"path/filepath"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/files"
	"waza/eval/reach"
	"waza/eval/text"
)

// The files that name a set of tasks.
const (
	registryFile = "registry.json"
	datasetFile  = "dataset.toml"
)

// Limits of a file that names a set.
const (
	maxSetBytes = 16 << 20
	maxSetTasks = 10_000
)

// taskFile is the file of a task in its folder.
const taskFile = "task.toml"

// IsSet reports whether a path is that of a file that names a set of tasks.
func IsSet(file string) bool {
	base := filepath.Base(file)
	return base == registryFile || base == datasetFile
}

// A Checkout returns the directory of a git repository at a commit: an id, a branch or a tag, or its newest
// one if it is empty. The error says why it is not here.
type Checkout func(url, commit string) (dir string, err error)

// TasksOf returns the task files of a set, in their order, each once. A registry names the folders of tasks,
// relative to itself or to a repository, which checkOut finds; a dataset the tasks, whose folders are beside it
// or in its folder tasks. A task that is not on this machine is an error.
func TasksOf(file string, checkOut Checkout) (paths []string, found decode.Diagnostics) {
	s := &set{file: file, checkOut: checkOut, seen: map[string]bool{}}
	abs, err := filepath.Abs(file)
	if err != nil {
		s.Unreadable(file, nil, nil, err)
		return nil, s.Diagnostics()
	}
	s.places = reach.At(abs)
	data, err := files.Read(file, maxSetBytes)
	if err != nil {
		s.Unreadable(file, nil, nil, err)
		return nil, s.Diagnostics()
	}
	if s.src = decode.ParseFile(file, file, data, &s.Findings); s.src == nil || s.src.Root == nil {
		return nil, s.Diagnostics()
	}
	if root := decode.Follow(s.src.Root); filepath.Base(file) == registryFile {
		s.readRegistry(root)
	} else {
		s.readDataset(root)
	}
	if len(s.paths) == 0 && s.Errors() == 0 {
		s.fault(nil, decode.CodeInvalidValue, "the set names no tasks")
	}
	return s.paths, s.Diagnostics()
}

// set is a set that is being read.
type set struct {
	decode.Findings
	file     string
	checkOut Checkout
	places   reach.Places
	src      *decode.Source
	paths    []string
	seen     map[string]bool
}

func (s *set) fault(at *yaml.Node, code decode.Code, format string, args ...any) {
	s.Reportf(s.src, at, decode.Error, code, format, args...)
}

// readRegistry reads the tasks of all sets of a registry.json.
func (s *set) readRegistry(root *yaml.Node) {
	for _, one := range dialect.Items(root) {
		for _, task := range dialect.Items(decode.Lookup(one, "tasks")) {
			at := decode.Follow(decode.Lookup(task, "path"))
			name := text.Clip(cmp.Or(dialect.TextOf(decode.Lookup(task, "name")), dialect.TextOf(at)), 80)
			switch url := dialect.TextOf(decode.Lookup(task, "git_url")); {
			case dialect.TextOf(at) == "":
				s.fault(task, decode.CodeMissingField, "the task %q has no path", name)
			case url != "":
				dir, err := s.checkOut(url, dialect.TextOf(decode.Lookup(task, "git_commit_id")))
				if err != nil {
					s.fault(task, decode.CodeUnavailable, "the task %q: %v", name, err)
					continue
				}
				s.addIn(at, dir, reach.At(filepath.Join(dir, taskFile)), filepath.FromSlash(dialect.TextOf(at)))
			default:
				s.add(at, filepath.FromSlash(dialect.TextOf(at)))
			}
		}
	}
}

// readDataset reads the tasks of a dataset.toml.
func (s *set) readDataset(root *yaml.Node) {
	for _, task := range dialect.Items(decode.Lookup(root, "tasks")) {
		at := decode.Follow(decode.Lookup(task, "name"))
		name := path.Clean(dialect.TextOf(at))
		if !filepath.IsLocal(filepath.FromSlash(name)) || name == "." {
			s.fault(task, decode.CodeInvalidValue, "a task has no name such as org/name")
			continue
		}
		s.add(at, filepath.FromSlash(name), path.Base(name), filepath.Join("tasks", path.Base(name)))
	}
	if list := decode.Lookup(root, "tasks"); list != nil && len(s.paths) > 0 {
		s.Reportf(s.src, list, decode.Warning, decode.CodeNoEffect, "digest has no effect: the tasks are those of the folders on this machine")
	}
}

// add adds the task in the first of some folders that has one. Its files run on this machine, so it must
// be in the repository of the set or, without one, in its directory.
func (s *set) add(at *yaml.Node, folders ...string) {
	s.addIn(at, filepath.Dir(s.file), s.places, folders...)
}

// addIn is like add for folders that are relative to a directory with its places.
func (s *set) addIn(at *yaml.Node, dir string, places reach.Places, folders ...string) {
	for _, folder := range folders {
		file := filepath.Join(dir, folder, taskFile)
		switch {
		case filepath.IsAbs(folder) || !files.Within(places.Root(), filepath.Join(places.Dir, folder, taskFile)):
			s.fault(at, decode.CodeEscapingPath, "the folder %s is outside of the repository", text.Clip(filepath.ToSlash(folder), 200))
			return
		case !files.IsRegular(file):
			continue
		case s.seen[file]:
		case len(s.paths) == maxSetTasks:
			s.fault(at, decode.CodeTooLarge, "the set has more than %d tasks", maxSetTasks)
		default:
			s.seen[file], s.paths = true, append(s.paths, file)
		}
		return
	}
	s.fault(at, decode.CodeMissingFile, "no folder %s with a %s", text.Clip(filepath.ToSlash(folders[0]), 200), taskFile)
}
