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
	defaultMaxTurns = 10
	defaultTimeout  = 300 // seconds
	votes           = 3   // of the judge of a grader
	judgeTimeout    = 300 // seconds that a trial gets for judges
)

// translator translates one plugin.
type translator struct {
	*dialect.Translation
	root   *yaml.Node
	dir    string // of the plugin
	suite  dialect.Map
	config dialect.Map
	ids    map[string]bool
	runs   int // the highest number that a case names
	// runsDiffer means that cases name different numbers.
	runsDiffer bool
	model      string // of the first case that names one
	tools      bool   // whether allowed_tools was reported
}

func translate(t *dialect.Translation) {
	tr := &translator{
		Translation: t, root: decode.Follow(t.Source.Root), dir: pluginDir(t.Source.Path), ids: map[string]bool{},
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
	tr.addSkills()
	tr.addServers()
	tr.warnParts()
	for _, evals := range evalDirs(tr.root) {
		tr.addCases(filepath.Join(tr.dir, filepath.FromSlash(evals.Value)))
	}
	if tr.runs == 0 {
		tr.runs = defaultRuns
	}
	if tr.runsDiffer {
		tr.warn(tr.Source, nil, "cases have different numbers of runs; each is done %d times", tr.runs)
	}
	tr.config.Set("trials_per_task", dialect.Scalar(nil, tr.runs))
	if tr.model != "" {
		tr.config.Set("model", dialect.Scalar(nil, tr.model))
	}
	tr.suite.Set("config", tr.config.Node)
}

// addSkills gives the agent the skills of the plugin: those of skills/ and of the folders that the
// manifest names, or the plugin itself if it is a skill.
func (tr *translator) addSkills() {
	dirs := dialect.List(tr.root)
	add := func(at *yaml.Node, name string) {
		dirs.Content = append(dirs.Content, dialect.Scalar(at, tr.Files.Relative(filepath.Join(tr.dir, filepath.FromSlash(name)))))
	}
	if tr.Files.Exists(filepath.Join(tr.dir, "skills")) {
		add(nil, "skills")
	} else if tr.Files.Exists(filepath.Join(tr.dir, skill.FileName)) {
		add(nil, ".")
	}
	for _, n := range textsOf(decode.Lookup(tr.root, "skills")) {
		if name := strings.TrimSuffix(strings.TrimPrefix(n.Value, "./"), "/"); name != "skills" && filepath.IsLocal(filepath.FromSlash(name)) {
			add(n, name)
		}
	}
	if len(dirs.Content) > 0 {
		tr.config.Set("skill_directories", dirs)
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
func (tr *translator) addServers() {
	servers := dialect.NewMap(tr.root)
	tr.readServers(servers, ".mcp.json")
	given := decode.Follow(decode.Lookup(tr.root, "mcpServers"))
	for _, n := range textsOf(given) {
		tr.readServers(servers, n.Value)
	}
	tr.addServersOf(servers, tr.Source, given)
	if servers.Len() > 0 {
		tr.config.Set("mcp_servers", servers.Node)
		tr.warn(tr.Source, given, "trials without the plugin have its MCP servers, too")
	}
}

func (tr *translator) readServers(to dialect.Map, name string) {
	file := filepath.Join(tr.dir, filepath.FromSlash(name))
	if !filepath.IsLocal(filepath.FromSlash(name)) || !tr.Files.Exists(file) {
		return
	}
	data, err := tr.Files.Read(file, decode.MaxTextBytes)
	if err != nil {
		tr.Unreadable(tr.Files.Shown(file), tr.Source, nil, err)
		return
	}
	src := tr.Files.Parse(file, data)
	root := decode.Follow(src.Root)
	if inner := decode.Follow(decode.Lookup(root, "mcpServers")); inner != nil {
		root = inner
	}
	tr.addServersOf(to, src, root)
}

// serverKeys are the keys of a server that waza understands.
var serverKeys = []string{"type", "command", "args", "env", "url", "headers"}

func (tr *translator) addServersOf(to dialect.Map, src *decode.Source, servers *yaml.Node) {
	for _, p := range dialect.Pairs(servers) {
		server, name := dialect.NewMap(nil), text.Clip(p.Key.Value, 60)
		for _, setting := range dialect.Pairs(p.Value) {
			if key := setting.Key.Value; !slices.Contains(serverKeys, key) {
				tr.warn(src, setting.Key, "the MCP server %s: %s has no effect", name, text.Clip(key, 60))
			}
		}
		for _, key := range serverKeys {
			server.Set(key, tr.expanded(decode.Lookup(p.Value, key)))
		}
		if server.Len() == 0 {
			tr.warn(src, p.Key, "the MCP server %s is not started: it has no command or url", name)
			continue
		}
		to.Set(p.Key.Value, server.Node)
	}
}

// expanded returns the value of a key of a server, with the directory of the plugin in its texts.
func (tr *translator) expanded(n *yaml.Node) *yaml.Node {
	n = decode.Follow(n)
	expand := func(v string) *yaml.Node {
		return dialect.Scalar(nil, strings.ReplaceAll(v, "${CLAUDE_PLUGIN_ROOT}", filepath.ToSlash(tr.dir)))
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
		for _, p := range dialect.Pairs(n) {
			m.Set(p.Key.Value, expand(dialect.TextOf(p.Value)))
		}
		return m.Node
	}
	return expand(dialect.TextOf(n))
}

// warnParts reports parts of the plugin that agents do not get.
func (tr *translator) warnParts() {
	var parts []string
	for _, part := range []string{"commands", "agents", "hooks"} {
		if decode.Lookup(tr.root, part) != nil || tr.Files.Exists(filepath.Join(tr.dir, part)) {
			parts = append(parts, part)
		}
	}
	if len(parts) > 0 {
		tr.warn(tr.Source, nil, "agents get the skills of the plugin, and not its %s", strings.Join(parts, " and "))
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
