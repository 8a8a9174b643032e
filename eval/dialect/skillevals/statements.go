package skillevals

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// A statementKey is a key of a case whose value is a statement or a list of statements.
type statementKey struct {
	name   string
	prefix string // of items that are fragments instead of sentences
	absent bool   // the statement passes if the result lacks the thing
}

// statementKeys are the names that authors gave to lists of statements. Both definitions mean the
// same by assertions and expectations.
var statementKeys = []statementKey{
	{name: "expectations"},
	{name: "assertions"},
	{name: "_success_criteria"},
	{name: "success_criteria"},
	{name: "criteria"},
	{name: "rubric"},
	{name: "must_have"},
	{name: "expected_behavior"},
	{name: "expected_behaviors"},
	{name: "expect"},
	{name: "checks"},
	{name: "expected_checks"},
	{name: "deterministic_assertions"},
	{name: "pass_criteria"},
	{name: "acceptance_criteria"},
	{name: "expected_outcome"},
	{name: "expected_outcomes"},
	{name: "expected_result"},
	{name: "expected_results"},
	{name: "must_contain", prefix: "The result contains: "},
	{name: "should_include", prefix: "The result includes: "},
	{name: "must_include", prefix: "The result includes: "},
	{name: "expected_topics", prefix: "The result covers: "},
	{name: "expected_sections", prefix: "The result has the section: "},
	{name: "expected_patterns", prefix: "The result matches the pattern: "},
	{name: "anti_expectations", absent: true},
	{name: "must_not", absent: true},
	{name: "must_not_include", absent: true},
	{name: "must_not_have", absent: true},
	{name: "must_not_do", absent: true},
	{name: "forbidden", absent: true},
	{name: "forbidden_behavior", absent: true},
	{name: "forbidden_behaviors", absent: true},
	{name: "fail", absent: true},
	{name: "must_not_contain", absent: true},
	{name: "should_not_include", absent: true},
	{name: "flags_to_avoid", absent: true},
	{name: "avoid_behaviors", absent: true},
}

// hasStatements reports whether a case lists statements or checks.
func (c *caseTranslator) hasStatements() bool {
	return slices.ContainsFunc(statementKeys, func(k statementKey) bool {
		n := decode.Follow(decode.Lookup(c.node, k.name))
		return n != nil && !decode.IsNull(n) && (n.Kind != yaml.SequenceNode || len(n.Content) > 0)
	})
}

// graders returns the graders of a case: one per check that code can decide, and one for all
// statements that a judge decides.
func (c *caseTranslator) graders() []*yaml.Node {
	j := judged{list: dialect.List(c.node), seen: map[string]bool{}}
	checks := checkList{seen: map[string]bool{}, names: map[string]bool{statementsName: true}}
	for _, k := range statementKeys {
		n := c.get(k.name)
		if n == nil {
			continue
		}
		items := []*yaml.Node{n}
		if n.Kind == yaml.SequenceNode {
			items = dialect.Items(n)
		}
		for _, item := range items {
			if check := c.check(item, k); check != nil {
				checks.add(check)
			} else {
				c.addStatement(&j, item, k)
			}
		}
	}
	expected := c.get("expected_output")
	if expected == nil {
		expected = c.get("expected")
	}
	if len(j.list.Content) == 0 && len(checks.list) == 0 && dialect.TextOf(expected) != "" {
		// A case is first written without statements.
		j.add(expected, expectedPrefix+expected.Value, "expected_output", false)
		expected = nil
	}
	if unread := c.addOthers(&j); unread != nil && len(j.list.Content) == 0 && len(checks.list) == 0 {
		reason := fmt.Sprintf("line %d: nothing but %s says how the result should be, and waza cannot decide it", unread.Line, text.Clip(unread.Value, 60))
		c.blocked = append(c.blocked, reason)
		c.Reportf(c.Source, unread, decode.Warning, decode.CodeUnknownOption, "%s; trials of this case end in an error", reason)
	}
	if len(j.list.Content) > 0 {
		config := dialect.NewMap(c.node)
		config.Set("statements", j.list)
		if dialect.TextOf(expected) != "" {
			config.Set("reference", dialect.Scalar(expected, expected.Value))
		}
		g := dialect.NewMap(c.node)
		g.Set("name", dialect.Scalar(nil, statementsName))
		g.Set("type", dialect.Scalar(nil, "prompt"))
		if len(checks.list) > 0 {
			g.Set("weight", dialect.Scalar(nil, len(j.list.Content)))
		}
		g.Set("config", config.Node)
		return append([]*yaml.Node{g.Node}, checks.list...)
	}
	return checks.list
}

