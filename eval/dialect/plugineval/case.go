package plugineval

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/skill"
	"waza/eval/text"
)

// A markdown is a Markdown file with frontmatter.
type markdown struct {
	src   *decode.Source // its root is the frontmatter, with the places of the file; nil without one
	body  string
	fault string // of the frontmatter
}

// readMarkdown reads a Markdown file; nil if it cannot be read, which it reports.
func (tr *translator) readMarkdown(file string) *markdown {
	data, err := tr.Files.Read(file, decode.MaxTextBytes)
	if err != nil {
		tr.Unreadable(tr.Files.Shown(file), tr.Source, nil, err)
		return nil
	}
	parsed := skill.Parse(file, data)
	m := &markdown{body: parsed.Body}
	if strings.TrimSpace(parsed.HeadText) == "" {
		m.src = decode.NewSource(file, tr.Files.Shown(file), parsed.Text)
		return m
	}
	m.src, m.fault = tr.parse(file, []byte("\n"+parsed.HeadText)) // the empty line has the place of the dashes
	return m
}

// parse parses a file of a case. A fault of it is one of the case, and not of the plugin.
func (tr *translator) parse(file string, data []byte) (src *decode.Source, fault string) {
	var found decode.Findings
	src = decode.Parse(file, tr.Files.Shown(file), data, &found)
	if faults := found.Diagnostics().Errors(); len(faults) > 0 {
		src.Root, fault = nil, fmt.Sprintf("%s, line %d: %s", src.Name, faults[0].Line, faults[0].Message)
	}
	return src, fault
}

// A testCase is a case on its way to a task.
type testCase struct {
	*translator
	dir     string
	prompt  *markdown      // prompt.md; nil without one
	yaml    *decode.Source // case.yaml; nil without one
	task    dialect.Map
	inputs  dialect.Map
	graders []caseGrader
	plugins []*plugin // that the agent gets
	mocks   []mock
	runs    int
	model   string // empty if the case names none
	blocked []string
}

func (tr *translator) addCases(evals string) {
	found := casesIn(evals, tr.Files.List)
	tr.reportSkipped(found)
	for _, dir := range found.cases {
		c := &testCase{translator: tr, dir: dir, task: dialect.NewMap(nil), inputs: dialect.NewMap(nil)}
		c.read()
		folder, err := filepath.Rel(evals, dir)
		if err != nil {
			folder = filepath.Base(dir)
		}
		c.translate(evals, filepath.ToSlash(folder))
		tr.cases = append(tr.cases, c)
		tr.Tasks = append(tr.Tasks, dialect.Task{Source: c.source(), Node: c.task.Node})
	}
}

// reportSkipped reports folders that can contain cases and are not searched.
func (tr *translator) reportSkipped(s *caseSearch) {
	for _, link := range s.links {
		if info, err := tr.Files.Stat(link); err != nil || info.IsDir() {
			tr.warn(tr.Source, nil, "cases in the linked folder %s are not run; replace the link with the folder", tr.Files.Shown(link))
		}
	}
	for _, dir := range s.reserved {
		inside := &caseSearch{list: tr.Files.List}
		if inside.search(dir, 1); len(inside.cases) > 0 {
			tr.warn(tr.Source, nil, "cases in %s are not run, because of the folder's name; rename it to run them", tr.Files.Shown(dir))
		}
	}
	if s.cut {
		tr.Reportf(tr.Source, nil, decode.Error, decode.CodeTooLarge, "too many cases: a plugin can have %d, in %d folders that are at most %d deep",
			maxCases, maxCaseDirs, maxCaseDepth)
	}
}

