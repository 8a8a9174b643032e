package harbor

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
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
	collectTimeout  = 60
	noAgentTimeout  = 24 * 60 * 60
)

// translator translates one task.toml.
type translator struct {
	*dialect.Translation
	root    *yaml.Node
	dir     string // of the task
	context string // the folder of the Dockerfile that is read, relative to dir
	quiet   bool   // whether readDockerfile reports nothing
	suite   dialect.Map
	task    dialect.Map
	inputs  dialect.Map
	config  dialect.Map
	workdir string            // absolute, in the sandbox
	paths   map[string]string // see surroundings.TaskSandbox.Paths
	ofImage bool              // workdir is a name for the work folder of the image, which only its engine knows
	box     dialect.Map       // the sandbox of the task
	reasons []string          // why the task needs a container; none if it does not
	copies  []copied          // of the Dockerfile
	missing []string          // files that the Dockerfile copies, and that do not exist
	unset   []string          // lines of the Dockerfile that set variables
	steps   []step            // one of a task without steps
	blocked []string
}

func translate(t *dialect.Translation) {
	tr := &translator{
		Translation: t, root: decode.Follow(t.Source.Root), dir: filepath.Dir(t.Source.Path),
		context: "environment", paths: map[string]string{}, box: dialect.NewMap(nil),
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
func (tr *translator) get(keys ...string) *yaml.Node { return lookup(tr.root, keys...) }

// lookup returns the value at a path of keys below a node, or nil.
func lookup(n *yaml.Node, keys ...string) *yaml.Node {
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
	tr.readSteps()
	tr.checkForeign()
	tr.readImage()
	tr.checkEnvironment()
	tr.checkPhases()
	tr.addOtherPaths()
	tr.addSkills()
	tr.addEnvironment()
	tr.addServers()
	tr.addTimeout()
	tr.addSteps()
	tr.task.Set("inputs", tr.inputs.Node)
	tr.addSandbox()
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
		case "sse", "": // Harbor's default
			if decode.Lookup(item, "url") != nil {
				server.Set("type", dialect.Scalar(item, "sse"))
			}
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
func (tr *translator) seconds(n *yaml.Node, standard float64, key string) float64 {
	if n == nil {
		return standard
	}
	var f float64
	if n.Decode(&f) != nil || !(f > 0) || f > 1e7 {
		tr.fault(n, "%s must be a number of seconds, got %s", key, decode.Describe(n))
		return standard
	}
	return f
}

// addTimeout sets the limit of all agents and verifiers together. A verifier runs after its agent, even if
// that was ended at its limit. The limits of agents of steps are those of their checkpoints.
func (tr *translator) addTimeout() {
	if at := tr.get("agent", "timeout_sec"); at != nil && !tr.isMulti() {
		tr.task.Set("agent_timeout_seconds", dialect.Scalar(at, tr.agentTimeout(&tr.steps[0])))
	}
	limit := 0.0
	for i := range tr.steps {
		limit += tr.agentTimeout(&tr.steps[i]) + tr.verifierTimeout(&tr.steps[i])
		for _, n := range dialect.Items(tr.keyOf(&tr.steps[i], "verifier", "collect")) {
			if dialect.TextOf(lookup(n, "command")) != "" {
				limit += tr.collectTimeout(n)
			}
		}
	}
	tr.task.Set("timeout_seconds", dialect.Scalar(tr.get("agent", "timeout_sec"), limit))
}

// networkOf returns the network of a phase, such as environment, as a suite writes it; nil if it is open.
func (tr *translator) networkOf(n *yaml.Node, phase string) *yaml.Node {
	mode, hosts := lookup(n, "network_mode"), lookup(n, "allowed_hosts")
	if old := lookup(n, "allow_internet"); mode == nil && hosts == nil && old != nil && old.Value == "false" {
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

// hasNetwork reports whether a phase has a network of its own.
func hasNetwork(n *yaml.Node) bool {
	return lookup(n, "network_mode") != nil || lookup(n, "allowed_hosts") != nil
}

// addSandbox sets the network of the agent and the paths of the workspace.
func (tr *translator) addSandbox() {
	box := tr.box
	phase := "environment"
	if hasNetwork(tr.get("agent")) {
		phase = "agent"
	}
	box.Set("network", tr.networkOf(tr.get(phase), phase))
	paths := dialect.NewMap(nil)
	for _, target := range (surroundings.TaskSandbox{Paths: tr.paths}).Targets() {
		paths.Set(target, dialect.Scalar(nil, tr.paths[target]))
	}
	if paths.Len() > 0 {
		box.Set("paths", paths.Node)
	}
	tr.addContainer()
	tr.task.Set("sandbox", box.Node)
}
