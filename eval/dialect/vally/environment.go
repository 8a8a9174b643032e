package vally

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// An origin is one of the maps that make up the environment of a stimulus.
type origin struct {
	node *yaml.Node
	dir  string     // that its paths are relative to
	of   string     // the variant that it belongs to, before reasons; empty without one
	at   *yaml.Node // the place of its findings if it is in another file; else nil
}

// place returns where a finding about a node of the origin points.
func (o origin) place(n *yaml.Node) *yaml.Node {
	if o.at != nil {
		return o.at
	}
	return n
}

func (o origin) get(key string) *yaml.Node {
	n := decode.Follow(decode.Lookup(o.node, key))
	if decode.IsNull(n) {
		return nil
	}
	return n
}

// commandsKey is the key of an environment with commands of the shell.
const commandsKey = "commands"

var environmentKeys = []string{"skills", "files", commandsKey, "mcpServers", "git", "env", "description"}

// origins returns the environments of a stimulus: those of the suite, then its own, which has priority.
func (s *stimulus) origins() (all []origin) {
	variant := s.environment()
	for _, n := range []*yaml.Node{
		decode.Follow(decode.Lookup(s.root, "agent_environment")), decode.Follow(decode.Lookup(s.root, "environment")), variant, s.get("environment"),
	} {
		if n == nil || decode.IsNull(n) {
			continue
		}
		o := origin{node: n, dir: filepath.Dir(s.Source.Path)}
		if n == variant {
			o.dir, o.of = s.variant.dir, fmt.Sprintf("variant %q: ", text.Clip(s.variant.name, 60))
		}
		if n.Kind == yaml.ScalarNode {
			name, ok := s.expand(n, n.Value)
			if !ok {
				continue
			}
			o = origin{node: s.project.get("environments", name), dir: s.project.dir, at: n}
		}
		if o.node == nil || o.node.Kind != yaml.MappingNode {
			s.block(n, decode.CodeInvalidValue, "the environment %q is neither a map nor the name of one in environments of %s",
				text.Clip(dialect.TextOf(n), 60), projectName)
			continue
		}
		if n != variant && n != s.get("environment") {
			o.node = without(o.node, variant)
		}
		s.within = o.of
		s.onlyKeys(o, o.node, "an environment", environmentKeys...)
		s.within = ""
		all = append(all, o)
	}
	return all
}

// mapKeys are the keys of an environment that are maps, which are merged.
var mapKeys = []string{"mcpServers", "env"}

// without returns an environment without the keys that a variant replaces.
func without(n, variant *yaml.Node) *yaml.Node {
	if variant == nil {
		return n
	}
	rest := dialect.NewMap(n)
	for _, p := range dialect.Pairs(n) {
		if slices.Contains(mapKeys, p.Key.Value) || decode.Lookup(variant, p.Key.Value) == nil {
			rest.Set(p.Key.Value, p.Value)
		}
	}
	return rest.Node
}

// onlyKeys blocks the stimulus if a map of an origin has other keys.
func (s *stimulus) onlyKeys(o origin, n *yaml.Node, of string, keys ...string) {
	for _, p := range dialect.Pairs(n) {
		if !slices.Contains(keys, p.Key.Value) {
			s.block(o.place(p.Key), decode.CodeUnknownKey, "waza does not know the key %q of %s", text.Clip(p.Key.Value, 60), of)
		}
	}
}

