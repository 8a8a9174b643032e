package harbor

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"waza/eval/dialect"
	"waza/eval/surroundings"
	"waza/eval/text"
)

// The tables of a task.toml that waza writes.
type (
	writtenTask struct {
		Version     string             `toml:"version"`
		Task        *writtenHead       `toml:"task,omitempty"`
		Metadata    map[string]any     `toml:"metadata,omitempty"`
		Agent       writtenPhase       `toml:"agent,omitempty"`
		Verifier    writtenPhase       `toml:"verifier"`
		Environment writtenEnvironment `toml:"environment"`
	}
	writtenHead struct {
		Name        string `toml:"name,omitempty"`
		Description string `toml:"description,omitempty"`
	}
	writtenPhase struct {
		Timeout float64        `toml:"timeout_sec,omitempty"`
		Network string         `toml:"network_mode,omitempty"`
		Hosts   []string       `toml:"allowed_hosts,omitempty"`
		Env     map[string]any `toml:"env,omitempty"`
	}
	writtenEnvironment struct {
		Network     string            `toml:"network_mode,omitempty"`
		Hosts       []string          `toml:"allowed_hosts,omitempty"`
		Env         map[string]string `toml:"env,omitempty"`
		HealthCheck *writtenHealth    `toml:"healthcheck,omitempty"`
		Servers     []writtenServer   `toml:"mcp_servers,omitempty"`
	}
	writtenHealth struct {
		Command  string  `toml:"command"`
		Interval float64 `toml:"interval_sec"`
		Timeout  float64 `toml:"timeout_sec"`
		Retries  int     `toml:"retries"`
	}
	writtenServer struct {
		Name      string   `toml:"name"`
		Transport string   `toml:"transport"`
		URL       string   `toml:"url,omitempty"`
		Command   string   `toml:"command,omitempty"`
		Args      []string `toml:"args,omitempty"`
	}
)

// image is the image of tasks that are written. Suites do not know one.
const image = "ubuntu:24.04"

// write returns a folder for each task of a suite.
func write(d *dialect.Document) (files []dialect.File, err error) {
	w := &writer{Document: d, folders: map[string]bool{}}
	w.servers, _ = dialect.Take[map[string]any](&d.Others, "config.mcp_servers")
	for i := range d.Cases {
		t := &taskWriter{writer: w, from: &d.Cases[i], programs: map[string]string{}}
		if err := t.write(); err != nil {
			return nil, err
		}
		files = append(files, t.files...)
	}
	w.loseRest()
	return files, nil
}

type writer struct {
	*dialect.Document
	servers map[string]any
	folders map[string]bool
}

// loseRest reports the parts of the suite that are in no task.
func (w *writer) loseRest() {
	if len(w.Cases) > 0 {
		w.Lose(false, "environment/Dockerfile", "it starts from "+image+"; name the image that the task needs")
	} else {
		w.Lose(true, "tasks", "the suite has none")
	}
	if w.Version != "" {
		w.Lose(false, "version", "")
	}
	if w.Description != "" && len(w.Cases) > 1 {
		w.Lose(false, "description", "each task has its own")
	}
	if w.Skill != "" {
		w.Lose(true, "skill", "a task has no skills")
	}
	w.LoseKeys()
	w.LoseArms("Harbor")
}

// taskWriter writes one task.
type taskWriter struct {
	*writer
	from   *dialect.Case
	folder string
	task   writtenTask
	files  []dialect.File
	tests  []string // conditions of the shell, if the task has no tests of its own
	// workdir is the work folder, paths are the folders of the workspace by their absolute paths.
	workdir string
	paths   map[string]string
	limit   float64 // of the verifier, in seconds
	decided bool    // a folder of tests decides
	// programs are the files of the suite in the folder of tests, by their names there.
	programs map[string]string
	losses   []string
}

func (t *taskWriter) lose(verdict bool, part, reason string) {
	t.Lose(verdict, "task "+t.from.ID+": "+part, reason)
	t.losses = append(t.losses, t.Losses[len(t.Losses)-1].String())
}