func (c *testCase) read() {
	if file := filepath.Join(c.dir, promptFile); c.Files.Exists(file) {
		if c.prompt = c.readMarkdown(file); c.prompt != nil && c.prompt.fault != "" {
			c.block(c.prompt.src, nil, "%s", c.prompt.fault)
		}
	}
	file := filepath.Join(c.dir, caseFile)
	if !c.Files.Exists(file) {
		return
	}
	if data, err := c.Files.Read(file, decode.MaxTextBytes); err != nil {
		c.Unreadable(c.Files.Shown(file), c.Source, nil, err)
	} else {
		var fault string
		if c.yaml, fault = c.parse(file, data); fault != "" {
			c.block(c.yaml, nil, "%s", fault)
		}
	}
}

// source returns the file that declares the task.
func (c *testCase) source() *decode.Source {
	switch {
	case c.prompt != nil:
		return c.prompt.src
	case c.yaml != nil:
		return c.yaml
	}
	return decode.NewSource(filepath.Join(c.dir, promptFile), c.Files.Shown(filepath.Join(c.dir, promptFile)), "")
}

// A value is the value of a key of a case.
type value struct {
	*yaml.Node                // nil if the key is absent or null
	src        *decode.Source // of the node
}

// get returns the value of a key. prompt.md has precedence. Keys of the execution of an agent are in a
// map of case.yaml.
func (c *testCase) get(key string) value {
	places := []value{}
	if c.prompt != nil {
		places = append(places, value{decode.Follow(c.prompt.src.Root), c.prompt.src})
	}
	if c.yaml != nil {
		root := decode.Follow(c.yaml.Root)
		if slices.Contains(executionKeys, key) {
			root = decode.Follow(decode.Lookup(root, "execution"))
		}
		places = append(places, value{root, c.yaml})
	}
	for _, p := range places {
		if n := decode.Follow(decode.Lookup(p.Node, key)); n != nil && !decode.IsNull(n) {
			return value{n, p.src}
		}
	}
	return value{src: c.source()}
}

// at returns the node of a value if it is in the file that declares the task, whose places tasks have.
func (c *testCase) at(v value) *yaml.Node {
	if v.src == c.source() {
		return v.Node
	}
	return nil
}

// block reports why the case cannot be done. Its trials end in an error, as a case that does not load
// counts as failed.
func (c *testCase) block(src *decode.Source, at *yaml.Node, format string, args ...any) {
	reason := fmt.Sprintf(format, args...)
	c.blocked = append(c.blocked, reason)
	c.Reportf(src, at, decode.Warning, decode.CodeUnavailable, "%s; trials of this case end in an error", reason)
}

// Keys of a case.
var (
	commonKeys    = []string{"schema_version", "name", "description", "expected_outcome", "tags", "plugins", "runs"}
	executionKeys = []string{"model", "max_turns", "timeout_seconds", "allowed_tools", "append_system_prompt", "env"}
	contextKeys   = []string{"scaffold_script", "history_file", "add_dirs"}
)

func (c *testCase) translate(evals, folder string) {
	c.checkKeys()
	name := c.get("name")
	c.task.Set("id", dialect.Scalar(c.at(name), c.unique(dialect.TextOf(name.Node), folder)))
	c.addTags()
	c.addPrompt()
	c.runs = c.number("runs", defaultRuns, mostRuns)
	c.model = dialect.TextOf(c.get("model").Node)
	c.addPlugins()
	c.addExecution()
	c.addContext()
	c.addMocks(evals)
	c.addGraders()
	c.addLimits()
	c.task.Set("inputs", c.inputs.Node)
	if len(c.blocked) > 0 {
		c.task.Set("blocked", dialect.Scalar(nil, strings.Join(c.blocked, "; ")))
	}
}

// checkKeys reports unknown keys, which are errors of the case.
func (c *testCase) checkKeys() {
	if c.prompt != nil {
		c.known(c.prompt.src, c.prompt.src.Root, "", slices.Concat(commonKeys, executionKeys))
	}
	if c.yaml == nil {
		return
	}
	root := decode.Follow(c.yaml.Root)
	if root == nil {
		return
	}
	c.known(c.yaml, root, "", slices.Concat(commonKeys, []string{"context", "execution", "graders"}))
	c.known(c.yaml, decode.Lookup(root, "execution"), "execution.", append([]string{"prompt"}, executionKeys...))
	c.known(c.yaml, decode.Lookup(root, "context"), "context.", contextKeys)
	for _, key := range []string{"schema_version", "name"} {
		if dialect.TextOf(decode.Lookup(root, key)) == "" {
			c.block(c.yaml, root, "case.yaml has no %s", key)
		}
	}
}

