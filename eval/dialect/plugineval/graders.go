package plugineval

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	jspattern "waza/eval/pattern"
	"waza/eval/text"
)

// A caseGrader is a grader of a task.
type caseGrader struct {
	dialect.Map
	judged  bool // asks a judge
	leftOut bool // counts only if the case has no other
}

// A spec is a grader as the case declares it.
type spec struct {
	*testCase
	src  *decode.Source
	node *yaml.Node // the keys
	name string
	body string // pattern or rubric, unless a key has it
}

// graderKeys are the keys of each type of grader.
var graderKeys = map[string][]string{
	"regex":       {"pattern", "flags", "match", "target"},
	"tool_used":   {"tool", "input_match", "min", "max"},
	"tool_order":  {"before", "after"},
	"file_exists": {"path", "exists"},
	"llm":         {"criteria", "focus"},
	"baseline":    {"baseline_file", "criteria"},
}

// mapKeys are the keys of graders whose values can be maps.
var mapKeys = []string{"target", "focus", "before", "after"}

// addGraders adds the graders of graders/ and of case.yaml. A case without one does not load.
func (c *testCase) addGraders() {
	for _, s := range c.specs() {
		if g, ok := s.translate(); ok {
			c.graders = append(c.graders, g)
		}
	}
	if len(c.graders) == 0 {
		c.block(c.source(), nil, "the case has no grader")
	}
	if slices.ContainsFunc(c.graders, func(g caseGrader) bool { return !g.leftOut }) {
		for _, g := range c.graders {
			if g.leftOut {
				g.Set("optional", dialect.Scalar(nil, true))
			}
		}
	}
}

func (c *testCase) specs() (specs []*spec) {
	dir := filepath.Join(c.dir, gradersDir)
	if entries, err := c.Files.List(dir); err == nil {
		for _, e := range entries {
			name, isMarkdown := strings.CutSuffix(e.Name(), ".md")
			if !isMarkdown || e.IsDir() {
				continue
			}
			switch m := c.readMarkdown(filepath.Join(dir, e.Name())); {
			case m == nil:
			case m.fault != "":
				c.block(m.src, nil, "%s", m.fault)
			default:
				specs = append(specs, &spec{c, m.src, decode.Follow(m.src.Root), name, strings.TrimSpace(m.body)})
			}
		}
	}
	if c.yaml == nil {
		return specs
	}
	given := decode.Follow(decode.Lookup(decode.Follow(c.yaml.Root), "graders"))
	items, ok := dialect.ListOf(given)
	if !ok {
		c.block(c.yaml, given, "graders must be a list, got %s", decode.Describe(given))
	}
	for i, n := range items {
		name := dialect.TextOf(decode.Lookup(n, "name"))
		if name == "" {
			name = fmt.Sprintf("grader %d", i+1)
		}
		specs = append(specs, &spec{c, c.yaml, n, name, ""})
	}
	return specs
}

func (s *spec) get(key string) *yaml.Node {
	if n := decode.Follow(decode.Lookup(s.node, key)); n != nil && !decode.IsNull(n) {
		return n
	}
	return nil
}

func (s *spec) text(key string) string { return dialect.TextOf(s.get(key)) }

// cannot reports why the grader cannot decide. The case cannot be done without it.
func (s *spec) cannot(at *yaml.Node, format string, args ...any) {
	s.block(s.src, at, "grader %s: %s", text.Clip(s.name, 60), fmt.Sprintf(format, args...))
}