func (t *taskWriter) add(name, content string) {
	t.files = append(t.files, dialect.TextFile(path.Join(t.folder, name), content))
}

func (t *taskWriter) copy(name, source string) {
	t.files = append(t.files, dialect.File{Path: path.Join(t.folder, name), Source: source})
}

var unsafeInName = text.Pattern(`[^\pL\pN._-]+`)

func (t *taskWriter) write() error {
	c := t.from
	t.setFolder()
	t.task.Version, t.limit = "1.0", verifierTimeout
	if len(c.Tags) > 0 {
		t.task.Metadata = map[string]any{"tags": c.Tags}
	}
	if c.Name != c.ID {
		t.lose(false, "name", "a task has one name, which is the id")
	}
	if t.Templates && strings.Contains(c.Prompt, "{{") {
		t.lose(true, "prompt", "prompts have no template variables")
	}
	if len(c.FollowUps) > 0 {
		t.lose(true, "inputs.follow_up_prompts", "waza writes no tasks with steps")
	}
	t.add("instruction.md", c.Prompt)
	t.setSandbox()
	for i := range c.Checks {
		t.check(&c.Checks[i])
	}
	t.setTests()
	t.setTimes()
	t.setEnvironment()
	t.setFiles()
	t.setSolution()
	for _, key := range c.Others {
		reason, _ := key.Value.(string)
		if key.Name != "blocked" {
			reason = ""
		}
		t.lose(true, key.Name, reason)
	}
	data, err := toml.Marshal(t.task)
	head := "# waza convert wrote this task.\n"
	for _, l := range t.losses {
		head += "# " + text.Clip(strings.Join(strings.Fields(l), " "), 1000) + "\n"
	}
	t.files = slices.Insert(t.files, 0, dialect.TextFile(path.Join(t.folder, taskFile), head+string(data)))
	return err
}

// setFolder chooses the folder of the task, whose name is the id if that is a usual name.
func (t *taskWriter) setFolder() {
	name := strings.Trim(unsafeInName().ReplaceAllString(t.from.ID, "-"), ".-")
	if name == "" {
		name = "task"
	}
	t.folder = name
	for k := 2; t.folders[strings.ToLower(t.folder)]; k++ {
		t.folder = name + "-" + strconv.Itoa(k)
	}
	t.folders[strings.ToLower(t.folder)] = true
	head := writtenHead{Description: t.from.Description}
	if len(t.Cases) == 1 && head.Description == "" {
		head.Description = t.Description
	}
	if t.folder != t.from.ID {
		if head.Name = t.from.ID; path.Base(t.from.ID) != t.from.ID {
			t.lose(false, "id", "the name of a task has no slashes")
			head.Name = ""
		}
	}
	if head != (writtenHead{}) {
		t.task.Task = &head
	}
}

// setSandbox sets the network of the agent, and finds the work folder.
func (t *taskWriter) setSandbox() {
	t.workdir = defaultWorkdir
	box, ok := dialect.Take[surroundings.TaskSandbox](&t.from.Others, "sandbox")
	if !ok {
		return
	}
	t.paths = box.Paths
	for _, target := range box.Targets() {
		if box.Paths[target] == "." {
			t.workdir = target
		}
	}
	if box.Network != nil {
		t.task.Agent.Network, t.task.Agent.Hosts = modeOf(*box.Network)
	}
	if box.SandboxImage != (surroundings.SandboxImage{}) {
		t.lose(true, "sandbox.image", "waza does not read images of Harbor")
	}
}

// modeOf returns a network as Harbor names it.
func modeOf(n surroundings.Network) (mode string, hosts []string) {
	switch {
	case n.Open:
		return "public", nil
	case len(n.Hosts) == 0:
		return "no-network", nil
	}
	return "allowlist", n.Hosts
}

