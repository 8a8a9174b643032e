package harbor

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/surroundings"
	"waza/eval/text"
)

// The defaults of Harbor, in seconds. An agent without a limit gets a day.
const (
	verifierTimeout = 600
	noAgentTimeout  = 24 * 60 * 60
)

// translator translates one task.toml.
type translator struct {
	*dialect.Translation
	root    *yaml.Node
	dir     string // of the task
	suite   dialect.Map
	task    dialect.Map
	inputs  dialect.Map
	config  dialect.Map
	workdir string            // absolute, in the sandbox
	paths   map[string]string // see surroundings.TaskSandbox.Paths
	blocked []string
}

func translate(t *dialect.Translation) {
	tr := &translator{
		Translation: t, root: decode.Follow(t.Source.Root), dir: filepath.Dir(t.Source.Path),
		paths: map[string]string{},
	}
	tr.suite, tr.task, tr.inputs, tr.config = dialect.NewMap(tr.root), dialect.NewMap(tr.root), dialect.NewMap(tr.root), dialect.NewMap(tr.root)
	id := filepath.Base(tr.dir)
	at := decode.Follow(decode.Lookup(tr.get("task"), "name"))
	if name := dialect.TextOf(at); name != "" {
		id = path.Base(name)
	}
	tr.suite.Set("name", dialect.Scalar(at, id))
	if n := decode.Lookup(tr.get("task"), "description"); dialect.TextOf(n) != "" {
		tr.suite.Set("description", dialect.Scalar(n, dialect.TextOf(n)))
	}
	tr.suite.Set("literal", dialect.Scalar(nil, true))
	t.Suite = tr.suite.Node
	if t.HeadOnly {
		return
	}
	tr.task.Set("id", dialect.Scalar(at, id))
	tr.addTags()
	tr.translateTask()
}

// get returns the value at a path of keys, or nil.
func (tr *translator) get(keys ...string) *yaml.Node {
	n := tr.root
	for _, key := range keys {
		n = decode.Follow(decode.Lookup(n, key))
	}
	return n
}

func (tr *translator) warn(at *yaml.Node, format string, args ...any) {
	tr.Reportf(tr.Source, at, decode.Warning, decode.CodeNoEffect, format, args...)
}

func (tr *translator) fault(at *yaml.Node, format string, args ...any) {
	tr.Reportf(tr.Source, at, decode.Error, decode.CodeInvalidValue, format, args...)
}

// block reports why the task cannot be done here. Its trials end in an error.
func (tr *translator) block(at *yaml.Node, format string, args ...any) {
	reason := fmt.Sprintf(format, args...)
	tr.blocked = append(tr.blocked, reason)
	tr.Reportf(tr.Source, at, decode.Warning, decode.CodeUnavailable, "the task cannot be done here, so its trials end in an error: %s", reason)
}

func (tr *translator) addTags() {
	tags := dialect.List(tr.root)
	for _, list := range []*yaml.Node{tr.get("task", "keywords"), tr.get("metadata", "tags")} {
		for _, item := range dialect.Items(list) {
			tag := dialect.TextOf(item)
			if tag != "" && !slices.ContainsFunc(tags.Content, func(n *yaml.Node) bool { return n.Value == tag }) {
				tags.Content = append(tags.Content, dialect.Scalar(item, tag))
			}
		}
	}
	if len(tags.Content) > 0 {
		tr.task.Set("tags", tags)
	}
}

func (tr *translator) translateTask() {
	if n := tr.get("steps"); n != nil {
		tr.block(n, "tasks with steps are not supported")
	}
	prompt := tr.readText("instruction.md")
	if prompt == "" && tr.get("steps") == nil {
		tr.block(nil, "instruction.md is missing or empty")
	}
	tr.inputs.Set("prompt", dialect.Scalar(nil, prompt))
	tr.checkEnvironment()
	tr.readImage()
	tr.addOtherPaths(prompt)
	tr.addEnvironment()
	tr.addServers()
	tr.addTimeout()
	tr.task.Set("inputs", tr.inputs.Node)
	tr.addSandbox()
	tr.addReward()
	if tr.exists("solution/solve.sh") {
		tr.task.Set("solution", dialect.Scalar(nil, "solution/solve.sh"))
	}
	if len(tr.blocked) > 0 {
		tr.task.Set("blocked", dialect.Scalar(nil, strings.Join(tr.blocked, "; ")))
	}
	if tr.config.Len() > 0 {
		tr.suite.Set("config", tr.config.Node)
	}
	tr.suite.Set("tasks", dialect.List(tr.root, tr.task.Node))
}