// compoundKeys are the keys of a case whose values are lists or maps.
var compoundKeys = []string{"tags", "plugins", "allowed_tools", "env", "context", "execution", "graders", "history_file", "add_dirs"}

// known reports keys of a map other than these, and texts and maps that are something else.
func (c *testCase) known(src *decode.Source, n *yaml.Node, prefix string, keys []string) {
	if n = decode.Follow(n); n != nil && !decode.IsNull(n) && n.Kind != yaml.MappingNode {
		c.block(src, n, "%s must be a map, got %s", cmp.Or(strings.TrimSuffix(prefix, "."), "the case"), decode.Describe(n))
	}
	for _, p := range dialect.Pairs(n) {
		switch key := p.Key.Value; {
		case !slices.Contains(keys, key):
			c.block(src, p.Key, "unknown key %s", prefix+text.Clip(key, 60))
		case p.Value != nil && p.Value.Kind != yaml.ScalarNode && !slices.Contains(compoundKeys, key):
			c.block(src, p.Value, "%s must be a single value, got %s", prefix+key, decode.Describe(p.Value))
		}
	}
}

func (c *testCase) addTags() {
	v := c.get("tags")
	tags := dialect.List(c.at(v))
	for _, n := range textsOf(v.Node) {
		if !slices.ContainsFunc(tags.Content, func(t *yaml.Node) bool { return t.Value == n.Value }) {
			tags.Content = append(tags.Content, dialect.Scalar(c.at(v), n.Value))
		}
	}
	if len(tags.Content) > 0 {
		c.task.Set("tags", tags)
	}
}

// addPrompt sets the prompt: the body of prompt.md, or the key of case.yaml.
func (c *testCase) addPrompt() {
	prompt := ""
	if c.prompt != nil {
		prompt = strings.Trim(c.prompt.body, "\n")
	}
	if strings.TrimSpace(prompt) == "" && c.yaml != nil {
		prompt = dialect.TextOf(decode.Lookup(decode.Follow(decode.Lookup(decode.Follow(c.yaml.Root), "execution")), "prompt"))
	}
	if strings.TrimSpace(prompt) == "" {
		c.block(c.source(), nil, "the case has no prompt")
	}
	if word, _, _ := strings.Cut(strings.TrimPrefix(prompt, "/"), " "); strings.HasPrefix(prompt, "/") {
		if _, name, ok := strings.Cut(word, ":"); ok {
			word = name
		}
		if filepath.IsLocal(word) && c.Files.Exists(filepath.Join(c.translator.dir, "commands", word+".md")) {
			c.block(c.source(), nil, "the prompt is the command %s of the plugin, and agents get no commands", text.Clip(word, 60))
		}
	}
	c.inputs.Set("prompt", dialect.Scalar(nil, prompt))
}

// number returns the value of a key, a whole number from 1 to most; standard if it is absent or
// something else, which it reports.
func (c *testCase) number(key string, standard, most int) int {
	v := c.get(key)
	if v.Node == nil {
		return standard
	}
	var n int
	if v.Decode(&n) != nil || n < 1 || n > most {
		c.block(v.src, v.Node, "%s must be a whole number from 1 to %d, got %s", key, most, decode.Describe(v.Node))
		return standard
	}
	return n
}