// Names of keys without a definition that say how a result should be, or should not be.
var (
	otherKey  = text.Pattern(`^(expected?|must|should|required?)_|_(criteria|assertions|expectations|requirements|behaviou?rs?)$`)
	absentKey = text.Pattern(`^(must_not|should_not|forbidden|avoid|disallowed|prohibited)(_|$)|_to_avoid$`)
	// otherUses are keys with another meaning.
	otherUses = text.Pattern(`^(expected_output|expected_skills?|expected_primary|should_trigger|should_not_trigger|required_tools|required_env)$`)
)

// addOthers lets the judge decide keys that no definition describes, by their texts. Without it, the case would pass
// whatever they say. It returns a key without texts; nil for none.
func (c *caseTranslator) addOthers(j *judged) (unread *yaml.Node) {
	for _, p := range dialect.Pairs(c.node) {
		key, value := p.Key.Value, decode.Follow(p.Value)
		absent := absentKey().MatchString(key)
		if c.read[key] || !absent && !otherKey().MatchString(key) || otherUses().MatchString(key) || decode.IsNull(value) {
			continue
		}
		items := dialect.Items(value)
		if value.Kind == yaml.ScalarNode {
			items = []*yaml.Node{value}
		}
		for _, item := range items {
			if item.Kind == yaml.ScalarNode {
				item = dialect.Scalar(item, dialect.TextOf(item))
			}
			c.addStatement(j, item, statementKey{name: key, prefix: fmt.Sprintf("The result fits %q: ", key), absent: absent})
		}
		if len(items) == 0 { // warnUnknown reports it
			if value.Kind == yaml.MappingNode {
				unread = p.Key
			}
			continue
		}
		c.read[key] = true
		if !c.unknown[key] {
			c.unknown[key] = true
			c.Reportf(c.Source, p.Key, decode.Warning, decode.CodeUnknownKey,
				"key %q is unknown in skill evals; a judge decides whether the result fits it", text.Clip(key, 60))
		}
	}
	return unread
}

// statementsName is the name of the grader of all statements of a case.
const statementsName = "statements"

// checkList collects the graders of a case that code decides, without exact repetitions. Their names
// become unique, because a grader replaces an earlier one of its name.
type checkList struct {
	list  []*yaml.Node
	seen  map[string]bool // graders, encoded
	names map[string]bool
}

func (l *checkList) add(check *yaml.Node) {
	encoded, err := yaml.Marshal(check)
	if err != nil || l.seen[string(encoded)] {
		return
	}
	l.seen[string(encoded)] = true
	name := decode.Lookup(check, "name")
	unique := name.Value
	for n := len(l.list); l.names[unique]; n++ {
		unique = fmt.Sprintf("%s, %d", name.Value, n+1)
	}
	l.names[unique] = true
	name.Value = unique
	l.list = append(l.list, check)
}

// judged collects the statements of a case for a judge, without exact repetitions.
type judged struct {
	list *yaml.Node
	seen map[string]bool
}

func (j *judged) add(at *yaml.Node, statement, label string, absent bool) {
	key := fmt.Sprint(absent, statement)
	if j.seen[key] {
		return
	}
	j.seen[key] = true
	if label == "" && !absent {
		j.list.Content = append(j.list.Content, dialect.Scalar(at, statement))
		return
	}
	m := dialect.NewMap(at)
	m.Set("text", dialect.Scalar(at, statement))
	if label != "" {
		m.Set("label", dialect.Scalar(at, label))
	}
	if absent {
		m.Set("absent", dialect.Scalar(at, true))
	}
	j.list.Content = append(j.list.Content, m.Node)
}

