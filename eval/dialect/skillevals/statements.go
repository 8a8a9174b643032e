package skillevals

import (
	"cmp"
	"encoding/json"
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
	path   string // the keys of maps above the items, with ", " after each
	kind   string // the type of items without a type that are patterns; empty if items are statements
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
	{name: "should_include", prefix: "The result includes: "},
	{name: "scorers"},
	{name: "evaluation_criteria"},
	{name: "must_include", prefix: "The result includes: "},
	{name: "must_mention", prefix: "The result mentions: "},
	{name: "should_mention", prefix: "The result mentions: "},
	{name: "must_match", kind: "regex"},
	{name: "should_match", kind: "regex"},
	{name: "must_not_match", kind: "regex", absent: true},
	{name: "should_not_match", kind: "regex", absent: true},
	{name: "must_contain", prefix: "The result contains: "},
	{name: "should_contain", prefix: "The result contains: "},
	{name: "expected_topics", prefix: "The result covers: "},
	{name: "focus", prefix: "The result covers: "},
	{name: "expected_sections", prefix: "The result has the section: "},
	{name: "expected_patterns", prefix: "The result matches the pattern: "},
	{name: "anti_expectations", absent: true},
	{name: "must_not", absent: true},
	{name: "must_not_include", absent: true},
	{name: "must_not_contain", prefix: "The result contains: ", absent: true},
	{name: "should_not_contain", prefix: "The result contains: ", absent: true},
	{name: "must_not_have", absent: true},
	{name: "must_not_do", absent: true},
	{name: "forbidden", absent: true},
	{name: "forbidden_behavior", absent: true},
	{name: "forbidden_behaviors", absent: true},
	{name: "fail", absent: true},
	{name: "should_not_include", absent: true},
	{name: "flags_to_avoid", absent: true},
	{name: "avoid_behaviors", absent: true},
	{name: "must_avoid", absent: true},
	{name: "should_avoid", absent: true},
	{name: "must_not_mention", prefix: "The result mentions: ", absent: true},
	{name: "should_not_mention", prefix: "The result mentions: ", absent: true},
	{name: "red_flags", absent: true},
	{name: "anti_patterns", absent: true},
	{name: "fail_if", absent: true},
	{name: "failure_conditions", absent: true},
	{name: "negative_assertions", absent: true},
	{name: "negative_expectations", absent: true},
}

// labelsOfItems are keys of items of statements that describe them to people.
var labelsOfItems = []string{"category", "severity", "priority", "note", "notes", "reason", "rationale", "why", "kind"}

// textKeys are the keys of the text of an item for a judge, the preferred one first.
var textKeys = []string{"text", "statement", "criterion", "assertion", "expectation", "pass_if", "description", "criteria", "check", "rubric", "question", "prompt"}

// valueKeys are the keys of the texts that a check looks for, see [valuesOf].
var valueKeys = []string{"value", "values", "pattern", "patterns", "needle", "substring", "text"}

// kinds are the types of checks that code decides. A check can have a type, or its values under this key.
var kinds = []string{
	"contains", "contains_all", "output_contains", "not_contains", "output_not_contains", "contains_any",
	"regex", "matches", "output_matches", "not_regex", "not_matches", "output_not_matches",
	"file_exists", "file_not_exists", "file_contains", "file_not_contains", "file_matches", "file_not_matches",
}

// kindOf returns the name of a type in [kinds]; other names are returned as they are.
func kindOf(name string) string { return strings.ReplaceAll(name, "-", "_") }

// typeAliases are other names of types.
var typeAliases = map[string]string{
	"regex_match": "regex", "regexp": "regex", "matches_regex": "regex", "not_regex_match": "not_regex", "regex_not_match": "not_regex",
	"includes": "contains", "string_contains": "contains", "text_contains": "contains", "contains_text": "contains",
	"excludes": "not_contains", "not_includes": "not_contains", "does_not_contain": "not_contains", "absent": "not_contains",
	"file_regex": "file_matches", "file_match": "file_matches", "file_regex_match": "file_matches",
}