var variable = text.Pattern(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand replaces ${NAME} by variables of the machine. One that is not set, or secret by its name, blocks
// the stimulus: findings, command lines and paths of records would show it.
func (s *stimulus) expand(at *yaml.Node, value string) (expanded string, ok bool) {
	for _, ref := range variable().FindAllStringSubmatch(value, -1) {
		if dialect.IsSecret(ref[1]) {
			s.block(at, decode.CodeUnavailable, "${%s} is secret by its name; waza uses secrets only in env and headers of MCP servers", ref[1])
			return "", false
		}
	}
	return s.expandAll(at, value)
}

// expandAll replaces ${NAME} by variables of the machine, also secret ones.
func (s *stimulus) expandAll(at *yaml.Node, value string) (expanded string, ok bool) {
	ok = true
	expanded = variable().ReplaceAllStringFunc(value, func(ref string) string {
		name := ref[2 : len(ref)-1]
		v, set := os.LookupEnv(name)
		if !set {
			s.block(at, decode.CodeUnknownVariable, "the environment variable %s is not set", name)
			ok = false
		}
		return v
	})
	return expanded, ok
}

// addEnvironment sets the skills, the files, the commands and the servers of the agent.
func (s *stimulus) addEnvironment() {
	all := s.origins()
	files, repos, setup := dialect.List(s.node), dialect.List(s.node), dialect.List(s.node)
	skills, env := dialect.List(s.node), dialect.NewMap(s.node)
	var given givenServers
	named := false // an environment says which skills the agent has
	for _, o := range all {
		s.within = o.of
		named = named || o.get("skills") != nil
		for _, n := range s.listIn(o, "skills") {
			if dir := s.skill(o, n); dir != "" {
				skills.Content = append(skills.Content, dialect.Scalar(o.place(n), s.Files.Relative(dir)))
			}
		}
		for _, n := range s.listIn(o, "files") {
			files.Content = append(files.Content, s.files(o, n)...)
		}
		for _, n := range s.listIn(o, commandsKey) {
			if dialect.TextOf(n) == "" {
				s.block(o.place(n), decode.CodeWrongType, "a command of the environment must be a text, got %s", describe(n))
				continue
			}
			setup.Content = append(setup.Content, dialect.Scalar(o.place(n), n.Value))
		}
		given.add(o, s.mapIn(o, o.get("mcpServers"), "mcpServers"))
		for _, p := range s.mapIn(o, o.get("env"), "env") {
			if o.of != "" && decode.IsNull(p.Value) { // a variant removes it
				env.Remove(p.Key.Value)
				continue
			}
			env.Set(p.Key.Value, s.variableIn(o, p))
		}
		if n := o.get("git"); n != nil {
			if repo := s.repository(o, n); repo != nil {
				repos.Content = []*yaml.Node{repo}
			}
		}
	}
	servers := dialect.NewMap(s.node)
	for _, g := range given {
		s.within = g.of
		servers.Set(g.name, s.server(g.origin, g.name, g.node))
	}
	s.within = ""
	if named && len(skills.Content) == 0 {
		s.task.Set("skill_directories", skills)
	} else if !named {
		for _, dir := range s.skills() {
			skills.Content = append(skills.Content, dialect.Scalar(s.node, s.Files.Relative(dir)))
		}
	}
	setList(s.inputs, "files", files)
	setList(s.inputs, "repos", repos)
	setList(s.inputs, "setup", setup)
	setList(s.task, "skill_directories", skills)
	if env.Len() > 0 {
		s.inputs.Set("environment", env.Node)
	}
	if servers.Len() > 0 && len(s.blocked) == 0 { // parts of a blocked one could be invalid for the whole suite
		s.task.Set("mcp_servers", servers.Node)
	}
}

// A givenServer is an MCP server of an environment.
type givenServer struct {
	origin
	name string
	node *yaml.Node
}

// givenServers are the MCP servers of a stimulus, each once.
type givenServers []givenServer

// add adds the servers of an environment. One replaces an earlier one of the same name, but a variant changes the
// keys that it names, and removes a server that it sets to null.
func (g *givenServers) add(o origin, servers []decode.Pair) {
	for _, p := range servers {
		one := givenServer{o, p.Key.Value, decode.Follow(p.Value)}
		i := slices.IndexFunc(*g, func(earlier givenServer) bool { return earlier.name == one.name })
		switch {
		case o.of != "" && decode.IsNull(one.node):
			if i >= 0 {
				*g = slices.Delete(*g, i, i+1)
			}
		case i < 0:
			*g = append(*g, one)
		case o.of != "":
			(*g)[i].origin, (*g)[i].node = o, merged(one.node, (*g)[i].node)
		default:
			(*g)[i] = one
		}
	}
}

// setList sets a key unless the list is empty.
func setList(m dialect.Map, key string, list *yaml.Node) {
	if len(list.Content) > 0 {
		m.Set(key, list)
	}
}

// listIn returns the items of a list of an environment; one text counts as a list.
func (s *stimulus) listIn(o origin, key string) []*yaml.Node {
	n := o.get(key)
	switch {
	case n == nil:
		return nil
	case n.Kind == yaml.SequenceNode:
		return dialect.Items(n)
	case n.Kind == yaml.ScalarNode:
		return []*yaml.Node{n}
	}
	s.block(o.place(n), decode.CodeWrongType, "%s of an environment must be a list, got %s", key, describe(n))
	return nil
}

// mapIn returns the pairs of a map of an environment.
func (s *stimulus) mapIn(o origin, n *yaml.Node, name string) []decode.Pair {
	if n != nil && n.Kind != yaml.MappingNode && !decode.IsNull(n) {
		s.block(o.place(n), decode.CodeWrongType, "%s must be a map, got %s", name, describe(n))
	}
	return dialect.Pairs(n)
}

// valueIn returns the value of a text of a server, with its variables replaced.
func (s *stimulus) valueIn(o origin, n *yaml.Node, key string) *yaml.Node {
	at := o.place(n)
	if n == nil || n.Kind != yaml.ScalarNode {
		s.block(at, decode.CodeWrongType, "%s of an MCP server cannot be %s", key, describe(n))
		return dialect.Scalar(at, "")
	}
	expand := s.expand
	if key == "env" || key == "headers" {
		expand = s.expandAll
	}
	value, _ := expand(at, dialect.TextOf(n))
	return dialect.Scalar(at, serverType(key, value))
}

// variableIn returns the value of an environment variable of the agent.
func (s *stimulus) variableIn(o origin, p decode.Pair) *yaml.Node {
	at := o.place(p.Key)
	if p.Value == nil || p.Value.Kind != yaml.ScalarNode {
		s.block(at, decode.CodeWrongType, "the variable %s of env must be a text, got %s", text.Clip(p.Key.Value, 60), describe(p.Value))
		return nil
	}
	value, _ := s.expand(at, dialect.TextOf(p.Value))
	return dialect.Scalar(at, value)
}

// find returns the absolute path of a file or folder that an environment names; "" after it blocked the
// stimulus.
func (s *stimulus) find(o origin, n *yaml.Node) string {
	at := o.place(n)
	name, ok := s.expand(at, dialect.TextOf(n))
	switch {
	case !ok:
		return ""
	case name == "":
		s.block(at, decode.CodeWrongType, "a path of the environment must be a text, got %s", describe(n))
		return ""
	}
	found := filepath.FromSlash(name)
	if !filepath.IsAbs(found) {
		found = filepath.Join(o.dir, found)
	}
	if !s.Files.Exists(found) {
		s.block(at, decode.CodeMissingFixture, "%s does not exist, or is outside of the repository", s.shown(n, found))
		return ""
	}
	return found
}

// shown returns a path for a finding: as it is written if it has variables, whose values a finding must
// not contain.
func (s *stimulus) shown(n *yaml.Node, found string) string {
	if written := dialect.TextOf(n); variable().MatchString(written) {
		return text.Clip(written, 100)
	}
	return s.Files.Shown(found)
}

// skill returns the directory of a skill, or of skills, that an environment names as a folder or a
// SKILL.md; "" after it blocked the stimulus.
func (s *stimulus) skill(o origin, n *yaml.Node) string {
	found := s.find(o, n)
	if path.Base(filepath.ToSlash(found)) == "SKILL.md" {
		return filepath.Dir(found)
	}
	return found
}

// files returns the files of the workspace that an entry means: src is the path of a file or a folder,
// dest its path in the workspace. A text is short for src.
func (s *stimulus) files(o origin, n *yaml.Node) []*yaml.Node {
	src, dest := n, (*yaml.Node)(nil)
	if n.Kind == yaml.MappingNode {
		src, dest = decode.Follow(decode.Lookup(n, "src")), decode.Follow(decode.Lookup(n, "dest"))
		s.onlyKeys(o, n, "a file", "src", "dest")
	}
	if dest != nil && dest.Kind != yaml.ScalarNode {
		s.block(o.place(dest), decode.CodeWrongType, "dest of a file must be a text, got %s", describe(dest))
		return nil
	}
	found := s.find(o, src)
	if found == "" {
		return nil
	}
	at, target, written := o.place(n), filepath.Base(found), src
	if dest != nil {
		written = dest
		var ok bool
		if target, ok = s.expand(o.place(dest), dialect.TextOf(dest)); !ok {
			return nil
		}
	}
	target = path.Clean(filepath.ToSlash(target))
	if !fs.ValidPath(target) {
		s.block(at, decode.CodeEscapingPath, "%q is no path in the workspace", text.Clip(dialect.TextOf(written), 100))
		return nil
	}
	if target != "." {
		return []*yaml.Node{s.file(at, found, target)}
	}
	entries, err := s.Files.List(found)
	if err != nil {
		s.block(at, decode.CodeMissingFixture, "%s is no folder that can be read, so it cannot be the workspace", s.shown(src, found))
		return nil
	}
	var list []*yaml.Node
	for _, e := range entries {
		list = append(list, s.file(at, filepath.Join(found, e.Name()), e.Name()))
	}
	return list
}

// file returns a file or a folder of the workspace.
func (s *stimulus) file(at *yaml.Node, source, target string) *yaml.Node {
	f := dialect.NewMap(at)
	f.Set("path", dialect.Scalar(at, target))
	f.Set("source", dialect.Scalar(at, s.Files.Relative(source)))
	return f.Node
}

// repository returns the checkout of a git repository of this machine; nil after it blocked the stimulus.
func (s *stimulus) repository(o origin, n *yaml.Node) *yaml.Node {
	repo := dialect.NewMap(o.place(n))
	s.onlyKeys(o, n, "git", "type", "source", "ref")
	if kind := decode.Follow(decode.Lookup(n, "type")); kind != nil && dialect.TextOf(kind) != "worktree" {
		s.block(o.place(kind), decode.CodeInvalidValue, "waza checks out git as a worktree, not as %s", describe(kind))
	}
	source := decode.Follow(decode.Lookup(n, "source"))
	name, ok := s.expand(o.place(n), dialect.TextOf(source))
	if !ok || name == "" || strings.Contains(name, "://") {
		s.block(o.place(n), decode.CodeInvalidValue, "git needs the path of a checkout as source, got %s", describe(source))
		return nil
	}
	if found := filepath.FromSlash(name); !filepath.IsAbs(found) {
		name = s.Files.Relative(filepath.Join(o.dir, found))
	}
	repo.Set("source", dialect.Scalar(o.place(n), name))
	if ref := decode.Follow(decode.Lookup(n, "ref")); dialect.TextOf(ref) != "" {
		repo.Set("commit", dialect.Scalar(o.place(ref), ref.Value))
	}
	return repo.Node
}

// server returns an MCP server of the agent; nil after it blocked the stimulus.
func (s *stimulus) server(o origin, name string, n *yaml.Node) *yaml.Node {
	at := o.place(n)
	server := dialect.NewMap(at)
	for _, p := range dialect.Pairs(n) {
		switch key := p.Key.Value; key {
		case "type", "command", "url":
			server.Set(key, s.valueIn(o, p.Value, key))
		case "args":
			if p.Value != nil && p.Value.Kind != yaml.SequenceNode {
				s.block(o.place(p.Value), decode.CodeWrongType, "args of an MCP server must be a list, got %s", describe(p.Value))
			}
			list := dialect.List(at)
			for _, item := range dialect.Items(p.Value) {
				list.Content = append(list.Content, s.valueIn(o, item, key))
			}
			server.Set(key, list)
		case "env", "headers":
			values := dialect.NewMap(at)
			for _, pair := range s.mapIn(o, p.Value, key+" of an MCP server") {
				values.Set(pair.Key.Value, s.valueIn(o, pair.Value, key))
			}
			server.Set(key, values.Node)
		case "cwd":
			if dir := dialect.TextOf(p.Value); path.Clean(dir) != "." {
				s.block(o.place(p.Value), decode.CodeInvalidValue, "the MCP server %s starts in %q, and agents start servers in the workspace", text.Clip(name, 60), text.Clip(dir, 60))
			}
		case "timeout", "tools":
			s.warnOnce("mcpServers."+key, o.place(p.Key), decode.CodeNoEffect, "%s of an MCP server has no effect; the agent decides", key)
		default:
			s.block(o.place(p.Key), decode.CodeUnknownKey, "waza does not know the key %q of the MCP server %s",
				text.Clip(key, 60), text.Clip(name, 60))
		}
	}
	if server.Get("command") == nil && server.Get("url") == nil {
		s.block(at, decode.CodeMissingField, "the MCP server %s has neither command nor url", text.Clip(name, 60))
		return nil
	}
	return server.Node
}

// serverType returns the value of a key of a server. waza calls local servers, and those of newer HTTP
// transports, by other names.
func serverType(key, value string) string {
	if key == "type" && (value == "streamable-http" || value == "streamableHttp") {
		return "http"
	}
	return value
}