// translate returns the grader; ok is false if it cannot decide, which it reports.
func (s *spec) translate() (g caseGrader, ok bool) {
	kind := s.text("type")
	keys, known := graderKeys[kind]
	if !known {
		s.cannot(s.get("type"), "unknown type %q", text.Clip(kind, 40))
		return g, false
	}
	keys = slices.Concat(keys, []string{"name", "type", "weight", "arm"})
	for _, p := range dialect.Pairs(s.node) {
		if !slices.Contains(keys, p.Key.Value) {
			s.cannot(p.Key, "unknown key %s", text.Clip(p.Key.Value, 60))
			return g, false
		}
		if p.Value != nil && p.Value.Kind != yaml.ScalarNode && !slices.Contains(mapKeys, p.Key.Value) {
			s.cannot(p.Value, "%s must be a single value, got %s", p.Key.Value, decode.Describe(p.Value))
			return g, false
		}
	}
	g.Map = dialect.NewMap(nil)
	g.Set("name", dialect.Scalar(nil, s.name))
	if !s.addWeight(g.Map) {
		return g, false
	}
	translate := map[string]func(*caseGrader) bool{
		"regex": s.regex, "tool_used": s.toolUsed, "tool_order": s.toolOrder,
		"file_exists": s.fileExists, "llm": s.llm, "baseline": s.baseline,
	}[kind]
	if !translate(&g) {
		return g, false
	}
	switch arm := s.text("arm"); arm {
	case "with-only":
		g.leftOut = true
	case "both":
		g.leftOut = false
	case "":
	default:
		s.cannot(s.get("arm"), "arm must be with-only or both, got %q", text.Clip(arm, 40))
		return g, false
	}
	return g, true
}

func (s *spec) addWeight(g dialect.Map) bool {
	n := s.get("weight")
	if n == nil {
		return true
	}
	weight, ok := decode.FloatOf(n)
	if !ok || !(weight > 0) || weight > 1e6 {
		s.cannot(n, "weight must be a number above 0, got %s", decode.Describe(n))
		return false
	}
	g.Set("weight", dialect.Scalar(nil, weight))
	return true
}

// set sets type and options of a grader. Options come in pairs of key and value.
func (g *caseGrader) set(kind string, options dialect.Map) {
	g.Set("type", dialect.Scalar(nil, kind))
	g.Set("config", options.Node)
}

// code makes a grader evaluate an expression of JavaScript.
func (g *caseGrader) code(expression string) bool {
	options := dialect.NewMap(nil)
	options.Set("language", dialect.Scalar(nil, "javascript"))
	options.Set("assertions", dialect.Texts(nil, expression))
	g.set("code", options)
	return true
}

// js returns a text as a literal of JavaScript.
func js(v string) string {
	data, err := json.Marshal(v)
	if err != nil {
		return `""` // a text has no invalid values
	}
	return string(data)
}

// orBody returns the text of a key, else the body.
func (s *spec) orBody(key string) string {
	if v := s.text(key); v != "" {
		return v
	}
	return s.body
}

var (
	inlineFlags = text.Pattern(`^\(\?[a-z]+\)`)
	flagLetters = text.Pattern(`^[dgimsu]*$`)
	countMatch  = text.Pattern(`^count:\d{1,6}$`)
)

// pattern returns a regular expression of JavaScript as an expression. ok is false if it cannot be
// read, which it reports.
func (s *spec) pattern(pattern, flags string) (expression string, ok bool) {
	switch {
	case pattern == "":
		s.cannot(s.node, "it has no pattern")
	case inlineFlags().MatchString(pattern):
		s.cannot(s.node, "JavaScript has no inline flags; write them into flags")
	case !flagLetters().MatchString(flags):
		s.cannot(s.get("flags"), "the flags %q are not supported", text.Clip(flags, 20))
	default:
		if _, err := jspattern.Compile(jspattern.JavaScript, pattern); err != nil && !strings.Contains(flags, "u") {
			s.cannot(s.node, "the pattern is invalid: %v", err)
			return "", false
		}
		if flags == "" {
			return fmt.Sprintf("new RegExp(%s)", js(pattern)), true
		}
		return fmt.Sprintf("new RegExp(%s, %s)", js(pattern), js(flags)), true
	}
	return "", false
}