// check writes a grader: a verifier, or a condition for the script of one.
func (t *taskWriter) check(c *dialect.Check) {
	left, part := maps.Clone(c.Config), c.Named()
	negate, _ := dialect.Take[bool](&c.Others, "negate")
	optional, _ := dialect.Take[bool](&c.Others, "optional")
	for _, key := range c.Others {
		t.lose(true, part+" "+key.Name, "")
	}
	if t.Templates && dialect.HasVariable(c.Config) {
		t.lose(true, part, "verifiers have no template variables")
	}
	switch {
	case optional:
		t.lose(false, part, "Harbor has one verifier, which decides")
		return
	case c.Type == "reward" && !negate && !t.decided && len(t.tests) == 0 && t.reward(left):
		if c.Name != "reward" || c.Weight != 1 {
			t.lose(false, part, "the only verifier has neither a name nor a weight")
		}
	case c.Type == "program" && t.program(part, left, negate), c.Type == "file" && t.file(left, negate):
		t.lose(false, part, "it becomes a condition in tests/test.sh")
	default:
		t.lose(true, fmt.Sprintf("%s (%s)", part, c.Type), "a verifier is a script: write it as tests/test.sh")
		return
	}
	for _, key := range slices.Sorted(maps.Keys(left)) {
		t.lose(true, fmt.Sprintf("%s (%s) %s", part, c.Type, key), "")
	}
}

// reward writes the folder of tests of a reward. It returns false if there is not one of them.
func (t *taskWriter) reward(left map[string]any) bool {
	dirs, _ := dialect.TextsIn(left["tests"])
	if len(dirs) != 1 {
		return false
	}
	delete(left, "tests")
	t.copy("tests", absolute(t.Dir, dirs[0]))
	if workdir, _ := left["workdir"].(string); workdir == t.workdir {
		delete(left, "workdir")
	}
	if limit, ok := dialect.NumberIn(left["timeout"]); ok {
		t.limit = limit
		delete(left, "timeout")
	}
	if env, ok := left["env"].(map[string]any); ok {
		t.task.Verifier.Env = env
		delete(left, "env")
	}
	switch network := left["network"].(type) {
	case string:
		if network == "none" {
			t.task.Environment.Network = "no-network"
			delete(left, "network")
		}
	case []any:
		if hosts, ok := dialect.TextsIn(network); ok {
			t.task.Environment.Network, t.task.Environment.Hosts = "allowlist", hosts
			delete(left, "network")
		}
	}
	t.decided = true
	return true
}