func (tr *translator) path(name string) string {
	return filepath.Join(tr.dir, filepath.FromSlash(name))
}

func (tr *translator) exists(name string) bool { return tr.Files.Exists(tr.path(name)) }

// readText returns the text of a file of the task; "" if it does not exist.
func (tr *translator) readText(name string) string {
	data, err := tr.Files.Read(tr.path(name), decode.MaxTextBytes)
	if err != nil {
		return ""
	}
	return string(data)
}

// checkEnvironment reports parts of the environment that a sandbox without an image cannot have.
func (tr *translator) checkEnvironment() {
	if n := tr.get("environment", "os"); dialect.TextOf(n) == "windows" {
		tr.block(n, "the task needs Windows")
	}
	if n := tr.get("verifier", "environment"); n != nil {
		if dialect.TextOf(tr.get("verifier", "environment_mode")) == "shared" {
			tr.fault(n, "verifier.environment_mode is shared, so there must be no verifier.environment")
		}
		tr.block(n, "the verifier needs an environment of its own")
	} else if n := tr.get("verifier", "environment_mode"); dialect.TextOf(n) == "separate" {
		tr.block(n, "the verifier needs an environment of its own")
	}
	if n := tr.get("environment", "gpus"); n != nil && n.Value != "0" {
		tr.block(n, "the task needs %s GPUs", text.Clip(n.Value, 20))
	}
	if n := tr.get("environment", "skills_dir"); n != nil {
		tr.block(n, "environment.skills_dir is a directory of the image")
	}
	if n := tr.get("environment", "healthcheck"); n != nil {
		tr.warn(n, "environment.healthcheck has no effect, because waza starts no services of an image")
	}
	for _, key := range []string{"cpus", "memory_mb", "storage_mb", "memory", "storage"} {
		if n := tr.get("environment", key); n != nil {
			tr.warn(n, "environment.%s has no effect; limit the programs of trials with config.sandbox.limits of .waza.yaml", key)
		}
	}
	for _, keys := range [][2]string{{"memory", "memory_mb"}, {"storage", "storage_mb"}} {
		before, now := tr.get("environment", keys[0]), tr.get("environment", keys[1])
		if size, ok := megabytes(dialect.TextOf(before)); before != nil && now != nil && (!ok || strconv.Itoa(size) != now.Value) {
			tr.fault(before, "environment.%s and environment.%s differ; remove the first, which is deprecated", keys[0], keys[1])
		}
	}
	for _, keys := range [][]string{{"agent", "user"}, {"verifier", "user"}} {
		if n := tr.get(keys...); n != nil && n.Value != "root" && n.Value != "0" {
			tr.warn(n, "%s has no effect: all programs run as you", strings.Join(keys, "."))
		}
	}
}

// megabytes returns a size of the deprecated form, such as 2G.
func megabytes(size string) (int, bool) {
	size = strings.ToUpper(strings.TrimSpace(size))
	unit := strings.TrimLeft(size, "0123456789")
	number, err := strconv.Atoi(strings.TrimSuffix(size, unit))
	if err != nil {
		return 0, false
	}
	switch unit {
	case "G":
		return number * 1024, true
	case "M":
		return number, true
	}
	return 0, false
}

// addEnvironment sets the environment of the agent.
func (tr *translator) addEnvironment() {
	env := dialect.NewMap(tr.get("environment", "env"))
	for _, p := range dialect.Pairs(tr.get("environment", "env")) {
		value, err := surroundings.FromMachine(dialect.TextOf(p.Value), os.LookupEnv)
		if err != nil {
			tr.block(p.Value, "environment.env.%s: %v", text.Clip(p.Key.Value, 60), err)
			continue
		}
		env.Set(p.Key.Value, dialect.Scalar(p.Value, value))
	}
	if env.Len() > 0 {
		tr.inputs.Set("environment", env.Node)
	}
}