func (s *spec) regex(g *caseGrader) bool {
	t, ok := s.target("target")
	if !ok {
		return false
	}
	match := s.text("match")
	if match == "" {
		match = "contains"
	}
	counted, isCount := strings.CutPrefix(match, "count:")
	if !countMatch().MatchString(match) && match != "contains" && match != "not_contains" {
		s.cannot(s.get("match"), "match must be contains, not_contains or count:N, got %q", text.Clip(match, 40))
		return false
	}
	flags := strings.ReplaceAll(s.text("flags"), "g", "") // a search with g starts where the last one ended
	if isCount {
		flags += "g"
	}
	re, ok := s.pattern(s.orBody("pattern"), flags)
	if !ok {
		return false
	}
	if body := s.transform(t, false); body != "" {
		g.Set("transform", dialect.Scalar(nil, body))
	}
	g.leftOut = s.leftOut(t)
	subject, exists := "output", ""
	if t.kind == "file" {
		subject = fmt.Sprintf("files[%s]", js(t.path))
		exists = fmt.Sprintf(`typeof %s === "string" && `, subject)
	} else if !isCount && !strings.ContainsAny(flags, "du") {
		s.textMatch(g, match, flags)
		return true
	}
	switch {
	case isCount:
		return g.code(fmt.Sprintf("%s(%s.match(%s) || []).length === %s", exists, subject, re, counted))
	case match == "not_contains":
		return g.code(fmt.Sprintf("%s!%s.test(%s)", exists, re, subject))
	}
	return g.code(fmt.Sprintf("%s%s.test(%s)", exists, re, subject))
}

// textMatch lets the grader of texts look for the pattern.
func (s *spec) textMatch(g *caseGrader, match, flags string) {
	pattern := s.orBody("pattern")
	if flags != "" {
		pattern = "(?" + flags + ")" + pattern
	}
	options := dialect.NewMap(nil)
	options.Set(map[string]string{"contains": "regex_match", "not_contains": "regex_not_match"}[match], dialect.Texts(nil, pattern))
	options.Set("syntax", dialect.Scalar(nil, "javascript"))
	g.set("text", options)
}

// skillTool is the tool that starts a skill in Claude Code. Other agents have other ways, so waza looks
// at the skills that were used.
const skillTool = "Skill"

// skillUses returns the expression for the list of skills that were used, as inputs of calls of the tool.
func (s *spec) skillUses(input string) (expression string, ok bool) {
	list := `outcome.skills.map(name => JSON.stringify({skill: name}))`
	if input == "" {
		return list, true
	}
	re, ok := s.pattern(input, "")
	return list + fmt.Sprintf(".filter(call => %s.test(call))", re), ok
}

// call returns calls of a tool as an entry of tool_constraint, for which other agents' names of the tool count.
func (s *spec) call(tool, input string) (call dialect.Map, ok bool) {
	call = dialect.NewMap(nil)
	call.Set("tool", dialect.Scalar(nil, s.toolPattern(tool)))
	if input != "" {
		if _, ok := s.pattern(input, ""); !ok {
			return call, false
		}
		call.Set("args_pattern", dialect.Scalar(nil, input))
	}
	return call, true
}

// toolPattern returns a pattern of the names of a tool. Claude Code puts the name of a plugin before
// those of its servers, and other agents have other separators.
func (s *spec) toolPattern(tool string) string {
	quoted := regexp.QuoteMeta(tool)
	if server, name, ok := s.serverTool(tool); ok {
		quoted = fmt.Sprintf("(?:%s|(?:mcp__)?%s[-_./:]{1,2}%s)", quoted, regexp.QuoteMeta(server), regexp.QuoteMeta(name))
	}
	return "(?i)^" + quoted + "$"
}