// addStatement adds one item for the judge. An item without a readable text blocks the case, because
// it must never count as passed.
func (c *caseTranslator) addStatement(j *judged, item *yaml.Node, k statementKey) {
	statement, label := dialect.TextOf(item), ""
	if item.Kind == yaml.MappingNode {
		statement = firstOf(textIn(item, "text"), textIn(item, "description"), textIn(item, "statement"), textIn(item, "check"),
			textIn(item, "assertion"), textIn(item, "expectation"), textIn(item, "pass_if"), textIn(item, "criterion"), textIn(item, "criteria"))
		label = firstOf(dialect.TextOf(decode.Lookup(item, "id")), textIn(item, "name"), textIn(item, "dimension"))
		if statement != "" && decode.Lookup(item, "cmd") != nil && !c.unknown["cmd"] {
			c.unknown["cmd"] = true
			c.Reportf(c.Source, decode.Lookup(item, "cmd"), decode.Warning, decode.CodeNoEffect,
				"waza does not run cmd, which no definition describes; a judge decides by the text of the check")
		}
		if statement == "" {
			statement = textIn(item, "name")
		}
		if label == statement {
			label = ""
		}
	}
	if strings.TrimSpace(statement) == "" {
		kind := dialect.TextOf(decode.Lookup(item, "type"))
		if kind == "" && item.Kind == yaml.ScalarNode {
			return // an empty text states nothing
		}
		reason := fmt.Sprintf("line %d: %s has a check that waza does not know", item.Line, k.name)
		if kind != "" {
			reason = fmt.Sprintf("line %d: waza cannot decide this check of the type %q", item.Line, text.Clip(kind, 60))
		}
		c.blocked = append(c.blocked, reason)
		c.Reportf(c.Source, item, decode.Warning, decode.CodeUnknownOption,
			"%s, and it has no text for a judge; trials of this case end in an error", reason)
		return
	}
	j.add(item, k.prefix+statement, label, k.absent)
}

func textIn(n *yaml.Node, key string) string {
	if v := decode.Follow(decode.Lookup(n, key)); decode.IsText(v) {
		return v.Value
	}
	return ""
}

// check returns the grader for an item that code can decide, or nil. The final message is the subject
// of all checks but file_contains.
func (c *caseTranslator) check(item *yaml.Node, k statementKey) *yaml.Node {
	if item.Kind != yaml.MappingNode {
		return nil
	}
	spec := item
	if n := decode.Follow(decode.Lookup(item, "check")); n != nil && n.Kind == yaml.MappingNode {
		spec = n
	}
	name := firstOf(textIn(item, "text"), textIn(item, "description"), dialect.TextOf(decode.Lookup(item, "id")), textIn(item, "name"))
	if decode.Lookup(spec, "groups") != nil && !k.absent {
		return groups(item, spec, firstOf(name, "groups"))
	}
	kind := strings.ReplaceAll(textIn(spec, "type"), "-", "_")
	values := valuesOf(spec)
	if kind == "file_exists" || kind == "file_not_exists" {
		values = pathsOf(spec, values)
	}
	if len(dialect.Items(values)) == 0 {
		return nil // a check without a value would always pass
	}
	config := dialect.NewMap(spec)
	grader := "text"
	absent := k.absent
	switch kind {
	case "contains", "contains_all", "output_contains":
		config.Set(option(absent, "not_contains_cs", "contains_cs"), values)
		c.hintPattern(kind, values)
	case "not_contains", "output_not_contains":
		config.Set(option(absent, "contains_cs", "not_contains_cs"), values)
		c.hintPattern(kind, values)
	case "contains_any":
		config.Set(option(absent, "regex_not_match", "regex_match"), oneOf(spec, values, true))
	case "regex", "matches", "output_matches":
		config.Set(option(absent, "regex_not_match", "regex_match"), values)
		config.Set("syntax", dialect.Scalar(spec, "javascript"))
	case "not_regex", "not_matches", "output_not_matches":
		config.Set(option(absent, "regex_match", "regex_not_match"), values)
		config.Set("syntax", dialect.Scalar(spec, "javascript"))
	case "file_exists":
		grader = "file"
		config.Set(option(absent, "must_not_exist", "must_exist"), values)
	case "file_not_exists":
		grader = "file"
		config.Set(option(absent, "must_exist", "must_not_exist"), values)
	case "file_contains", "file_not_contains":
		file := decode.Follow(decode.Lookup(spec, "path"))
		if dialect.TextOf(file) == "" {
			return nil
		}
		grader = "file"
		m := dialect.NewMap(spec)
		m.Set("path", dialect.Scalar(file, file.Value))
		quoted := dialect.List(values)
		for _, v := range dialect.Items(values) {
			quoted.Content = append(quoted.Content, dialect.Scalar(v, regexp.QuoteMeta(v.Value)))
		}
		m.Set(option(absent != (kind == "file_not_contains"), "must_not_match", "must_match"), quoted)
		config.Set("content_patterns", dialect.List(spec, m.Node))
	default:
		return nil
	}
	if name == "" {
		name = text.Clip(kind+" "+dialect.Items(values)[0].Value, 60)
	}
	return named(item, name, grader, config)
}

