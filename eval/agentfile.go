package eval

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/skill"
	"waza/eval/text"

	"gopkg.in/yaml.v3"
)

// maxAgentFiles limits the agents of one directory.
const maxAgentFiles = 100

// agentKeys are the keys of an agent's frontmatter that waza or agents read.
var agentKeys = []string{"name", "description", "tools", "model", "handoffs", "mcp-servers", "agents", "mode", "target", "infer",
	"argument-hint", "disable-model-invocation", "user-invocable", "hooks", "metadata", "color"}

// An agentFile is a file that defines the agent under test.
type agentFile struct {
	path string
	*skill.Skill
}

// agentLoader finds the agent under test: a file NAME.agent.md, whose text is the instructions
// of the agent, and whose tools are the only ones that it may call.
type agentLoader struct{ *skillLoader }

// load returns the agent that the suite names; nil if it names none. The key skill names an agent
// if no skill has its name.
func (l agentLoader) load() *agentFile {
	s := l.suite
	name, at := s.Agent, decode.At("agent")
	if name == "" && l.underTest(s.Skill) == nil {
		name, at = s.Skill, decode.At("skill")
	}
	if name == "" || l.options.NoSkills || l.withheld(name) {
		return nil
	}
	if isInstructions(s.Agent) {
		return l.instructionsUnderTest()
	}
	dirs := l.agentDirectories()
	a := l.find(name, dirs)
	switch {
	case a == nil && s.Agent != "":
		message := fmt.Sprintf("no agent named %q: no file %s beside the suite, in config.skill_directories, in .github/agents or in agents",
			text.Clip(name, 60), text.Clip(name, 60)+skill.AgentSuffix)
		if strings.HasSuffix(name, skill.AgentSuffix) {
			message = fmt.Sprintf("agent must be the name of an agent without %s, got %q", skill.AgentSuffix, text.Clip(name, 60))
		}
		d := l.src.Diagnostic(decode.Place(l.src.Root, at...), l.missingSeverity(), decode.CodeMissingSkill, message)
		d.Suggestion = l.similar(name, dirs)
		l.Report(d)
	case a != nil && a.Problem != nil && !errors.Is(a.Problem, skill.ErrNoHead):
		l.reportHead(a.Skill, decode.Error)
	case a != nil:
		l.reportTypos(a.Skill, agentKeys)
	}
	return a
}

// isInstructions reports whether the key agent names a file of instructions in place of an agent.
func isInstructions(name string) bool {
	return strings.HasSuffix(name, ".md") && !strings.HasSuffix(name, skill.AgentSuffix)
}

// instructionsUnderTest returns the file of instructions that the suite names, such as AGENTS.md.
func (l agentLoader) instructionsUnderTest() *agentFile {
	name := l.suite.Agent
	candidates := []string{l.suite.Path(name)}
	if root := files.RepositoryRoot(l.suite.Dir); root != "" && !filepath.IsAbs(name) {
		candidates = append(candidates, filepath.Join(root, name))
	}
	for _, path := range candidates {
		if a := l.read(path); a != nil {
			a.Skill = &skill.Skill{File: a.File, Dir: a.Dir, Text: a.Text} // such a file has no keys
			return a
		}
	}
	l.Report(l.src.Diagnostic(decode.Place(l.src.Root, "agent"), l.missingSeverity(), decode.CodeMissingSkill,
		fmt.Sprintf("no file %s beside the suite or at the root of the repository", text.Clip(name, 80))))
	return nil
}

// agentDirectories returns the directories that can contain the agent under test, the nearest
// first.
func (l agentLoader) agentDirectories() []string {
	dir := l.suite.Dir
	dirs := []string{dir, filepath.Dir(dir), filepath.Dir(filepath.Dir(dir))}
	for _, d := range l.suite.Config.SkillDirectories {
		dirs = append(dirs, l.suite.Path(d))
	}
	if root := files.RepositoryRoot(dir); root != "" {
		dirs = append(dirs, filepath.Join(root, ".github", "agents"), filepath.Join(root, "agents"))
	}
	var found []string
	for _, d := range dirs {
		if !slices.Contains(found, d) {
			found = append(found, d)
		}
	}
	return found
}