// serverTool splits Claude Code's name of a tool of an MCP server.
func (s *spec) serverTool(tool string) (server, name string, ok bool) {
	rest, ok := strings.CutPrefix(tool, "mcp__")
	server, name, found := strings.Cut(rest, "__")
	if !ok || !found || server == "" || name == "" {
		return "", "", false
	}
	for _, p := range s.plugins {
		for _, own := range p.declared {
			if server == p.serverName(own) {
				return own, name, true
			}
		}
	}
	return server, name, true
}

// constraint makes a grader a tool_constraint with one entry, whose patterns are those of JavaScript.
func (g *caseGrader) constraint(option string, entry dialect.Map) {
	options := dialect.NewMap(nil)
	options.Set(option, dialect.List(nil, entry.Node))
	options.Set("syntax", dialect.Scalar(nil, "javascript"))
	g.set("tool_constraint", options)
}

// limit returns the value of a key, a whole number from 0 on.
func (s *spec) limit(key string, standard int) (int, bool) {
	n := s.get(key)
	if n == nil {
		return standard, true
	}
	var limit int
	if n.Decode(&limit) != nil || limit < 0 || limit > 1_000_000 {
		s.cannot(n, "%s must be a whole number from 0 on, got %s", key, decode.Describe(n))
		return 0, false
	}
	return limit, true
}

func (s *spec) toolUsed(g *caseGrader) bool {
	tool, input := s.text("tool"), s.text("input_match")
	if tool == "" {
		s.cannot(s.node, "it names no tool")
		return false
	}
	const unlimited = -1
	least, ok := s.limit("min", 1)
	most, ok2 := s.limit("max", unlimited)
	if !ok || !ok2 {
		return false
	}
	if s.get("min") == nil && most == 0 {
		least = 0
	}
	if most != unlimited && least > most {
		s.cannot(s.get("max"), "min is above max")
		return false
	}
	if tool == skillTool {
		g.leftOut = true
		uses, ok := s.skillUses(input)
		if most == unlimited {
			return ok && g.code(fmt.Sprintf("%s.length >= %d", uses, least))
		}
		return ok && g.code(fmt.Sprintf("(n => n >= %d && n <= %d)(%s.length)", least, most, uses))
	}
	if _, _, ok := s.serverTool(tool); !ok && input == "" && (most == 0 || most == unlimited && least > 0) {
		s.plainCalls(g, tool, least)
		return true
	}
	call, ok := s.call(tool, input)
	call.Set("min", dialect.Scalar(nil, least))
	if most != unlimited {
		call.Set("max", dialect.Scalar(nil, most))
	}
	g.constraint("expect_tools", call)
	return ok
}

// plainCalls asks for a number of calls of a tool, or for none. Other agents' names of the tool count.
func (s *spec) plainCalls(g *caseGrader, tool string, least int) {
	options := dialect.NewMap(nil)
	if least == 0 {
		options.Set("forbidden_tools", dialect.Texts(nil, tool))
	} else {
		call := dialect.NewMap(nil)
		call.Set("tool", dialect.Scalar(nil, tool))
		call.Set("count", dialect.Scalar(nil, least))
		options.Set("required", dialect.List(nil, call.Node))
	}
	g.set("tool_calls", options)
}

func (s *spec) toolOrder(g *caseGrader) bool {
	pair := dialect.NewMap(nil)
	for _, key := range []string{"before", "after"} {
		n := s.get(key)
		tool, input := dialect.TextOf(n), (*yaml.Node)(nil)
		if n != nil && n.Kind == yaml.MappingNode {
			tool, input = dialect.TextOf(decode.Lookup(n, "tool")), decode.Follow(decode.Lookup(n, "input_match"))
		}
		if tool == "" || tool == skillTool {
			s.cannot(n, "%s must name a tool other than %s", key, skillTool)
			return false
		}
		if input != nil && input.Kind != yaml.ScalarNode {
			s.cannot(input, "input_match must be a single value, got %s", decode.Describe(input))
			return false
		}
		call, ok := s.call(tool, dialect.TextOf(input))
		if !ok {
			return false
		}
		pair.Set(key, call.Node)
	}
	g.constraint("order", pair)
	return true
}

