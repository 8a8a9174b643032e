package dotnet

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// addSetup prepares the workspace.
func (s *scenario) addSetup() {
	setup := s.get("setup")
	if !s.isMap(setup, "setup") {
		return
	}
	s.warnUnknown(setup, "files", "copy_test_files", "commands", "additional_required_skills", "additional_required_agents")
	files := s.files(setup)
	if n := decode.Follow(decode.Lookup(setup, "copy_test_files")); n != nil {
		if all, ok := decode.BoolOf(n); !ok {
			s.fault(n, "copy_test_files must be true or false, got %s", decode.Describe(n))
		} else if all {
			files = append(files, s.siblings(n, files)...)
		}
	}
	if len(files) > 0 {
		s.inputs.Set("files", dialect.List(setup, files...))
	}
	s.addCommands(s.list(setup, "commands"))
	s.addSkills(s.list(setup, "additional_required_skills"))
	if agents := s.list(setup, "additional_required_agents"); len(agents) > 0 {
		s.block(agents[0], "the agent needs additional_required_agents, and waza gives it one agent at most")
	}
}

// files returns the files that the scenario lists. The last one of a path counts.
func (s *scenario) files(setup *yaml.Node) (files []*yaml.Node) {
	for _, item := range s.list(setup, "files") {
		at := decode.Follow(decode.Lookup(item, "path"))
		if dialect.TextOf(at) == "" {
			s.fault(item, "a file of setup needs a path, and content or source")
			continue
		}
		s.warnUnknown(item, "path", "content", "source")
		f := dialect.NewMap(item)
		f.Set("path", dialect.Scalar(at, at.Value))
		content, source := decode.Follow(decode.Lookup(item, "content")), decode.Follow(decode.Lookup(item, "source"))
		switch from := filepath.Join(s.dir, filepath.FromSlash(dialect.TextOf(source))); {
		case content != nil && content.Kind != yaml.ScalarNode:
			s.fault(content, "the content of the file %s of setup must be a text, got %s", text.Clip(at.Value, 80), decode.Describe(content))
			continue
		case content != nil && !decode.IsNull(content):
			f.Set("content", dialect.Scalar(content, dialect.TextOf(content)))
		case dialect.TextOf(source) == "":
			s.fault(item, "the file %s of setup needs content or source", text.Clip(at.Value, 80))
			continue
		case !s.Files.Exists(from):
			s.block(source, "source %s does not exist", s.Files.Shown(from))
			continue
		default:
			f.Set("source", dialect.Scalar(source, s.Files.Relative(from)))
		}
		files = slices.DeleteFunc(files, func(earlier *yaml.Node) bool { return samePath(earlier, at.Value) })
		files = append(files, f.Node)
	}
	return files
}

func samePath(file *yaml.Node, name string) bool {
	return path.Clean(dialect.TextOf(decode.Lookup(file, "path"))) == path.Clean(name)
}

// siblings returns the files and folders beside the eval.yaml, without those that the scenario lists
// itself, and without links.
func (s *scenario) siblings(at *yaml.Node, listed []*yaml.Node) (files []*yaml.Node) {
	entries, err := s.Files.List(s.dir)
	if err != nil {
		s.block(at, "the files beside the suite cannot be read")
	}
	for _, e := range entries {
		name := e.Name()
		if name == "eval.yaml" || name == filepath.Base(s.Source.Path) || e.Type()&fs.ModeSymlink != 0 ||
			slices.ContainsFunc(listed, func(f *yaml.Node) bool { return samePath(f, name) }) {
			continue
		}
		f := dialect.NewMap(at)
		f.Set("path", dialect.Scalar(at, name))
		f.Set("source", dialect.Scalar(at, name))
		files = append(files, f.Node)
	}
	return files
}

// addCommands sets the shell commands that run before the agent. A command that fails is no fault,
// because a scenario may need what a broken build leaves.
func (s *scenario) addCommands(list []*yaml.Node) {
	commands := dialect.List(s.get("setup"))
	for _, item := range list {
		command := dialect.TextOf(item)
		if command == "" {
			s.fault(item, "a command of setup must be a text, got %s", describe(item))
			continue
		}
		quoted := "'" + strings.ReplaceAll(command, "'", `'\''`) + "'"
		commands.Content = append(commands.Content, dialect.Scalar(item, "sh -c "+quoted+" || true"))
	}
	if len(commands.Content) > 0 {
		s.inputs.Set("setup", commands)
	}
}

// addSkills gives the agent further skills of the plugin.
func (s *scenario) addSkills(list []*yaml.Node) {
	if len(list) == 0 {
		return
	}
	dirs, skills := dialect.List(s.get("setup")), filepath.Join(s.pluginDir(), "skills")
	if s.skill != "" {
		dirs.Content = append(dirs.Content, dialect.Scalar(nil, s.Files.Relative(s.skill)))
	}
	for _, item := range list {
		name := dialect.TextOf(item)
		dir := filepath.Join(skills, name)
		if !filepath.IsLocal(name) || !s.isSkill(dir) {
			s.block(item, "the agent needs the skill %q, which is not in %s", text.Clip(name, 60), s.Files.Shown(skills))
			continue
		}
		dirs.Content = append(dirs.Content, dialect.Scalar(item, s.Files.Relative(dir)))
	}
	s.task.Set("skill_directories", dirs)
}

func (s *scenario) isSkill(dir string) bool {
	_, ok := s.SkillIn(dir)
	return ok
}