// find returns the agent whose file has the name, else the one with the name in its file.
func (l agentLoader) find(name string, dirs []string) *agentFile {
	if filepath.IsLocal(name) {
		for _, dir := range dirs {
			if a := l.read(filepath.Join(dir, name+skill.AgentSuffix)); a != nil {
				return a
			}
		}
	}
	for a := range l.agents(dirs) {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// agents yields the agents of the directories.
func (l agentLoader) agents(dirs []string) iter.Seq[*agentFile] {
	return func(yield func(*agentFile) bool) {
		for _, dir := range dirs {
			for _, path := range l.filesIn(dir) {
				if a := l.read(path); a != nil && !yield(a) {
					return
				}
			}
		}
	}
}

// filesIn returns the paths of the agents of a directory.
func (l agentLoader) filesIn(dir string) []string {
	l.dependsOn(dir)
	entries, _ := os.ReadDir(dir)
	var paths []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), skill.AgentSuffix) && len(paths) < maxAgentFiles {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// similar returns the name of the agent that was most likely meant, or "". A file's name means
// its agent.
func (l agentLoader) similar(name string, dirs []string) string {
	var names []string
	for a := range l.agents(dirs) {
		names = append(names, strings.TrimSuffix(filepath.Base(a.path), skill.AgentSuffix))
		if a.Name != "" {
			names = append(names, a.Name)
		}
	}
	return decode.Nearest(strings.TrimSuffix(name, skill.AgentSuffix), names)
}

// read returns the agent of a file; nil if the file does not exist or cannot be read.
func (l agentLoader) read(path string) *agentFile {
	l.dependsOn(path)
	if _, unsaved := l.options.Overlay[path]; !unsaved && !files.IsRegular(path) {
		return nil
	}
	data, err := l.readSkill(path, skill.MaxBytes)
	if err != nil {
		l.reportUnreadable(path, nil, nil, err)
		return nil
	}
	return &agentFile{path, skill.Parse(path, data)}
}

// instructions returns the agent's text as instructions; nil for no agent.
func (a *agentFile) instructions() []InstructionFile {
	if a == nil {
		return nil
	}
	return []InstructionFile{{Name: filepath.Base(a.path), Path: a.path, UnderTest: true}}
}

// nameOfToolGrader is the name that microsoft/waza gives to the grader of an agent's tools.
const nameOfToolGrader = "agent_tools_implicit"

// graders returns the grader of the agent's tools, unless the suite has a grader of that kind.
func (l agentLoader) graders(a *agentFile) []*Grader {
	v := l.options.Vocabulary
	if a == nil || a.Head == nil || v == nil {
		return nil
	}
	key, tools := decode.LookupPair(a.Head, "tools")
	i := slices.IndexFunc(v.Graders, func(k Kind) bool { return k.ToolList != "" })
	if tools == nil || decode.IsNull(tools) || i < 0 {
		return nil
	}
	kind := v.Graders[i]
	if slices.ContainsFunc(l.suite.Graders, func(g *Grader) bool { return kind.Is(g.Type) }) {
		return nil
	}
	src := decode.NewSource(a.path, l.display(a.path), a.Text)
	list := decode.Follow(tools)
	names := *list
	if list.Kind == yaml.ScalarNode { // a list in one text, as some agents have it
		names = yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, name := range strings.Split(list.Value, ",") {
			if name = strings.TrimSpace(name); name != "" {
				names.Content = append(names.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name})
			}
		}
	}
	line := key.Line + 1 // the line of dashes
	names.Line = line
	options := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: line, Column: key.Column,
		Content: []*yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!str", Value: kind.ToolList, Line: line, Column: key.Column}, &names}}
	g := &Grader{Name: nameOfToolGrader, Type: kind.Name, File: a.path, Line: line, Column: key.Column,
		src: src, node: options, config: options}
	return graderLoader{l.loader}.load([]*Grader{g}, nil)
}