func (s *spec) fileExists(g *caseGrader) bool {
	path := s.text("path")
	if path == "" || !filepath.IsLocal(filepath.FromSlash(path)) {
		s.cannot(s.get("path"), "path must be a path or pattern in the workspace")
		return false
	}
	option := "must_exist"
	if n := s.get("exists"); n != nil {
		exists, ok := decode.BoolOf(n)
		if !ok {
			s.cannot(n, "exists must be true or false, got %s", decode.Describe(n))
			return false
		}
		if !exists {
			option = "must_not_exist"
		}
	}
	options := dialect.NewMap(nil)
	options.Set(option, dialect.Texts(nil, path))
	options.Set("created", dialect.Scalar(nil, true))
	g.set("file", options)
	return true
}

// llm asks a judge three times. Two votes pass.
func (s *spec) llm(g *caseGrader) bool {
	criteria := s.orBody("criteria")
	if criteria == "" {
		s.cannot(s.node, "it has no criteria")
		return false
	}
	t, ok := s.target("focus")
	if !ok {
		return false
	}
	body := s.transform(t, true)
	g.leftOut = s.leftOut(t)
	ballot := dialect.List(nil)
	for n := range votes {
		options := dialect.NewMap(nil)
		options.Set("statements", dialect.Texts(nil, criteria))
		if t.kind == "file" {
			options.Set("files", dialect.Texts(nil, t.path))
		}
		vote := caseGrader{Map: dialect.NewMap(nil)}
		vote.Set("name", dialect.Scalar(nil, fmt.Sprintf("vote %d", n+1)))
		if body != "" {
			vote.Set("transform", dialect.Scalar(nil, body))
			options.Set("prompt", dialect.Scalar(nil, focusNotes[t.kind]))
		}
		vote.set("prompt", options)
		ballot.Content = append(ballot.Content, vote.Node)
	}
	options := dialect.NewMap(nil)
	options.Set("graders", ballot)
	options.Set("threshold", dialect.Scalar(nil, 0.66)) // two of three
	g.set("group", options)
	g.judged = true
	return true
}

// baseline compares the answer with that of a stored transcript. A tie passes.
func (s *spec) baseline(g *caseGrader) bool {
	name := s.text("baseline_file")
	file := filepath.Join(s.dir, filepath.FromSlash(name))
	data, err := s.Files.Read(file, decode.MaxTextBytes)
	if name == "" || err != nil {
		s.cannot(s.get("baseline_file"), "the baseline_file %s cannot be read", text.Clip(name, 100))
		return false
	}
	answer, ok := storedAnswer(string(data))
	if !ok {
		s.cannot(s.get("baseline_file"), "the baseline_file has no answer: no line of the type result")
		return false
	}
	options := dialect.NewMap(nil)
	options.Set("mode", dialect.Scalar(nil, "pairwise"))
	if criteria := s.orBody("criteria"); criteria != "" {
		options.Set("prompt", dialect.Scalar(nil, criteria))
	} else {
		options.Set("prompt", dialect.Scalar(nil, "Which answer does what the user asked better?"))
	}
	options.Set("reference", dialect.Scalar(nil, answer))
	g.set("prompt", options)
	g.judged = true
	return true
}

// storedAnswer returns the answer of a transcript of Claude Code, which has a JSON object per line, or a
// text that is no transcript.
func storedAnswer(transcript string) (answer string, ok bool) {
	lines := strings.Split(strings.TrimSpace(transcript), "\n")
	isJSON := false
	for _, line := range slices.Backward(lines) {
		var event struct{ Type, Result string }
		if json.Unmarshal([]byte(line), &event) != nil {
			continue
		}
		isJSON = true
		if event.Type == "result" && event.Result != "" {
			return event.Result, true
		}
	}
	return strings.TrimSpace(transcript), !isJSON && strings.TrimSpace(transcript) != ""
}