// typeOf returns the type of a check as in [kinds]; other types are returned as they are. A check of a text whose
// target is a file is one of that file.
func typeOf(spec *yaml.Node) string {
	kind := kindOf(textIn(spec, "type"))
	if kind == "" && textIn(spec, "pattern") != "" {
		kind = "regex"
	}
	if alias := typeAliases[kind]; alias != "" {
		kind = alias
	}
	if fileOf(spec) == nil {
		return kind
	}
	if file := ofFiles[kind]; file != "" {
		return file
	}
	return kind
}

// ofFiles are the checks of files for those of texts.
var ofFiles = map[string]string{
	"contains": "file_contains", "not_contains": "file_not_contains", "regex": "file_matches", "matches": "file_matches",
	"not_regex": "file_not_matches", "not_matches": "file_not_matches",
}

// fileKeysOfItems are the keys of the file of a check.
var fileKeysOfItems = []string{"path", "file", "file_path", "filename"}

// fileOf returns the node with the file of a check: its path, or the file of its target; nil without one.
func fileOf(spec *yaml.Node) *yaml.Node {
	for _, n := range []*yaml.Node{spec, decode.Follow(decode.Lookup(spec, "target"))} {
		for _, key := range fileKeysOfItems {
			if file := decode.Follow(decode.Lookup(n, key)); decode.IsText(file) && file.Value != "" {
				return file
			}
		}
	}
	return nil
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
		c.addItems(&j, &checks, n, k)
	}
	if own := c.ownChecks(); own != nil {
		decided := c.checks(own, statementKey{})
		for _, check := range decided {
			checks.add(check)
		}
		if len(decided) == 0 {
			c.block(own, fmt.Sprintf("line %d: waza cannot decide the check %q", own.Line, text.Clip(dialect.Pairs(own)[0].Key.Value, 60)), "")
		}
	}
	expected, expectedKey := c.get("expected_output"), "expected_output"
	if expected == nil {
		expected, expectedKey = c.get("expected"), "expected"
	}
	if expected != nil && expected.Kind != yaml.ScalarNode {
		c.addItems(&j, &checks, expected, statementKey{name: expectedKey})
		expected = nil
	}
	if len(j.list.Content) == 0 && len(checks.list) == 0 && expected != nil && expected.Value != "" {
		// A case is first written without statements.
		if decode.IsText(expected) {
			j.add(expected, expectedPrefix+expected.Value, "expected_output", false)
		} else {
			c.block(expected, fmt.Sprintf("line %d: %s must be a text, got %s", expected.Line, expectedKey, decode.Describe(expected)), "")
		}
		expected = nil
	}
	c.addOthers(&j)
	if len(j.list.Content) > 0 {
		slices.SortStableFunc(j.list.Content, func(a, b *yaml.Node) int { // a file has them in two lists
			return cmp.Compare(len(dialect.TextOf(decode.Lookup(a, "absent"))), len(dialect.TextOf(decode.Lookup(b, "absent"))))
		})
		config := dialect.NewMap(c.node)
		config.Set("statements", j.list)
		if decode.IsText(expected) && expected.Value != "" {
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
	otherKey  = text.Pattern(`^(expected?|must|should|required?)_|_(criteria|assertions|expectations|requirements|behaviou?rs?|checks)$`)
	absentKey = text.Pattern(`^((must|should|do|does)_(not|never|avoid)|never|forbidden|avoid|disallowed|prohibited|banned|unexpected|unwanted)(_|$)|_to_avoid$`)
	// otherUses are keys with another meaning.
	otherUses = text.Pattern(`^(expected_output|expected_skills?|forbidden_skills?|expected_primary|should_trigger|should_not_trigger|required_tools|required_env)$`)
)

// addOthers lets the judge decide keys that no definition describes, by their texts. Without it, the case would pass
// whatever they say.
func (c *caseTranslator) addOthers(j *judged) {
	for _, p := range dialect.Pairs(c.node) {
		key, value := p.Key.Value, decode.Follow(p.Value)
		name := dialect.Snake(key)
		absent := absentKey().MatchString(name)
		if c.read[key] || !absent && !otherKey().MatchString(name) || otherUses().MatchString(name) || decode.IsNull(value) {
			continue
		}
		items := dialect.Items(value)
		if value.Kind == yaml.ScalarNode {
			items = []*yaml.Node{value}
		}
		if texts := textsOf(value); anyOfKey().MatchString(name) && len(texts.Content) > 0 && len(texts.Content) == len(items) {
			items = []*yaml.Node{oneOfTexts(texts)}
		}
		for _, item := range items {
			if texts := textsOf(item); item.Kind == yaml.SequenceNode && len(texts.Content) > 0 {
				item = oneOfTexts(texts)
			}
			if item.Kind == yaml.ScalarNode {
				item = dialect.Scalar(item, dialect.TextOf(item))
			}
			if absent && !isBool(item) { // without the key, which would be a second negation
				c.addStatement(j, item, key, statementKey{name: key, absent: true})
				continue
			}
			c.addStatement(j, item, "", statementKey{name: key, prefix: fmt.Sprintf("The result fits %q: ", key)})
		}
		if len(items) == 0 { // warnUnknown reports it
			continue
		}
		c.read[key] = true
		if !c.unknown[key] {
			c.unknown[key] = true
			c.Reportf(c.Source, p.Key, decode.Warning, decode.CodeUnknownKey,
				"key %q is unknown in skill evals; a judge decides whether the result fits it", text.Clip(key, 60))
		}
	}
}

func isBool(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && (n.Value == "true" || n.Value == "false")
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

// addItems adds the items of a list of statements: a list, a map of them by their labels, or a single one.
func (c *caseTranslator) addItems(j *judged, checks *checkList, n *yaml.Node, k statementKey) {
	if n.Kind == yaml.SequenceNode {
		for _, item := range dialect.Items(n) {
			c.addItem(j, checks, item, "", k)
		}
		return
	}
	if n.Kind != yaml.MappingNode || isItem(n) {
		c.addItem(j, checks, n, "", k)
		return
	}
	for _, p := range dialect.Pairs(n) {
		of, isKey := k, false
		if i := slices.IndexFunc(statementKeys, func(known statementKey) bool { return known.name == p.Key.Value }); i >= 0 {
			of, isKey = statementKeys[i], true
			of.absent, of.path = of.absent != k.absent, k.path
		}
		switch v := p.Value; {
		case v.Kind == yaml.SequenceNode:
			if !isKey && hasFragments(v) {
				of.prefix += k.path + p.Key.Value + ": "
			}
			c.addItems(j, checks, v, of)
		case v.Kind == yaml.MappingNode && !isItem(v):
			if !isKey {
				of.path += p.Key.Value + ", "
			}
			c.addItems(j, checks, v, of)
		case !isKey && v.Kind == yaml.ScalarNode && !decode.IsNull(v) && (!decode.IsText(v) || isFragment(v)):
			// The key is a part of the statement: {"format": "html", "has_tests": true}.
			c.addItem(j, checks, dialect.Scalar(v, k.path+p.Key.Value+": "+v.Value), "", of)
		case v.Kind == yaml.MappingNode || decode.IsText(v) || decode.IsNull(v):
			c.addItem(j, checks, v, p.Key.Value, of)
		default:
			c.block(v, fmt.Sprintf("line %d: %s has the value %s, which waza cannot check", v.Line, text.Clip(p.Key.Value, 60), decode.Describe(v)), "")
		}
	}
}

// isFragment reports whether a text says too little to be a statement.
func isFragment(n *yaml.Node) bool { return decode.IsText(n) && len(strings.Fields(n.Value)) < 3 }

// hasFragments reports whether no item of a list says enough to be a statement.
func hasFragments(list *yaml.Node) bool {
	return !slices.ContainsFunc(dialect.Items(list), func(n *yaml.Node) bool { return !isFragment(n) })
}

// isItem reports whether a map is one statement or check, not a map of them.
func isItem(n *yaml.Node) bool {
	return slices.ContainsFunc(dialect.Pairs(n), func(p decode.Pair) bool {
		key := p.Key.Value
		return (slices.Contains(textKeys, key) || key == "name") && decode.IsText(p.Value) ||
			slices.Contains([]string{"check", "type", "groups"}, key) || slices.Contains(kinds, kindOf(key))
	}) || len(n.Content) == 0
}

// addItem adds one item: checks that code decides, or else a statement.
func (c *caseTranslator) addItem(j *judged, checks *checkList, item *yaml.Node, label string, k statementKey) {
	if c.isLeftOut(item) {
		return
	}
	item = withKind(item, k.kind)
	if texts := textsOf(item); item.Kind == yaml.SequenceNode && len(texts.Content) > 0 {
		item = oneOfTexts(texts) // ["a", "b"] among texts means one of them
	}
	decided := c.checks(item, k)
	for _, check := range decided {
		checks.add(check)
	}
	if item.Kind == yaml.MappingNode {
		c.warnUnknownOfItem(item)
	}
	if len(decided) == 0 || len(undecidedKeys(item)) > 0 {
		c.addStatement(j, item, label, k)
	}
}

// withKind returns an item whose type is given by its key: a text is the value of the check. Others are returned as
// they are.
func withKind(item *yaml.Node, kind string) *yaml.Node {
	switch {
	case kind == "":
		return item
	case decode.IsText(item):
		m := dialect.NewMap(item)
		m.Set("type", dialect.Scalar(item, kind))
		m.Set("pattern", item)
		return m.Node
	case item.Kind == yaml.MappingNode && decode.Lookup(item, "type") == nil:
		m := dialect.NewMap(item)
		m.Set("type", dialect.Scalar(item, kind))
		m.Node.Content = append(m.Node.Content, item.Content...)
		return m.Node
	}
	return item
}

// anyOfKey matches keys of which one item is enough.
var anyOfKey = text.Pattern(`_(any|either|one)(_of)?$`)

// oneOfTexts returns the words for one of several texts.
func oneOfTexts(list *yaml.Node) *yaml.Node {
	var texts []string
	for _, n := range dialect.Items(list) {
		texts = append(texts, n.Value)
	}
	return dialect.Scalar(list, strings.Join(texts, " or "))
}

// leftOutKeys are keys of items that their authors do not check any more.
var leftOutKeys = []string{"retired", "skip", "skipped", "disabled", "deprecated"}

// isLeftOut reports whether the author of an item left it out, and warns.
func (c *caseTranslator) isLeftOut(item *yaml.Node) bool {
	for _, key := range leftOutKeys {
		n := decode.Follow(decode.Lookup(item, key))
		if n == nil || decode.IsNull(n) || n.Kind != yaml.ScalarNode || n.Value == "" || n.Value == "false" {
			continue
		}
		c.Reportf(c.Source, n, decode.Warning, decode.CodeNoEffect, "this check is left out, because its key %s says so", key)
		return true
	}
	return false
}

// warnUnknownOfItem reports keys of an item that have no effect.
func (c *caseTranslator) warnUnknownOfItem(item *yaml.Node) {
	known := slices.Concat(labelsOfItems, textKeys, valueKeys, optionKeys, leftOutKeys, fileKeysOfItems,
		[]string{"name", "id", "dimension", "cmd", "type", "groups", "forbidden", "points", "target"})
	for _, p := range dialect.Pairs(item) {
		if slices.Contains(kinds, kindOf(p.Key.Value)) {
			known = append(known, p.Key.Value)
		}
	}
	c.translator.warnUnknown(item, known)
}

// checkOf returns the map of an item that has a check of its own; nil for others.
func checkOf(item *yaml.Node) *yaml.Node {
	if n := decode.Follow(decode.Lookup(item, "check")); n != nil && n.Kind == yaml.MappingNode {
		return n
	}
	return nil
}

// undecidedKeys returns the keys of an item's own check that code does not read.
func undecidedKeys(item *yaml.Node) (keys []string) {
	known := slices.Concat(labelsOfItems, valueKeys, optionKeys, fileKeysOfItems, []string{"name", "id", "type", "description", "groups", "forbidden", "points", "target"})
	for _, p := range dialect.Pairs(checkOf(item)) {
		if key := p.Key.Value; !slices.Contains(known, key) && !slices.Contains(kinds, kindOf(key)) {
			keys = append(keys, key)
		}
	}
	return keys
}

// details returns the options of a check that a judge decides, after its text; empty if the text says all.
func details(item *yaml.Node) string {
	var options any
	if spec := decode.Follow(decode.Lookup(item, "check")); spec != nil && spec.Kind != yaml.ScalarNode {
		if spec.Decode(&options) != nil || len(spec.Content) == 0 {
			return ""
		}
	} else {
		var values []string
		for _, v := range dialect.Items(valuesOf(item)) {
			if !slices.ContainsFunc(textKeys, func(key string) bool { return textIn(item, key) == v.Value }) {
				values = append(values, v.Value)
			}
		}
		if len(values) == 0 {
			return ""
		}
		options = map[string]any{firstOf(textIn(item, "type"), "values"): values}
	}
	encoded, err := json.Marshal(options)
	if err != nil {
		return ""
	}
	return " (check: " + string(encoded) + ")"
}

// asksJudge matches types of checks whose value is a statement for a judge.
var asksJudge = text.Pattern(`(?i)llm|judge|rubric|semantic`)

// addStatement adds one item for the judge. An item without a readable text blocks the case, because
// it must never count as passed.
func (c *caseTranslator) addStatement(j *judged, item *yaml.Node, label string, k statementKey) {
	statement := dialect.TextOf(item)
	kind := dialect.TextOf(decode.Lookup(item, "type"))
	if item.Kind == yaml.MappingNode {
		for _, key := range textKeys {
			if statement = textIn(item, key); statement != "" {
				break
			}
		}
		label = firstOf(label, dialect.TextOf(decode.Lookup(item, "id")), textIn(item, "name"), textIn(item, "dimension"))
		if cmd := decode.Lookup(item, "cmd"); cmd != nil && !c.unknown["cmd"] {
			c.unknown["cmd"] = true
			c.Reportf(c.Source, cmd, decode.Warning, decode.CodeNoEffect,
				"waza does not run cmd, which no definition describes; a judge decides by the text of the check")
		}
		if statement == "" && asksJudge().MatchString(kind) {
			statement = textIn(item, "value")
		} else if firstOf(statement, textIn(item, "name")) != "" {
			statement = firstOf(statement, textIn(item, "name")) + details(item)
		}
	}
	if label == statement {
		label = ""
	}
	if item.Kind == yaml.ScalarNode && !decode.IsText(item) && !decode.IsNull(item) && k.prefix == "" {
		c.block(item, fmt.Sprintf("line %d: %s has the item %s", item.Line, k.name, decode.Describe(item)), "")
		return
	}
	if strings.TrimSpace(statement) == "" {
		if kind == "" && item.Kind == yaml.ScalarNode {
			return // an empty text states nothing
		}
		reason := fmt.Sprintf("line %d: %s has a check that waza does not know", item.Line, k.name)
		if kind != "" {
			reason = fmt.Sprintf("line %d: waza cannot decide this check of the type %q", item.Line, text.Clip(kind, 60))
		}
		c.block(item, reason, ", and it has no text for a judge")
		return
	}
	j.add(item, k.prefix+statement, label, k.absent)
}

// block blocks the case because of a check that nothing can decide. The detail is only in the finding.
func (c *caseTranslator) block(at *yaml.Node, reason, detail string) {
	c.blocked = append(c.blocked, reason)
	c.Reportf(c.Source, at, decode.Warning, decode.CodeUnknownOption, "%s%s; trials of this case end in an error", reason, detail)
}

func textIn(n *yaml.Node, key string) string {
	if v := decode.Follow(decode.Lookup(n, key)); decode.IsText(v) {
		return v.Value
	}
	return ""
}

// ownChecks returns a map with the checks that a case has beside its lists, under the names of their types;
// nil without one.
func (c *caseTranslator) ownChecks() *yaml.Node {
	own := dialect.NewMap(c.node)
	for _, p := range dialect.Pairs(c.node) {
		kind := kindOf(p.Key.Value)
		if !slices.Contains(kinds, kind) {
			continue
		}
		c.read[p.Key.Value] = true
		if !decode.IsNull(p.Value) && (p.Value.Kind == yaml.ScalarNode || len(p.Value.Content) > 0) {
			own.Set(kind, p.Value)
		}
	}
	if own.Len() == 0 {
		return nil
	}
	return own.Node
}

// A typedCheck is a check that code may decide: its type, and the texts that it looks for.
type typedCheck struct {
	kind   string
	values *yaml.Node // a list with at least one item, because a check without a value would always pass
}

// typedChecks returns the checks of a map: that of its type, and those under the names of types.
func typedChecks(spec *yaml.Node) (list []typedCheck) {
	kind := typeOf(spec)
	values := valuesOf(spec)
	if kind == "file_exists" || kind == "file_not_exists" {
		values = pathsOf(spec, values)
	}
	if len(values.Content) > 0 && slices.Contains(kinds, kind) {
		list = append(list, typedCheck{kind, values})
	}
	for _, p := range dialect.Pairs(spec) {
		if values := textsOf(p.Value); slices.Contains(kinds, kindOf(p.Key.Value)) && len(values.Content) > 0 {
			list = append(list, typedCheck{kindOf(p.Key.Value), values})
		}
	}
	return list
}

// checks returns the graders for an item that code can decide. The final message is the subject of all
// checks but those of files.
func (c *caseTranslator) checks(item *yaml.Node, k statementKey) (graders []*yaml.Node) {
	if item.Kind != yaml.MappingNode {
		return nil
	}
	spec := item
	if own := checkOf(item); own != nil {
		spec = own
	}
	name := firstOf(textIn(item, "text"), textIn(item, "description"), dialect.TextOf(decode.Lookup(item, "id")), textIn(item, "name"))
	if hasGroups(item, spec) && !k.absent {
		if g := groups(item, spec, firstOf(name, "groups")); g != nil {
			return []*yaml.Node{g}
		}
		return nil
	}
	for _, typed := range typedChecks(spec) {
		g := c.grader(item, spec, typed, name, k.absent)
		if g == nil {
			return nil
		}
		graders = append(graders, g)
	}
	return graders
}

// grader returns the grader of a check, or nil if code cannot decide it.
func (c *caseTranslator) grader(item, spec *yaml.Node, typed typedCheck, name string, absent bool) *yaml.Node {
	kind, values := typed.kind, typed.values
	config := dialect.NewMap(spec)
	grader := "text"
	setPatterns := func(absent bool, patterns *yaml.Node) bool {
		flags, ok := flagsOf(spec)
		if !ok {
			return false
		}
		config.Set(option(absent, "regex_not_match", "regex_match"), withFlags(patterns, flags))
		config.Set("syntax", dialect.Scalar(spec, "javascript"))
		return true
	}
	setTexts := func(absent bool) {
		if ignoresCase(spec) {
			config.Set(option(absent, "regex_not_match", "regex_match"), withFlags(quoted(values), "i"))
			config.Set("syntax", dialect.Scalar(spec, "javascript"))
			return
		}
		config.Set(option(absent, "not_contains_cs", "contains_cs"), values)
		c.hintPattern(kind, values)
	}
	switch kind {
	case "contains", "contains_all", "output_contains":
		setTexts(absent)
	case "not_contains", "output_not_contains":
		setTexts(!absent)
	case "contains_any":
		patterns := oneOf(spec, values)
		if ignoresCase(spec) {
			patterns = withFlags(patterns, "i")
			config.Set("syntax", dialect.Scalar(spec, "javascript"))
		}
		config.Set(option(absent, "regex_not_match", "regex_match"), patterns)
	case "regex", "matches", "output_matches":
		if !setPatterns(absent, values) {
			return nil
		}
	case "not_regex", "not_matches", "output_not_matches":
		if !setPatterns(!absent, values) {
			return nil
		}
	case "file_exists":
		grader = "file"
		config.Set(option(absent, "must_not_exist", "must_exist"), values)
	case "file_not_exists":
		grader = "file"
		config.Set(option(absent, "must_exist", "must_not_exist"), values)
	case "file_contains", "file_not_contains", "file_matches", "file_not_matches":
		file := fileOf(spec)
		if file == nil {
			return nil
		}
		grader = "file"
		m := dialect.NewMap(spec)
		m.Set("path", dialect.Scalar(file, file.Value))
		patterns := values
		if kind == "file_contains" || kind == "file_not_contains" {
			patterns = quoted(values)
		}
		flags, ok := flagsOf(spec)
		if !ok {
			return nil
		}
		m.Set(option(absent != strings.Contains(kind, "_not_"), "must_not_match", "must_match"), withFlags(patterns, flags))
		if strings.HasSuffix(kind, "matches") {
			config.Set("syntax", dialect.Scalar(spec, "javascript"))
		}
		config.Set("content_patterns", dialect.List(spec, m.Node))
	default:
		return nil
	}
	if name == "" {
		name = text.Clip(kind+" "+dialect.Items(values)[0].Value, 60)
	}
	return named(item, name, grader, config)
}

// optionKeys are the keys that change how a check compares texts.
var optionKeys = []string{"flags", "case_sensitive", "case_insensitive", "ignore_case"}

// ignoresCase reports whether a check finds its texts in any letter case.
func ignoresCase(spec *yaml.Node) bool {
	is := func(key, value string) bool {
		return strings.EqualFold(dialect.TextOf(decode.Lookup(spec, key)), value)
	}
	return is("case_sensitive", "false") || is("case_insensitive", "true") || is("ignore_case", "true") ||
		strings.Contains(dialect.TextOf(decode.Lookup(spec, "flags")), "i")
}

// flagsOf returns the flags that patterns of a check have at their start. ok is false if one of its flags
// could change the result and has no such form.
func flagsOf(spec *yaml.Node) (flags string, ok bool) {
	for _, flag := range dialect.TextOf(decode.Lookup(spec, "flags")) {
		switch flag {
		case 'm', 's':
			flags += string(flag)
		case 'i', 'g', 'u': // i follows below; g and u do not change whether a pattern matches
		default:
			return "", false
		}
	}
	if ignoresCase(spec) {
		flags = "i" + flags
	}
	return flags, true
}

// withFlags returns patterns with flags at their start.
func withFlags(patterns *yaml.Node, flags string) *yaml.Node {
	if flags == "" {
		return patterns
	}
	list := dialect.List(patterns)
	for _, p := range dialect.Items(patterns) {
		list.Content = append(list.Content, dialect.Scalar(p, "(?"+flags+")"+p.Value))
	}
	return list
}

// quoted returns patterns that match texts.
func quoted(values *yaml.Node) *yaml.Node {
	list := dialect.List(values)
	for _, v := range dialect.Items(values) {
		list.Content = append(list.Content, dialect.Scalar(v, regexp.QuoteMeta(v.Value)))
	}
	return list
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
	for _, key := range valueKeys {
		n := decode.Follow(decode.Lookup(spec, key))
		if n == nil || key == "text" && textIn(spec, "type") == "" {
			continue
		}
		return textsOf(n)
	}
	return dialect.List(spec)
}

// textsOf returns the scalars of a list, or a single one, that are not empty.
func textsOf(n *yaml.Node) *yaml.Node {
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

// pathsOf returns the paths of a check of files.
func pathsOf(spec, values *yaml.Node) *yaml.Node {
	if n := fileOf(spec); n != nil {
		return dialect.List(n, dialect.Scalar(n, n.Value))
	}
	return values
}

// oneOf returns a list with one pattern that matches any of the values.
func oneOf(at, values *yaml.Node) *yaml.Node {
	var parts []string
	for _, v := range dialect.Items(values) {
		parts = append(parts, "(?:"+regexp.QuoteMeta(v.Value)+")")
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