// addPlugins replaces the plugin around the case by those that the case names.
func (c *testCase) addPlugins() {
	c.plugins = []*plugin{c.home}
	v := c.get("plugins")
	names, ok := dialect.ListOf(v.Node)
	if !ok {
		c.block(v.src, v.Node, "plugins must be a list, got %s", decode.Describe(v.Node))
		return
	}
	var plugins []*plugin
	for _, n := range names {
		name := dialect.TextOf(n)
		dir := filepath.Join(c.dir, filepath.FromSlash(name))
		if filepath.IsAbs(filepath.FromSlash(name)) {
			dir = filepath.Clean(filepath.FromSlash(name))
		}
		p := c.pluginAt(dir)
		if name == "" || p == nil {
			c.block(v.src, n, "%s is no plugin: it has no readable %s", text.Clip(c.Files.Shown(dir), 200), manifestName)
			continue
		}
		plugins = append(plugins, p)
	}
	if len(plugins) == 0 || len(plugins) == 1 && plugins[0] == c.home {
		return
	}
	c.plugins = plugins
	skills, servers := dialect.List(c.at(v)), dialect.NewMap(c.at(v))
	for _, p := range plugins {
		for _, dir := range p.skills.Content {
			skills.Content = append(skills.Content, dialect.Scalar(c.at(v), dir.Value))
		}
		for _, s := range dialect.Pairs(p.servers.Node) {
			servers.Set(s.Key.Value, s.Value)
		}
	}
	c.task.Set("skill_directories", skills)
	if servers.Len() > 0 {
		c.task.Set("mcp_servers", servers.Node)
	}
	if c.home.servers.Len() > 0 && !slices.Contains(plugins, c.home) {
		c.warn(v.src, v.Node, "the agent also gets the MCP servers of the plugin %s", text.Clip(c.home.name, 60))
	}
}

var envName = text.Pattern(`^EVAL_[A-Z0-9_]*$`)

// addExecution takes over the other settings of the agent.
func (c *testCase) addExecution() {
	if v := c.get("allowed_tools"); len(dialect.Items(v.Node)) > 0 && !c.tools {
		c.tools = true
		c.warn(v.src, v.Node, "allowed_tools has no effect: agents can use all their tools, and the sandbox limits what these reach")
	}
	if v := c.get("append_system_prompt"); dialect.TextOf(v.Node) != "" {
		c.inputs.Set("system_prompt", dialect.Scalar(c.at(v), dialect.TextOf(v.Node)))
	}
	v := c.get("env")
	if v.Node != nil && v.Kind != yaml.MappingNode {
		c.block(v.src, v.Node, "env must be a map, got %s", decode.Describe(v.Node))
	}
	env := dialect.NewMap(c.at(v))
	for _, p := range dialect.Pairs(v.Node) {
		if !envName().MatchString(p.Key.Value) {
			c.block(v.src, p.Key, "the name of the variable %s must start with EVAL_ and consist of A-Z, 0-9 and _", text.Clip(p.Key.Value, 60))
			continue
		}
		env.Set(p.Key.Value, dialect.Scalar(c.at(v), dialect.TextOf(p.Value)))
	}
	if env.Len() > 0 {
		c.inputs.Set("environment", env.Node)
	}
}

// addContext prepares the workspace.
func (c *testCase) addContext() {
	if c.yaml == nil {
		return
	}
	context := decode.Follow(decode.Lookup(decode.Follow(c.yaml.Root), "context"))
	if n := decode.Follow(decode.Lookup(context, "history_file")); n != nil && !decode.IsNull(n) {
		c.block(c.yaml, n, "context.history_file is not supported: waza cannot continue a session of Claude Code")
	}
	if n := decode.Follow(decode.Lookup(context, "add_dirs")); n != nil && !decode.IsNull(n) {
		c.addDirs(n)
	}
	if n := decode.Follow(decode.Lookup(context, "scaffold_script")); dialect.TextOf(n) != "" {
		c.addScaffold(n)
	}
}

