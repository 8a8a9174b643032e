package harbor

import (
	"maps"
	"path"
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
		Strategy    string             `toml:"multi_step_reward_strategy,omitempty"`
		Task        *writtenHead       `toml:"task,omitempty"`
		Metadata    map[string]any     `toml:"metadata,omitempty"`
		Agent       writtenPhase       `toml:"agent,omitempty"`
		Verifier    writtenPhase       `toml:"verifier"`
		Environment writtenEnvironment `toml:"environment"`
		Steps       []writtenStep      `toml:"steps,omitempty"`
	}
	writtenStep struct {
		Name        string             `toml:"name"`
		MinReward   map[string]float64 `toml:"min_reward,omitempty"`
		Agent       writtenPhase       `toml:"agent,omitempty"`
		Verifier    writtenPhase       `toml:"verifier,omitempty"`
		HealthCheck *writtenHealth     `toml:"healthcheck,omitempty"`
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
		t := &taskWriter{writer: w, from: &d.Cases[i]}
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
	steps  []*stepWriter // at least one
	// workdir is the work folder, paths are the folders of the workspace by their absolute paths.
	workdir string
	paths   map[string]string
	// common is the folder of tests that all steps share; empty for none.
	common string
	// network is that of the verifiers, as the suite has it; nil before the first one.
	network any
	losses  []string
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

func (t *taskWriter) put(name string, f dialect.File) {
	if f.Content != nil {
		t.add(name, *f.Content)
	} else {
		t.copy(name, f.Source)
	}
}

var unsafeInName = text.Pattern(`[^\pL\pN._-]+`)

func (t *taskWriter) write() error {
	c := t.from
	t.setFolder()
	t.task.Version = "1.0"
	if len(c.Tags) > 0 {
		t.task.Metadata = map[string]any{"tags": c.Tags}
	}
	if c.Name != c.ID {
		t.lose(false, "name", "a task has one name, which is the id")
	}
	if t.Templates && strings.Contains(c.Prompt, "{{") {
		t.lose(true, "prompt", "prompts have no template variables")
	}
	t.setSandbox()
	t.setSteps()
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
	if t.isMulti() {
		for _, s := range t.steps {
			t.task.Steps = append(t.task.Steps, s.written)
		}
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

// setTimes sets the limits of a task without steps: the limit of a task is that of its agent and its verifier
// together. Steps have limits of their own.
func (t *taskWriter) setTimes() {
	if t.isMulti() {
		t.setStepTimes()
	} else {
		t.setTime(t.steps[0])
	}
	env := t.task.Environment
	if a := &t.task.Agent; a.Network == env.Network && slices.Equal(a.Hosts, env.Hosts) {
		a.Network, a.Hosts = "", nil // the agent has the network of the environment
	} else if a.Network == "" {
		a.Network = "public"
	}
}

func (t *taskWriter) setTime(s *stepWriter) {
	total, ok := dialect.Take[float64](&t.from.Others, "timeout_seconds")
	if agent := total - s.limit; ok && agent > 0 && agent != noAgentTimeout {
		t.task.Agent.Timeout = agent
	} else if ok && agent <= 0 {
		t.task.Agent.Timeout = total
		t.lose(false, "timeout_seconds", "the verifier has a limit of its own")
	}
	if own, ok := dialect.Take[float64](&t.from.Others, "agent_timeout_seconds"); ok && own != noAgentTimeout {
		t.task.Agent.Timeout = own
	}
	if s.limit != verifierTimeout {
		t.task.Verifier.Timeout = s.limit
	}
	t.task.Verifier.Env = s.written.Verifier.Env
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
	if commands, ok := dialect.Take[[]string](&c.Others, "inputs.setup"); ok && !t.steps[0].prepare(commands) {
		c.Others = append(c.Others, dialect.Key{Name: "inputs.setup"})
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
		if first := t.steps[0]; first.setup && f.Path == setupScript {
			first.addFile(f)
			continue
		}
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
		t.put(name, f)
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
	for i, step := range t.steps {
		turn := solution
		switch {
		case i == 0 || len(solution.FollowUps) == 0: // the script runs for each prompt
		case i <= len(solution.FollowUps):
			turn = solution.FollowUps[i-1]
		default:
			turn = dialect.Solution{}
		}
		if turn.Script == "" {
			t.lose(false, "solution", "a step has none, and waza attack uses solutions only if all steps have one")
			continue
		}
		t.copySolution(step, turn)
	}
}

func (t *taskWriter) copySolution(s *stepWriter, solution dialect.Solution) {
	t.copy(s.path("solution/solve.sh"), solution.Script)
	for _, f := range solution.Files {
		name, ok := strings.CutPrefix(f.Path, outside+solutionInside+"/")
		switch {
		case !ok:
			t.lose(false, "solution file "+f.Path, "files of a solution are in "+solutionInside)
		default:
			t.put(s.path("solution/"+name), f)
		}
	}
}
