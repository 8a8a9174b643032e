package plugineval

import (
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/skill"
	"waza/eval/text"
)

// The defaults of `claude plugin eval`.
const (
	defaultRuns     = 3
	mostRuns        = 50
	defaultMaxTurns = 10
	defaultTimeout  = 300 // seconds
	votes           = 3   // of the judge of a grader
	judgeTimeout    = 300 // seconds that a trial gets for judges
)

// translator translates one plugin.
type translator struct {
	*dialect.Translation
	root    *yaml.Node
	dir     string // of the plugin
	suite   dialect.Map
	config  dialect.Map
	ids     map[string]bool
	home    *plugin            // whose cases these are
	plugins map[string]*plugin // that were read, by directory
	cases   []*testCase
	tools   bool // whether allowed_tools was reported
	copies  bool // whether add_dirs was reported
}

func translate(t *dialect.Translation) {
	tr := &translator{
		Translation: t, root: decode.Follow(t.Source.Root), dir: pluginDir(t.Source.Path), ids: map[string]bool{}, plugins: map[string]*plugin{},
	}
	tr.suite, tr.config = dialect.NewMap(tr.root), dialect.NewMap(tr.root)
	t.Suite = tr.suite.Node
	for _, key := range []string{"name", "description", "version"} {
		if n := decode.Follow(decode.Lookup(tr.root, key)); dialect.TextOf(n) != "" {
			tr.suite.Set(key, dialect.Scalar(n, n.Value))
		}
	}
	tr.suite.Set("literal", dialect.Scalar(nil, true))
	tr.suite.Set("baseline", dialect.Scalar(nil, true))
	if t.HeadOnly {
		return
	}
	tr.home = tr.describe(tr.dir, tr.Source)
	if len(tr.home.skills.Content) > 0 {
		tr.config.Set("skill_directories", tr.home.skills)
	}
	if tr.home.servers.Len() > 0 {
		tr.config.Set("mcp_servers", tr.home.servers.Node)
	}
	for _, evals := range evalDirs(tr.root) {
		tr.addCases(filepath.Join(tr.dir, filepath.FromSlash(evals.Value)))
	}
	tr.setRuns()
	tr.setModels()
	tr.suite.Set("config", tr.config.Node)
}

// setRuns sets the number of runs that the first case has, and that of each case with another.
func (tr *translator) setRuns() {
	runs := defaultRuns
	if len(tr.cases) > 0 {
		runs = tr.cases[0].runs
	}
	tr.config.Set("trials_per_task", dialect.Scalar(nil, runs))
	for _, c := range tr.cases {
		if c.runs != runs {
			c.task.Set("trials", dialect.Scalar(nil, c.runs))
		}
	}
}

// setModels sets the model of the suite if all cases name the same one, else that of each case that names
// one.
func (tr *translator) setModels() {
	if len(tr.cases) == 0 {
		return
	}
	model := tr.cases[0].model
	if !slices.ContainsFunc(tr.cases, func(c *testCase) bool { return c.model != model }) {
		if model != "" {
			tr.config.Set("model", dialect.Scalar(nil, model))
		}
		return
	}
	for _, c := range tr.cases {
		if c.model != "" {
			c.task.Set("model", dialect.Scalar(nil, c.model))
		}
	}
}

// A plugin is the part of a plugin that agents get.
type plugin struct {
	dir      string
	name     string
	skills   *yaml.Node  // list of directories
	servers  dialect.Map // settings of MCP servers, by name
	declared []string    // names of MCP servers, also of those that cannot start
}

// serverName returns Claude Code's name of an MCP server of the plugin.
func (p *plugin) serverName(server string) string { return "plugin_" + p.name + "_" + server }

// pluginAt returns the plugin in a directory; nil if the directory contains no readable one.
func (tr *translator) pluginAt(dir string) *plugin {
	if p := tr.plugins[dir]; p != nil {
		return p
	}
	for _, name := range []string{filepath.Join(manifestDir, manifestName), manifestName} {
		file := filepath.Join(dir, name)
		if !tr.Files.Exists(file) {
			continue
		}
		if data, err := tr.Files.Read(file, decode.MaxTextBytes); err == nil {
			if src, fault := tr.parse(file, data); fault == "" {
				return tr.describe(dir, src)
			}
		}
		return nil
	}
	if tr.Files.Exists(filepath.Join(dir, skill.FileName)) {
		return tr.describe(dir, decode.NewSource(dir, tr.Files.Shown(dir), ""))
	}
	return nil
}

// describe reads the skills and the MCP servers of the plugin with a manifest, and reports the parts that
// agents do not get.
func (tr *translator) describe(dir string, manifest *decode.Source) *plugin {
	root := decode.Follow(manifest.Root)
	p := &plugin{dir: dir, name: dialect.TextOf(decode.Lookup(root, "name")), servers: dialect.NewMap(root)}
	if p.name == "" {
		p.name = filepath.Base(dir)
	}
	tr.plugins[dir] = p
	tr.addSkills(p, root)
	tr.addServers(p, manifest, root)
	tr.warnParts(p, manifest, root)
	return p
}