// addServers sets the MCP servers.
func (tr *translator) addServers() {
	servers := dialect.NewMap(tr.get("environment", "mcp_servers"))
	for _, item := range dialect.Items(tr.get("environment", "mcp_servers")) {
		name := dialect.TextOf(decode.Lookup(item, "name"))
		if name == "" {
			tr.fault(item, "an MCP server has no name")
			continue
		}
		server := dialect.NewMap(item)
		for _, key := range []string{"command", "args", "url"} {
			server.Set(key, decode.Lookup(item, key))
		}
		switch kind := dialect.TextOf(decode.Lookup(item, "transport")); kind {
		case "sse":
			server.Set("type", dialect.Scalar(item, "sse"))
		case "http", "streamable-http":
			server.Set("type", dialect.Scalar(item, "http"))
		}
		servers.Set(name, server.Node)
	}
	if servers.Len() > 0 {
		tr.config.Set("mcp_servers", servers.Node)
	}
}

// seconds returns a number of seconds, or a default.
func (tr *translator) seconds(standard float64, keys ...string) float64 {
	n := tr.get(keys...)
	if n == nil {
		return standard
	}
	var f float64
	if n.Decode(&f) != nil || !(f > 0) || f > 1e7 {
		tr.fault(n, "%s must be a number of seconds, got %s", strings.Join(keys, "."), decode.Describe(n))
		return standard
	}
	return f
}

// addTimeout sets the limit of agent and verifier together.
func (tr *translator) addTimeout() {
	limit := tr.seconds(noAgentTimeout, "agent", "timeout_sec") + tr.seconds(verifierTimeout, "verifier", "timeout_sec")
	tr.task.Set("timeout_seconds", dialect.Scalar(tr.get("agent", "timeout_sec"), limit))
}

// networkOf returns the network of a phase as a suite writes it; nil if it is open.
func (tr *translator) networkOf(phase string) *yaml.Node {
	mode, hosts := tr.get(phase, "network_mode"), tr.get(phase, "allowed_hosts")
	if old := tr.get(phase, "allow_internet"); mode == nil && hosts == nil && old != nil && old.Value == "false" {
		return dialect.Scalar(old, "none")
	}
	switch dialect.TextOf(mode) {
	case "no-network", "public", "":
		if hosts != nil && len(dialect.Items(hosts)) > 0 {
			tr.fault(hosts, "%s.allowed_hosts needs network_mode = \"allowlist\"", phase)
		}
		if dialect.TextOf(mode) == "no-network" {
			return dialect.Scalar(mode, "none")
		}
		return nil
	case "allowlist":
		if len(dialect.Items(hosts)) == 0 {
			tr.fault(mode, "network_mode = \"allowlist\" needs allowed_hosts")
			return nil
		}
		return hosts
	}
	tr.fault(mode, "%s.network_mode must be public, no-network or allowlist, got %q", phase, text.Clip(dialect.TextOf(mode), 40))
	return nil
}

// addSandbox sets the network of the agent and the paths of the workspace.
func (tr *translator) addSandbox() {
	box := dialect.NewMap(nil)
	phase := "environment"
	if tr.get("agent", "network_mode") != nil {
		phase = "agent"
	}
	box.Set("network", tr.networkOf(phase))
	paths := dialect.NewMap(nil)
	for _, target := range (surroundings.TaskSandbox{Paths: tr.paths}).Targets() {
		paths.Set(target, dialect.Scalar(nil, tr.paths[target]))
	}
	box.Set("paths", paths.Node)
	tr.task.Set("sandbox", box.Node)
}

// addReward adds the grader.
func (tr *translator) addReward() {
	if !tr.exists("tests/test.sh") {
		if tr.get("steps") == nil {
			tr.block(nil, "tests/test.sh is missing")
		}
		return
	}
	options := dialect.NewMap(tr.get("verifier"))
	options.Set("tests", dialect.Texts(nil, "tests"))
	options.Set("workdir", dialect.Scalar(nil, tr.workdir))
	options.Set("timeout", dialect.Scalar(tr.get("verifier", "timeout_sec"), tr.seconds(verifierTimeout, "verifier", "timeout_sec")))
	env := dialect.NewMap(tr.get("verifier", "env"))
	for _, p := range dialect.Pairs(tr.get("verifier", "env")) {
		env.Set(p.Key.Value, dialect.Scalar(p.Value, dialect.TextOf(p.Value)))
	}
	if env.Len() > 0 {
		options.Set("env", env.Node)
	}
	options.Set("network", tr.networkOf("environment"))
	g := dialect.NewMap(tr.get("verifier"))
	g.Set("name", dialect.Scalar(nil, "reward"))
	g.Set("type", dialect.Scalar(nil, "reward"))
	g.Set("config", options.Node)
	tr.task.Set("graders", dialect.List(nil, g.Node))
}