func absolute(dir, name string) string {
	name = filepath.FromSlash(name)
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// program writes a program that runs in the workspace and decides by its exit code.
func (t *taskWriter) program(part string, left map[string]any, negate bool) bool {
	command, _ := left["command"].(string)
	given, _ := left["expect"].(map[string]any)
	expect := maps.Clone(given)
	delete(expect, "syntax")
	code, _ := dialect.NumberIn(expect["exit_code"])
	if command == "" || left["trust_workspace"] != true || len(expect) > 1 || len(expect) == 1 && (expect["exit_code"] == nil || code != 0) || t.decided {
		return false
	}
	args, _ := dialect.TextsIn(left["args"])
	words := append([]string{command}, args...)
	if i, file := t.ProgramFile(words); i >= 0 {
		words[i] = "/tests/" + t.copyProgram(file)
		t.lose(false, part, "tests/ has a copy of the program, but not the files that it uses")
	} else if strings.HasPrefix(filepath.ToSlash(filepath.Clean(command)), "../") {
		t.lose(true, part, "its program is not in the folder of the suite; copy it to tests/")
	}
	if given == nil {
		t.lose(true, part, "in Harbor, only the exit code decides, and not a verdict that the program prints")
	}
	for i, w := range words {
		words[i] = shellWord(w)
	}
	for _, key := range []string{"command", "args", "trust_workspace", "network", "expect"} {
		delete(left, key)
	}
	t.tests = append(t.tests, condition(strings.Join(words, " "), negate))
	return true
}

// copyProgram copies a program to the folder of tests, and returns its name there.
func (t *taskWriter) copyProgram(file string) string {
	name := filepath.Base(file)
	for k := 2; name == "test.sh" || t.programs[name] != "" && t.programs[name] != file; k++ {
		name = strconv.Itoa(k) + "-" + filepath.Base(file)
	}
	if t.programs[name] == "" {
		t.programs[name] = file
		t.copy("tests/"+name, file)
	}
	return name
}

// file writes the existence of files as conditions.
func (t *taskWriter) file(left map[string]any, negate bool) bool {
	for _, key := range slices.Sorted(maps.Keys(left)) {
		value := left[key]
		paths, ok := dialect.TextsIn(value)
		if !ok || key != "must_exist" && key != "must_not_exist" || strings.ContainsAny(strings.Join(paths, ""), "*?[{") || t.decided ||
			negate && len(paths)+len(left) > 2 {
			return false
		}
		for _, p := range paths {
			exists := "{ [ -e " + shellWord(p) + " ] || [ -L " + shellWord(p) + " ]; }" // links that lead nowhere exist
			t.tests = append(t.tests, condition(exists, negate != (key == "must_not_exist")))
		}
		delete(left, key)
	}
	return true
}

func condition(command string, negate bool) string {
	if negate {
		return "! " + command
	}
	return command
}

// setTests writes tests/test.sh of conditions, all of which must hold.
func (t *taskWriter) setTests() {
	switch {
	case t.decided:
	case len(t.tests) == 0:
		t.lose(true, "graders", "nothing decides; write tests/test.sh")
	default:
		t.add("tests/test.sh", "#!/bin/sh\ncd "+shellWord(t.workdir)+" || exit 1\nif "+strings.Join(t.tests, " &&\n\t")+
			"; then\n\techo 1 >/logs/verifier/reward.txt\nelse\n\techo 0 >/logs/verifier/reward.txt\nfi\n")
	}
}

// setTimes sets the limits: the limit of a task is that of its agent and its verifier together.
func (t *taskWriter) setTimes() {
	total, ok := dialect.Take[float64](&t.from.Others, "timeout_seconds")
	if agent := total - t.limit; ok && agent > 0 && agent != noAgentTimeout {
		t.task.Agent.Timeout = agent
	} else if ok && agent <= 0 {
		t.task.Agent.Timeout = total
		t.lose(false, "timeout_seconds", "the verifier has a limit of its own")
	}
	if own, ok := dialect.Take[float64](&t.from.Others, "agent_timeout_seconds"); ok && own != noAgentTimeout {
		t.task.Agent.Timeout = own
	}
	if t.limit != verifierTimeout {
		t.task.Verifier.Timeout = t.limit
	}
	env := t.task.Environment
	if a := &t.task.Agent; a.Network == env.Network && slices.Equal(a.Hosts, env.Hosts) {
		a.Network, a.Hosts = "", nil // the agent has the network of the environment
	} else if a.Network == "" {
		a.Network = "public"
	}
}

// healthCheckOf matches the command that a health check becomes.
var healthCheckOf = text.Pattern(`^cd '[^']*' && n=0; until timeout (\S+) sh -c '((?:[^']|'\\'')*)'; do n=\$\(\(n\+1\)\); \[ \$n -lt (\d+) \] \|\| ` +
	`\{ echo the health check failed; exit 1; \}; sleep (\S+); done$`)

func (t *taskWriter) setEnvironment() {
	c := t.from
	t.task.Environment.Env, _ = dialect.Take[map[string]string](&c.Others, "inputs.environment")
	servers := maps.Clone(t.servers)
	if own, ok := dialect.Take[map[string]any](&c.Others, "mcp_servers"); ok {
		if servers == nil {
			servers = map[string]any{}
		}
		maps.Copy(servers, own)
	}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		t.setServer(name, servers[name])
	}
	for _, key := range c.Others {
		commands, ok := key.Value.([]string)
		if !ok || key.Name != "inputs.setup" || len(commands) != 1 {
			continue
		}
		if m := healthCheckOf().FindStringSubmatch(commands[0]); m != nil {
			h := writtenHealth{Command: strings.ReplaceAll(m[2], `'\''`, "'")}
			h.Timeout, _ = strconv.ParseFloat(m[1], 64)
			h.Retries, _ = strconv.Atoi(m[3])
			h.Interval, _ = strconv.ParseFloat(m[4], 64)
			t.task.Environment.HealthCheck = &h
			dialect.Take[[]string](&c.Others, key.Name)
		}
		break
	}
}