// addSkills lists the skills of the plugin: those of skills/ and of the folders that the manifest names,
// or the plugin itself if it is a skill.
func (tr *translator) addSkills(p *plugin, root *yaml.Node) {
	p.skills = dialect.List(root)
	add := func(at *yaml.Node, name string) {
		if dir := filepath.Join(p.dir, filepath.FromSlash(name)); p.dir == tr.dir {
			p.skills.Content = append(p.skills.Content, dialect.Scalar(at, tr.Files.Relative(dir)))
		} else {
			p.skills.Content = append(p.skills.Content, dialect.Scalar(nil, tr.Files.Relative(dir)))
		}
	}
	if tr.Files.Exists(filepath.Join(p.dir, "skills")) {
		add(nil, "skills")
	} else if tr.Files.Exists(filepath.Join(p.dir, skill.FileName)) {
		add(nil, ".")
	}
	for _, n := range textsOf(decode.Lookup(root, "skills")) {
		if name := strings.TrimSuffix(strings.TrimPrefix(n.Value, "./"), "/"); name != "skills" && filepath.IsLocal(filepath.FromSlash(name)) {
			add(n, name)
		}
	}
}

// textsOf returns a text, or the texts of a list.
func textsOf(n *yaml.Node) []*yaml.Node {
	if n = decode.Follow(n); decode.IsText(n) {
		return []*yaml.Node{n}
	}
	var texts []*yaml.Node
	for _, item := range dialect.Items(n) {
		if decode.IsText(item) {
			texts = append(texts, item)
		}
	}
	return texts
}

// addServers adds the MCP servers of the plugin: those of .mcp.json, and of the manifest or the file that
// it names.
func (tr *translator) addServers(p *plugin, manifest *decode.Source, root *yaml.Node) {
	tr.readServers(p, manifest, ".mcp.json")
	given := decode.Follow(decode.Lookup(root, "mcpServers"))
	for _, n := range textsOf(given) {
		tr.readServers(p, manifest, n.Value)
	}
	tr.addServersOf(p, manifest, given)
	if p.servers.Len() > 0 {
		tr.warn(manifest, given, "trials without the plugin have its MCP servers, too")
	}
}

func (tr *translator) readServers(p *plugin, manifest *decode.Source, name string) {
	file := filepath.Join(p.dir, filepath.FromSlash(name))
	if !filepath.IsLocal(filepath.FromSlash(name)) || !tr.Files.Exists(file) {
		return
	}
	data, err := tr.Files.Read(file, decode.MaxTextBytes)
	if err != nil {
		tr.Unreadable(tr.Files.Shown(file), manifest, nil, err)
		return
	}
	src := tr.Files.Parse(file, data)
	root := decode.Follow(src.Root)
	if inner := decode.Follow(decode.Lookup(root, "mcpServers")); inner != nil {
		root = inner
	}
	tr.addServersOf(p, src, root)
}

// serverKeys are the keys of a server that waza understands.
var serverKeys = []string{"type", "command", "args", "env", "url", "headers"}

func (tr *translator) addServersOf(p *plugin, src *decode.Source, servers *yaml.Node) {
	for _, pair := range dialect.Pairs(servers) {
		server, name := dialect.NewMap(nil), text.Clip(pair.Key.Value, 60)
		p.declared = append(p.declared, pair.Key.Value)
		for _, setting := range dialect.Pairs(pair.Value) {
			if key := setting.Key.Value; !slices.Contains(serverKeys, key) {
				tr.warn(src, setting.Key, "the MCP server %s: %s has no effect", name, text.Clip(key, 60))
			}
		}
		for _, key := range serverKeys {
			server.Set(key, p.expanded(decode.Lookup(pair.Value, key)))
		}
		if server.Len() == 0 {
			tr.warn(src, pair.Key, "the MCP server %s is not started: it has no command or url", name)
			continue
		}
		p.servers.Set(pair.Key.Value, server.Node)
	}
}

// expanded returns the value of a key of a server, with the directory of the plugin in its texts.
func (p *plugin) expanded(n *yaml.Node) *yaml.Node {
	n = decode.Follow(n)
	expand := func(v string) *yaml.Node {
		return dialect.Scalar(nil, strings.ReplaceAll(v, "${CLAUDE_PLUGIN_ROOT}", filepath.ToSlash(p.dir)))
	}
	switch {
	case n == nil:
		return nil
	case n.Kind == yaml.SequenceNode:
		list := dialect.List(nil)
		for _, item := range dialect.Items(n) {
			list.Content = append(list.Content, expand(dialect.TextOf(item)))
		}
		return list
	case n.Kind == yaml.MappingNode:
		m := dialect.NewMap(nil)
		for _, pair := range dialect.Pairs(n) {
			m.Set(pair.Key.Value, expand(dialect.TextOf(pair.Value)))
		}
		return m.Node
	}
	return expand(dialect.TextOf(n))
}

// warnParts reports parts of the plugin that agents do not get.
func (tr *translator) warnParts(p *plugin, manifest *decode.Source, root *yaml.Node) {
	var parts []string
	for _, part := range []string{"commands", "agents", "hooks"} {
		if decode.Lookup(root, part) != nil || tr.Files.Exists(filepath.Join(p.dir, part)) {
			parts = append(parts, part)
		}
	}
	if len(parts) > 0 {
		tr.warn(manifest, nil, "agents get the skills of the plugin, and not its %s", strings.Join(parts, " and "))
	}
}

func (tr *translator) warn(src *decode.Source, at *yaml.Node, format string, args ...any) {
	tr.Reportf(src, at, decode.Warning, decode.CodeNoEffect, format, args...)
}

// unique returns a task id that no other case has.
func (tr *translator) unique(name, folder string) string {
	for _, id := range []string{name, folder} {
		if id != "" && !tr.ids[id] {
			tr.ids[id] = true
			return id
		}
	}
	return text.Clip(folder, 200)
}
