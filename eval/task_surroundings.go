package eval

import (
	"maps"
	"path/filepath"
	"slices"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/surroundings"
	"waza/eval/text"
)

// surroundingsCheck checks what surrounds a task's agent besides files: repositories, a simulated user,
// checkpoints and instructions.
type surroundingsCheck struct{ *taskCheck }

func (c surroundingsCheck) check() {
	in := &c.task.Inputs
	surroundings.CheckRepos(in.Repos, c.repository, c.reportBelow("repos"))
	for i := range in.Repos {
		if at := decode.Follow(decode.Place(c.node, c.inputPath("repos", i, "source")...)); at != nil {
			in.Repos[i].Line, in.Repos[i].Column = at.Line, at.Column
		}
	}
	if dir, ok := surroundings.Folder(in.Workdir); !ok {
		c.reportf(decode.Error, decode.CodeEscapingPath, c.inputPath("workdir"),
			"workdir must be a relative path inside the workspace, got %q", text.Clip(in.Workdir, 80))
	} else if in.Workdir = dir; dir == "." {
		in.Workdir = ""
	}
	if in.Responder != nil && len(in.FollowUpPrompts) > 0 {
		c.reportf(decode.Error, decode.CodeInvalidValue, c.inputPath("responder"),
			"a task has a responder or follow_up_prompts, not both, because each of them replies to the agent")
	}
	c.checkCheckpoints()
	c.checkInstructions()
	if remote, others := c.loader.executors().remote(); !remote || others {
		return
	}
	for _, key := range []string{"workdir", "repos", "responder", "checkpoints", "instruction_files", "first_event_timeout_seconds"} {
		at := c.inputPath(key)
		if !c.has(at) {
			at = decode.At(key)
		}
		if c.has(at) {
			c.reportf(decode.Warning, decode.CodeNoEffect, at,
				"%s has no effect with executor %s: its agents get one prompt and no workspace", key,
				c.loader.suite.Config.Executor)
		}
	}
}

// maxCheckpoints limits the checkpoints of a task.
const maxCheckpoints = 100

// checkCheckpoints checks the checkpoints of a task and loads their graders. These never replace
// a grader of the suite, even if they have the same name.
func (c surroundingsCheck) checkCheckpoints() {
	t := c.task
	if n := len(t.Inputs.Checkpoints); n > maxCheckpoints {
		c.reportf(decode.Error, decode.CodeTooLarge, c.inputPath("checkpoints"), "checkpoints has %d entries; the limit is %d", n, maxCheckpoints)
		t.Inputs.Checkpoints = nil
	}
	for i := range t.Inputs.Checkpoints {
		p := &t.Inputs.Checkpoints[i]
		none := len(p.Graders) == 0
		p.Graders = graderLoader{c.loader}.loadNamed(p.Graders, t, map[string]bool{})
		if slices.ContainsFunc(p.Graders, func(g *Grader) bool { return g.Group != nil }) {
			c.reportf(decode.Error, decode.CodeInvalidValue, c.inputPath("checkpoints", i, "graders"),
				"checkpoints[%d] has a group; all graders of a checkpoint must pass, so list them without it", i)
		}
		if none && len(p.Files)+len(p.Setup) == 0 && p.AgentTimeoutSeconds == 0 {
			c.reportf(decode.Warning, decode.CodeNothingChecked, c.inputPath("checkpoints", i),
				"checkpoints[%d] does nothing: it has no graders, files, setup or agent_timeout_seconds", i)
		}
		if most := t.Turns(); p.AfterTurn > most {
			c.reportf(decode.Warning, decode.CodeNoEffect, c.inputPath("checkpoints", i, "after_turn"),
				"checkpoints[%d] is never reached: the task has %d %s", i, most, text.Plural(most, "turn", "turns"))
		}
	}
}

// checkInstructions finds the task's own instruction files.
func (c surroundingsCheck) checkInstructions() {
	t, l := c.task, c.loader
	t.Instructions = l.skills.agent.instructions()
	for i, f := range t.InstructionFiles {
		at := decode.At("instruction_files", i)
		path := filepath.Join(c.fixtureDir(), filepath.FromSlash(f))
		looked := []string{path}
		ok := !filepath.IsAbs(f) && files.IsRegular(path)
		if !ok {
			var tried []string
			path, tried, ok = l.suite.Resolve(f, l.beside(t))
			looked = append(looked, tried...)
		}
		l.dependsOn(looked...)
		if !ok {
			path = ""
			c.reportf(decode.Warning, decode.CodeMissingFile, at, "no such file: %s (tried %s)", text.Clip(f, 200), l.displayAll(looked))
		} else if err := l.suite.Allows(path); err != nil {
			c.reportf(decode.Error, decode.CodeEscapingPath, at, "%s is %s", l.display(path), err)
		}
		t.Instructions = append(t.Instructions, InstructionFile{Name: f, Path: path})
	}
}

// reportBelow returns a function that reports findings below a key of the inputs.
func (c surroundingsCheck) reportBelow(key string) surroundings.Reporter {
	return func(at decode.Path, severity decode.Severity, code decode.Code, format string, args ...any) {
		c.reportf(severity, code, c.inputPath(append([]any{key}, at...)...), format, args...)
	}
}

// repository returns the absolute path of a repository's directory: relative to the suite, else
// to the current directory.
func (c surroundingsCheck) repository(source string) (dir string, ok bool) {
	dir = c.loader.suite.Path(source)
	c.loader.dependsOn(dir)
	if !files.IsDir(dir) && !filepath.IsAbs(source) {
		if near, err := filepath.Abs(filepath.FromSlash(source)); err == nil && files.IsDir(near) {
			dir = near
		}
	}
	return dir, files.IsDir(dir)
}

// checkServers checks the MCP servers of the task.
func (c *taskCheck) checkServers() {
	for _, name := range slices.Sorted(maps.Keys(c.task.MCPServers)) {
		server, _ := c.task.MCPServers[name].(map[string]any)
		command, _ := server["command"].(string)
		url, _ := server["url"].(string)
		if command == "" && url == "" {
			c.reportf(decode.Error, decode.CodeInvalidValue, decode.At("mcp_servers", name),
				"mcp_servers.%s must be a map with command, args and env, or with type and url", text.Clip(name, 60))
		}
	}
	c.loader.warnWithoutServers(c.src, c.node, "mcp_servers", len(c.task.MCPServers))
}

// warnWithoutServers reports MCP servers in a key of the suite or of a task that no executor takes.
func (l *loader) warnWithoutServers(src *decode.Source, node *yaml.Node, key string, number int) {
	if without, takers := l.executors().withoutKind(func(k Kind) bool { return k.TakesServers }); without != "" && number > 0 {
		l.Reportf(src, decode.Place(node, key), decode.Warning, decode.CodeNoEffect,
			"%s has no effect with executor %s; executors that take it: %s", key, without, takers)
	}
}

// loadMocks checks the mcp_mocks of the suite or of a task, and reads their fixtures.
func (l *loader) loadMocks(src *decode.Source, node *yaml.Node, mocks []surroundings.MCPMock) []surroundings.MCPMock {
	l.warnWithoutServers(src, node, "mcp_mocks", len(mocks))
	read := func(path string) ([]byte, error) { return l.readFile(path, maxYAMLBytes) }
	return surroundings.Reading{
		Places: l.suite.Places, Read: read, Parse: l.parse, Shown: l.display, Looked: l.dependsOn,
		Findings: &l.Findings,
	}.
		Mocks(mocks, src, decode.Place(node, "mcp_mocks"))
}