// addDirs copies folders of the case into the workspace, under the same paths.
func (c *testCase) addDirs(list *yaml.Node) {
	names, ok := dialect.ListOf(list)
	if !ok {
		c.block(c.yaml, list, "context.add_dirs must be a list, got %s", decode.Describe(list))
		return
	}
	files := dialect.List(nil)
	for _, n := range names {
		name := filepath.Clean(filepath.FromSlash(dialect.TextOf(n)))
		dir := filepath.Join(c.dir, name)
		if info, err := c.Files.Stat(dir); !filepath.IsLocal(name) || name == "." || err != nil || !info.IsDir() {
			c.block(c.yaml, n, "context.add_dirs must name folders in the folder of the case, got %s", decode.Describe(n))
			continue
		}
		file := dialect.NewMap(nil)
		file.Set("path", dialect.Scalar(nil, filepath.ToSlash(name)))
		file.Set("source", dialect.Scalar(nil, c.Files.Relative(dir)))
		files.Content = append(files.Content, file.Node)
	}
	if len(files.Content) == 0 {
		return
	}
	c.inputs.Set("files", files)
	if !c.copies {
		c.copies = true
		c.warn(c.yaml, list, "the agent gets copies of the folders of add_dirs in its workspace, and can change them")
	}
}

// ownPlace finds uses of a script's own place, which the text of a script lacks.
var ownPlace = text.Pattern(`\$0|\$\{0|BASH_SOURCE|CLAUDE_PLUGIN_ROOT`)

// addScaffold makes the text of the script a command that prepares the workspace.
func (c *testCase) addScaffold(n *yaml.Node) {
	file := filepath.Join(c.dir, filepath.FromSlash(n.Value))
	data, err := c.Files.Read(file, decode.MaxTextBytes)
	switch {
	case err != nil:
		c.block(c.yaml, n, "the scaffold script %s cannot be read", c.Files.Shown(file))
		return
	case ownPlace().Match(data):
		c.block(c.yaml, n, "the scaffold script uses its own place, and waza runs its text")
		return
	}
	script := strings.ReplaceAll(string(data), "\r\n", "\n")
	shell := "sh"
	if first, _, _ := strings.Cut(script, "\n"); strings.HasPrefix(first, "#!") {
		if shell = filepath.Base(strings.Fields(strings.TrimPrefix(first, "#!") + " sh")[0]); shell == "env" {
			shell = strings.Fields(first + " sh")[1]
		}
	}
	if !slices.Contains([]string{"sh", "bash", "dash", "zsh"}, shell) {
		c.block(c.yaml, n, "the scaffold script needs %s, and waza runs scripts of shells", text.Clip(shell, 40))
		return
	}
	quoted := "'" + strings.ReplaceAll(script, "'", `'\''`) + "'"
	c.inputs.Set("setup", dialect.Texts(nil, shell+" -c "+quoted))
}

// addLimits sets the limits of the agent, which have no part in the score. Judges have a time of their own.
func (c *testCase) addLimits() {
	const mostTurns, mostSeconds = 200, 3600
	turns, seconds := c.number("max_turns", defaultMaxTurns, mostTurns), c.number("timeout_seconds", defaultTimeout, mostSeconds)
	limit := seconds
	if slices.ContainsFunc(c.graders, func(g caseGrader) bool { return g.judged }) {
		limit += judgeTimeout
	}
	v := c.get("timeout_seconds")
	c.task.Set("timeout_seconds", dialect.Scalar(c.at(v), limit))
	options := dialect.NewMap(nil)
	options.Set("max_iterations", dialect.Scalar(nil, turns))
	options.Set("max_duration_ms", dialect.Scalar(nil, seconds*1000))
	list := dialect.List(nil)
	for _, g := range c.graders {
		list.Content = append(list.Content, g.Node)
	}
	if len(list.Content) == 0 {
		return
	}
	c.task.Set("graders", list)
	limits := dialect.NewMap(nil)
	limits.Set("name", dialect.Scalar(nil, "limits"))
	limits.Set("type", dialect.Scalar(nil, "behavior"))
	limits.Set("config", options.Node)
	c.inputs.Set("checkpoints", dialect.List(nil, dialect.Checkpoint(nil, 1, limits.Node)))
}