func (t *taskWriter) setServer(name string, server any) {
	m, _ := server.(map[string]any)
	s := writtenServer{Name: name, Transport: "stdio"}
	s.URL, _ = m["url"].(string)
	s.Command, _ = m["command"].(string)
	s.Args, _ = dialect.TextsIn(m["args"])
	switch {
	case m["type"] == "sse":
		s.Transport = "sse"
	case s.URL != "" && m["type"] != "stdio":
		s.Transport = "streamable-http"
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains([]string{"type", "url", "command", "args"}, key) {
			t.lose(true, "MCP server "+name+" "+key, "")
		}
	}
	t.task.Environment.Servers = append(t.task.Environment.Servers, s)
}

// setFiles writes the Dockerfile and the files that it copies.
func (t *taskWriter) setFiles() {
	dockerfile := "FROM " + image + "\nWORKDIR " + t.workdir + "\n"
	inside := false
	folders := map[string]bool{}
	for _, f := range t.from.Files {
		name := path.Join("environment/files", f.Path)
		if abs, ok := strings.CutPrefix(f.Path, outside+"/"); ok {
			target := t.folderOf("/" + abs)
			if target == "" || strings.ContainsAny(target, " \t") {
				t.lose(true, "file "+f.Path, "no path of the sandbox contains it")
				continue
			}
			name, folders[target] = path.Join("environment/outside", abs), true
		} else {
			inside = true
		}
		if f.Content != nil {
			t.add(strings.TrimPrefix(name, "/"), *f.Content)
		} else {
			t.copy(name, f.Source)
		}
	}
	if inside {
		dockerfile += "COPY files .\n"
	}
	for _, target := range slices.Sorted(maps.Keys(folders)) {
		dockerfile += "COPY outside" + target + " " + target + "\n"
	}
	for _, target := range slices.Sorted(maps.Keys(t.paths)) {
		if target != t.workdir && !folders[target] && target != solutionInside && !slices.Contains(otherPaths, target) {
			t.lose(true, "sandbox.paths "+target, "")
		}
	}
	t.add("environment/Dockerfile", dockerfile)
}

// folderOf returns the outermost path of the sandbox that contains a file; "" for none.
func (t *taskWriter) folderOf(file string) (found string) {
	for _, target := range slices.Sorted(maps.Keys(t.paths)) {
		if strings.HasPrefix(file, target+"/") && (found == "" || len(target) < len(found)) {
			found = target
		}
	}
	return found
}

func (t *taskWriter) setSolution() {
	solution, ok := dialect.Take[dialect.Solution](&t.from.Others, "solution")
	if !ok {
		return
	}
	if solution.Script == "" || solution.Output != "" {
		t.lose(false, "solution.output", "a solution is a script")
	}
	if solution.Script == "" {
		return
	}
	t.copy("solution/solve.sh", solution.Script)
	for _, f := range solution.Files {
		name, ok := strings.CutPrefix(f.Path, outside+solutionInside+"/")
		switch {
		case !ok:
			t.lose(false, "solution file "+f.Path, "files of a solution are in "+solutionInside)
		case f.Content != nil:
			t.add("solution/"+name, *f.Content)
		default:
			t.copy("solution/"+name, f.Source)
		}
	}
}