// option returns the option of a grader for a thing that must be absent, or present.
func option(absent bool, ifAbsent, ifPresent string) string {
	if absent {
		return ifAbsent
	}
	return ifPresent
}

// named returns a grader of a case.
func named(at *yaml.Node, name, kind string, config dialect.Map) *yaml.Node {
	g := dialect.NewMap(at)
	g.Set("name", dialect.Scalar(at, name))
	g.Set("type", dialect.Scalar(at, kind))
	g.Set("config", config.Node)
	return g.Node
}

// valuesOf returns the texts that a check looks for.
func valuesOf(spec *yaml.Node) *yaml.Node {
	for _, key := range []string{"value", "values", "pattern", "patterns", "needle", "substring", "text"} {
		n := decode.Follow(decode.Lookup(spec, key))
		if n == nil || key == "text" && textIn(spec, "type") == "" {
			continue
		}
		list := dialect.List(n)
		items := dialect.Items(n)
		if n.Kind == yaml.ScalarNode {
			items = []*yaml.Node{n}
		}
		for _, item := range items {
			if value := dialect.TextOf(item); value != "" {
				list.Content = append(list.Content, dialect.Scalar(item, value))
			}
		}
		return list
	}
	return dialect.List(spec)
}

// pathsOf returns the paths of a check of files.
func pathsOf(spec, values *yaml.Node) *yaml.Node {
	if n := decode.Follow(decode.Lookup(spec, "path")); dialect.TextOf(n) != "" {
		return dialect.List(n, dialect.Scalar(n, n.Value))
	}
	return values
}

// oneOf returns a list with one pattern that matches any of the values.
func oneOf(at, values *yaml.Node, quote bool) *yaml.Node {
	var parts []string
	for _, v := range dialect.Items(values) {
		part := v.Value
		if quote {
			part = regexp.QuoteMeta(part)
		}
		parts = append(parts, "(?:"+part+")")
	}
	if len(parts) == 0 {
		return dialect.List(at)
	}
	return dialect.List(at, dialect.Scalar(at, strings.Join(parts, "|")))
}

// hintPattern reports a text of a check contains that looks like a pattern. The name of the check
// decides.
func (c *caseTranslator) hintPattern(kind string, values *yaml.Node) {
	for _, v := range dialect.Items(values) {
		if re, err := syntax.Parse(v.Value, syntax.Perl); err == nil && strings.ContainsAny(v.Value, `*+\|`) && re.Op != syntax.OpLiteral {
			c.Reportf(c.Source, v, decode.Warning, decode.CodeOtherMeaning, "%s looks for this text itself; use the type regex for a pattern", kind)
		}
	}
}
