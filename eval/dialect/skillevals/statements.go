package skillevals

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/pattern"
	"waza/eval/text"
)

// A statementKey is a key of a case whose value is a statement or a list of statements.
type statementKey struct {
	name   string
	prefix string // of items that are fragments instead of sentences
	path   string // the keys of maps above the items, with ", " after each
	kind   string // the type of items without a type that are patterns; empty if items are statements
	label  string // of items without one
	sense
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
	{name: "must_not_match", kind: "regex", sense: lacks},
	{name: "should_not_match", kind: "regex", sense: lacks},
	{name: "must_contain", prefix: "The result contains: "},
	{name: "should_contain", prefix: "The result contains: "},
	{name: "expected_topics", prefix: "The result covers: "},
	{name: "focus", prefix: "The result covers: "},
	{name: "expected_sections", prefix: "The result has the section: "},
	{name: "expected_patterns", prefix: "The result matches the pattern: "},
	{name: "anti_expectations", sense: forbids},
	{name: "must_not", sense: forbids},
	{name: "must_not_include", sense: lacks},
	{name: "must_not_contain", prefix: "The result contains: ", sense: lacks},
	{name: "should_not_contain", prefix: "The result contains: ", sense: lacks},
	{name: "must_not_have", sense: lacks},
	{name: "must_not_do", sense: forbids},
	{name: "forbidden", sense: forbids},
	{name: "forbidden_behavior", sense: forbids},
	{name: "forbidden_behaviors", sense: forbids},
	{name: "fail", sense: fails},
	{name: "should_not_include", sense: lacks},
	{name: "flags_to_avoid", sense: lacks},
	{name: "avoid_behaviors", sense: forbids},
	{name: "must_avoid", sense: forbids},
	{name: "should_avoid", sense: forbids},
	{name: "must_not_mention", prefix: "The result mentions: ", sense: lacks},
	{name: "should_not_mention", prefix: "The result mentions: ", sense: lacks},
	{name: "red_flags", sense: lacks},
	{name: "anti_patterns", sense: lacks},
	{name: "fail_if", sense: fails},
	{name: "failure_conditions", sense: fails},
	{name: "negative_assertions", sense: forbids},
	{name: "negative_expectations", sense: forbids},
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

// kindOf returns the name of a type in [kinds]; other names are returned in snake_case.
func kindOf(name string) string { return dialect.Snake(name) }

// typeAliases are other names of types.
var typeAliases = map[string]string{
	"regex_match": "regex", "regexp": "regex", "matches_regex": "regex", "match": "regex",
	"not_regex_match": "not_regex", "regex_not_match": "not_regex", "not_regexp": "not_regex", "not_match": "not_regex",
	"includes": "contains", "include": "contains", "contain": "contains", "string_contains": "contains", "text_contains": "contains", "contains_text": "contains",
	"excludes": "not_contains", "not_includes": "not_contains", "not_include": "not_contains", "not_contain": "not_contains", "absent": "not_contains",
	"file_regex": "file_matches", "file_match": "file_matches", "file_regex_match": "file_matches",
}

// modal matches the verb before that of a type, and negative a verb that negates: must_not_contain means not_contains.
var (
	modal    = text.Pattern(`^(?:must|should|does|do)_`)
	negative = text.Pattern(`^(?:not_|never_|avoid_)+`)
)

// typeOf returns the type of a check as in [kinds]; other types are returned as they are. A check of a text whose
// target is a file is one of that file.
func typeOf(spec *yaml.Node) string {
	kind := kindOf(textIn(spec, "type"))
	if kind == "" && textIn(spec, "pattern") != "" {
		kind = "regex"
	}
	plain := negative().ReplaceAllString(modal().ReplaceAllString(kind, ""), "not_")
	if alias := typeAliases[plain]; alias != "" {
		plain = alias
	}
	if !slices.Contains(kinds, plain) {
		return kind
	}
	return ofSubject(plain, spec)
}

// ofFiles are the checks of files for those of texts.
var ofFiles = map[string]string{
	"contains": "file_contains", "not_contains": "file_not_contains", "regex": "file_matches", "matches": "file_matches",
	"not_regex": "file_not_matches", "not_matches": "file_not_matches", "contains_all": "file_contains", "contains_any": "file_contains_any",
}

// ofSubject returns a type in [kinds] for the subject of a check: the final message, or a file. It is empty if waza has
// no such check of the subject.
func ofSubject(kind string, spec *yaml.Node) string {
	if target := textIn(spec, "target"); target != "" && !isMessage(target) && fileOf(spec) == nil {
		return ""
	}
	if fileOf(spec) == nil || strings.HasPrefix(kind, "file_") {
		return kind
	}
	return ofFiles[kind]
}

// isMessage reports whether the target of a check is the final message.
func isMessage(target string) bool {
	return slices.Contains([]string{"output", "response", "message", "final_message", "final_response", "answer", "result", "text", "stdout", "transcript"}, dialect.Snake(target))
}

// fileKeysOfItems are the keys of the file of a check.
var fileKeysOfItems = []string{"path", "file", "file_path", "filename"}

// fileOf returns the node with the file of a check: its path, or the file of its target; nil without one.
func fileOf(spec *yaml.Node) *yaml.Node {
	if target := decode.Follow(decode.Lookup(spec, "target")); decode.IsText(target) && !isMessage(target.Value) && pathLike().MatchString(target.Value) {
		return target
	}
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

// hasChecks reports whether a trigger test is also a case with checks.
func (c *caseTranslator) hasChecks() bool {
	if c.hasStatements() || c.ownChecks() != nil {
		return true
	}
	return slices.ContainsFunc(dialect.Pairs(c.node), func(p decode.Pair) bool {
		key := p.Key.Value
		_, ok := c.otherOf(p)
		return ok || (key == "expected_output" || key == "expected") && len(p.Value.Content) > 0
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
	before := len(c.blocked)
	if own := c.ownChecks(); own != nil {
		decided := c.checks(own, statementKey{})
		for _, check := range decided {
			checks.add(check)
		}
		if len(decided) == 0 && len(c.blocked) == before {
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
	c.addOthers(&j, &checks)
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

// Names of keys without a definition that say how a result should be. See [senseOf] for those that say how it should
// not be.
var (
	otherKey = text.Pattern(`^(expect(ed)?|must|should|required?)_|_(criteria|assertions|expectations|requirements|behaviou?rs?|checks)$`)
	// otherUses are keys with another meaning.
	otherUses = text.Pattern(`^(expected_output|expect(ed)?_skills?|forbidden_skills?|expected_primary|expect(ed)?_trigger|should_(not_)?(trigger|activate)|required_tools|required_env)$`)
)

// otherOf returns a key of a case that no definition describes and that says how the result should be. ok is false for
// others.
func (c *caseTranslator) otherOf(p decode.Pair) (k statementKey, ok bool) {
	name := dialect.Snake(p.Key.Value)
	if c.read[p.Key.Value] || otherUses().MatchString(name) || decode.IsNull(p.Value) {
		return k, false
	}
	if k, ok = (statementKey{}).below(p.Key.Value); !ok || strings.HasPrefix(name, "not_") && k.sense == together {
		k = statementKey{name: p.Key.Value, prefix: fits(p.Key.Value)}
		return k, otherKey().MatchString(name)
	}
	return k, true
}

// addOthers lets the judge decide keys that no definition describes, by their texts. Without it, the case would pass
// whatever they say.
func (c *caseTranslator) addOthers(j *judged, checks *checkList) {
	for _, p := range dialect.Pairs(c.node) {
		k, ok := c.otherOf(p)
		if !ok {
			continue
		}
		key, value := p.Key.Value, p.Value
		items := dialect.Items(value)
		if value.Kind == yaml.ScalarNode {
			items = []*yaml.Node{value}
		}
		switch {
		case k.sense != plain:
			c.addItems(j, checks, value, k)
		case len(items) == 0: // warnUnknown reports it
			continue
		default:
			if texts := textsOf(value); anyOfKey().MatchString(dialect.Snake(key)) && len(texts.Content) > 0 && len(texts.Content) == len(items) {
				items = []*yaml.Node{oneOfTexts(texts)}
			}
			for _, item := range items {
				if texts := textsOf(item); item.Kind == yaml.SequenceNode && len(texts.Content) > 0 {
					item = oneOfTexts(texts)
				}
				if item.Kind == yaml.ScalarNode {
					item = dialect.Scalar(item, dialect.TextOf(item))
				}
				c.addStatement(j, item, "", k)
			}
		}
		c.read[key] = true
		if !c.unknown[key] {
			c.unknown[key] = true
			c.Reportf(c.Source, p.Key, decode.Warning, decode.CodeUnknownKey,
				"key %q is unknown in skill evals; a judge decides whether the result fits it", text.Clip(key, 60))
		}
	}
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
	switch {
	case !c.count(n):
	case k.sense == together:
		c.addTogether(j, n, k)
	case n.Kind == yaml.SequenceNode:
		if texts := textsOf(n); anyOfKey().MatchString(dialect.Snake(k.name)) && len(texts.Content) > 0 && len(texts.Content) == len(n.Content) {
			c.addItem(j, checks, texts, k.label, k)
			return
		}
		for _, item := range dialect.Items(n) {
			c.addItem(j, checks, item, k.label, k)
		}
	case n.Kind != yaml.MappingNode || isItem(n):
		c.addItem(j, checks, n, k.label, k)
	default:
		for _, p := range dialect.Pairs(n) {
			c.addPair(j, checks, p, k)
		}
	}
}

// addPair adds a value of a map of statements.
func (c *caseTranslator) addPair(j *judged, checks *checkList, p decode.Pair, k statementKey) {
	v := p.Value
	of, isKey := k.below(p.Key.Value)
	switch {
	case isKey && of.sense == unclear:
		c.block(v, fmt.Sprintf("line %d: %s below %s can mean both that the result should be so and that it should not", v.Line, text.Clip(p.Key.Value, 60), k.name), "")
	case isKey && (of.sense == together || v.Kind != yaml.ScalarNode && (v.Kind == yaml.SequenceNode || !isItem(v))):
		c.addItems(j, checks, v, of)
	case anyOfKey().MatchString(dialect.Snake(p.Key.Value)) && v.Kind == yaml.SequenceNode:
		c.addOneOf(j, checks, v, k)
	case v.Kind == yaml.SequenceNode:
		if hasFragments(v) && !isAllOf(p.Key.Value) {
			of.prefix += k.path + p.Key.Value + ": "
		}
		c.addItems(j, checks, v, of)
	case v.Kind == yaml.MappingNode && !isItem(v):
		of.path += p.Key.Value + ", "
		c.addItems(j, checks, v, of)
	case !isKey && k.kind == "" && v.Kind == yaml.ScalarNode && !decode.IsNull(v) && (!decode.IsText(v) || isFragment(v)):
		// The key is a part of the statement: {"format": "html", "has_tests": true}.
		c.addItem(j, checks, dialect.Scalar(v, k.path+p.Key.Value+": "+v.Value), "", of)
	case v.Kind == yaml.MappingNode || decode.IsText(v) || decode.IsNull(v) || isKey && of.label != "":
		c.addItem(j, checks, v, p.Key.Value, of)
	default:
		c.block(v, fmt.Sprintf("line %d: %s has the value %s, which waza cannot check", v.Line, text.Clip(p.Key.Value, 60), decode.Describe(v)), "")
	}
}

// addOneOf adds a list of which one item is enough.
func (c *caseTranslator) addOneOf(j *judged, checks *checkList, list *yaml.Node, k statementKey) {
	if texts := textsOf(list); len(texts.Content) == len(list.Content) && len(texts.Content) > 0 {
		c.addItem(j, checks, texts, "", k)
		return
	}
	c.block(list, fmt.Sprintf("line %d: waza can decide one of several only for texts", list.Line), "")
}

// isAllOf reports whether a key only says that all items of its list count.
func isAllOf(key string) bool { return slices.Contains([]string{"all", "all_of"}, dialect.Snake(key)) }

// addTogether lets the judge read keys and values together, because neither says alone what the result should be.
func (c *caseTranslator) addTogether(j *judged, n *yaml.Node, k statementKey) {
	items := dialect.Items(n)
	if n.Kind != yaml.SequenceNode {
		items = []*yaml.Node{n}
	}
	for _, item := range items {
		switch shown, err := asJSON(item); {
		case decode.IsNull(item) || len(item.Content) == 0 && item.Value == "":
		case item.Kind == yaml.ScalarNode:
			j.add(item, k.prefix+item.Value, "", false)
		case err != nil:
			c.block(item, fmt.Sprintf("line %d: waza cannot read %s: %v", item.Line, k.name, err), "")
		default:
			j.add(item, k.prefix+shown, "", false)
		}
	}
}

func asJSON(n *yaml.Node) (string, error) {
	var value any
	if err := n.Decode(&value); err != nil {
		return "", err
	}
	data, err := json.Marshal(value)
	return string(data), err
}

// maxItems limits the statements of a file, because aliases of YAML can expand a short text without end.
const maxItems = 100_000

// count counts an item, and reports whether the file has not too many of them.
func (tr *translator) count(n *yaml.Node) bool {
	if tr.items++; tr.items == maxItems {
		tr.Reportf(tr.Source, n, decode.Error, decode.CodeInvalidValue, "the file has more than %d statements; remove some of them, or aliases that repeat them", maxItems)
	}
	return tr.items < maxItems
}

// isFragment reports whether a text says too little to be a statement.
func isFragment(n *yaml.Node) bool { return decode.IsText(n) && len(strings.Fields(n.Value)) < 3 }

// hasFragments reports whether no item of a list says enough to be a statement.
func hasFragments(list *yaml.Node) bool {
	return !slices.ContainsFunc(dialect.Items(list), func(n *yaml.Node) bool { return !isFragment(n) })
}

// isItem reports whether a map is one statement or check, not a map of them.
func isItem(n *yaml.Node) bool {
	pairs := dialect.Pairs(n)
	return len(pairs) == 0 || slices.ContainsFunc(pairs, func(p decode.Pair) bool {
		key := p.Key.Value
		return slices.Contains(textKeys, key) && decode.IsText(p.Value) || slices.Contains([]string{"check", "groups"}, key) || slices.Contains(kinds, kindOf(key))
	}) || slices.Contains(kinds, typeOf(n)) || hasAny(n, []string{"name", "type"}) && !slices.ContainsFunc(pairs, func(p decode.Pair) bool {
		// Both keys can also describe a thing, such as {"type": "A4", "format": "PDF"}.
		return !slices.Contains(itemKeys(), p.Key.Value) && !isSign(p) && !isPart(n, p)
	})
}

// itemKeys are the keys of an item besides those with the names of types.
var itemKeys = sync.OnceValue(func() []string {
	return slices.Concat(labelsOfItems, textKeys, valueKeys, optionKeys, leftOutKeys, enabledKeys, fileKeysOfItems,
		[]string{"name", "id", "dimension", "cmd", "type", "groups", "forbidden", "points", "target"})
})

// isPart reports whether a key of an item has statements of its own. The key forbidden of a check with groups is a
// part of that check.
func isPart(item *yaml.Node, p decode.Pair) bool {
	key := p.Key.Value
	switch k, ok := (statementKey{}).below(key); {
	case decode.IsNull(p.Value) || isSign(p) || slices.Contains(kinds, kindOf(key)) || p.Value.Kind == yaml.ScalarNode && k.sense == plain:
		return false
	case key == "forbidden":
		return !hasAny(item, []string{"id", "points", "groups"})
	case slices.Contains(textKeys, key):
		return p.Value.Kind == yaml.SequenceNode && ok
	default:
		return ok
	}
}

// addParts adds the statements that an item has in keys of its own. It returns the rest of the item; nil if that states
// nothing.
func (c *caseTranslator) addParts(j *judged, checks *checkList, item *yaml.Node, k statementKey) *yaml.Node {
	rest := dialect.NewMap(item)
	says := false
	for _, p := range dialect.Pairs(item) {
		if isPart(item, p) {
			c.addPair(j, checks, p, k)
			continue
		}
		rest.Node.Content = append(rest.Node.Content, p.Key, p.Value)
		key := p.Key.Value
		says = says || slices.Contains(kinds, kindOf(key)) || slices.Contains(slices.Concat(textKeys, valueKeys, []string{"type", "cmd", "groups", "forbidden"}), key)
	}
	switch {
	case len(rest.Node.Content) == len(item.Content):
		return item
	case says:
		return rest.Node
	}
	c.warnUnknownOfItem(rest.Node)
	return nil
}

// addItem adds one item: checks that code decides, or else a statement.
func (c *caseTranslator) addItem(j *judged, checks *checkList, item *yaml.Node, label string, k statementKey) {
	if !c.count(item) || c.isLeftOut(item) {
		return
	}
	if item.Kind == yaml.MappingNode {
		if item = c.addParts(j, checks, item, k); item == nil {
			return
		}
	}
	if texts := textsOf(item); item.Kind == yaml.SequenceNode && len(texts.Content) > 0 { // among texts, it means one of them
		if len(texts.Content) < len(item.Content) {
			c.block(item, fmt.Sprintf("line %d: waza can decide one of several only for texts", item.Line), "")
			return
		}
		if item = oneOfTexts(texts); k.kind != "" {
			one, ok := oneOfPatterns(texts)
			if !ok {
				c.block(item, fmt.Sprintf("line %d: the patterns of which one is enough have different flags", item.Line), "")
				return
			}
			item = one
		}
	}
	item = withKind(item, k.kind, label)
	before := len(c.blocked)
	k, item = c.signed(item, k)
	if len(c.blocked) > before {
		return
	}
	decided := c.checks(item, k)
	for _, check := range decided {
		checks.add(check)
	}
	if item.Kind == yaml.MappingNode {
		c.warnUnknownOfItem(item)
	}
	if len(c.blocked) == before && (len(decided) == 0 || len(undecidedKeys(item)) > 0) {
		c.addStatement(j, item, label, k)
	}
}

// signed returns the key of an item for which the type or a flag of the item can change the sense.
func (c *caseTranslator) signed(item *yaml.Node, k statementKey) (statementKey, *yaml.Node) {
	if item.Kind != yaml.MappingNode {
		return k, item
	}
	spec := cmp.Or(checkOf(item), item)
	kind := typeOf(spec)
	if of, ok := (statementKey{path: k.path}).below(kind); ok && of.sense != plain && !slices.Contains(kinds, kind) {
		switch {
		case k.sense == fails:
			c.block(item, fmt.Sprintf("line %d: the type %q below %s can mean both that the result should be so and that it should not", item.Line, text.Clip(kind, 60), k.name), "")
		case of.sense == lacks: // its value can also be a sentence
			of.sense = forbids
			k = of
		default:
			k = of
		}
	}
	flag := flagOf(item)
	if flag == "" && spec != item {
		flag = flagOf(spec)
	}
	switch {
	case flag == "":
	case k.sense == fails || flag == "negative" || strings.Contains("_"+kind, "_not_") || k.sense == together:
		c.block(item, fmt.Sprintf("line %d: %s of this check can mean both that the result should be so and that it should not", item.Line, flag), "")
	case k.sense == plain:
		k.sense, k.name = forbids, flag
	}
	return k, item
}

// withKind returns an item whose type is given by its key: a text is the value of the check. Others are returned as
// they are.
func withKind(item *yaml.Node, kind, label string) *yaml.Node {
	switch {
	case kind == "":
		return item
	case decode.IsText(item):
		m := dialect.NewMap(item)
		m.Set("type", dialect.Scalar(item, kind))
		m.Set("pattern", item)
		if label != "" {
			m.Set("name", dialect.Scalar(item, label))
		}
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
var anyOfKey = text.Pattern(`(^|_)(any|either|one)_of$|_(any|either|one)$|^(any|either)$`)

// oneOfTexts returns the words for one of several texts.
func oneOfTexts(list *yaml.Node) *yaml.Node {
	var texts []string
	for _, n := range dialect.Items(list) {
		texts = append(texts, n.Value)
	}
	return dialect.Scalar(list, strings.Join(texts, " or "))
}

// leadingFlags matches the flags of a pattern, which count only at its start.
var leadingFlags = text.Pattern(`^(?:\(\?[a-z]+\))*`)

// oneOfPatterns returns a pattern that matches what one of several matches. ok is false if their flags differ.
func oneOfPatterns(list *yaml.Node) (one *yaml.Node, ok bool) {
	var parts []string
	flags := ""
	for i, n := range dialect.Items(list) {
		own := leadingFlags().FindString(n.Value)
		if i > 0 && own != flags {
			return nil, false
		}
		flags = own
		parts = append(parts, "(?:"+strings.TrimPrefix(n.Value, own)+")")
	}
	return dialect.Scalar(list, flags+strings.Join(parts, "|")), true
}

// leftOutKeys are keys of items and cases that their authors do not check any more. enabledKeys say the opposite.
var (
	leftOutKeys = []string{"retired", "skip", "skipped", "disabled", "deprecated"}
	enabledKeys = []string{"enabled"}
)

// leftOutBy returns the key with which the author of an item or a case left it out; nil for others.
func leftOutBy(item *yaml.Node) *yaml.Node {
	for _, key := range leftOutKeys {
		k, n := decode.LookupPair(item, key)
		if n = decode.Follow(n); n == nil || decode.IsNull(n) || n.Kind != yaml.ScalarNode || n.Value == "" {
			continue
		}
		if is, ok := boolOf(n); is || !ok { // a text is a reason
			return k
		}
	}
	for _, key := range enabledKeys {
		k, n := decode.LookupPair(item, key)
		if is, ok := boolOf(n); ok && !is {
			return k
		}
	}
	return nil
}

// isLeftOut reports whether the author of an item left it out, and warns.
func (c *caseTranslator) isLeftOut(item *yaml.Node) bool {
	key := leftOutBy(item)
	if key != nil {
		c.Reportf(c.Source, decode.Lookup(item, key.Value), decode.Warning, decode.CodeNoEffect, "this check is left out, because its key %s says so", key.Value)
	}
	return key != nil
}

// warnUnknownOfItem reports keys of an item that have no effect.
func (c *caseTranslator) warnUnknownOfItem(item *yaml.Node) {
	known := slices.Clone(itemKeys())
	for _, p := range dialect.Pairs(item) {
		if slices.Contains(kinds, kindOf(p.Key.Value)) || isSign(p) {
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
	known := slices.Concat(labelsOfItems, valueKeys, optionKeys, fileKeysOfItems,
		[]string{"name", "id", "type", "description", "groups", "forbidden", "points", "target"})
	for _, p := range dialect.Pairs(checkOf(item)) {
		if key := p.Key.Value; !slices.Contains(known, key) && !slices.Contains(kinds, kindOf(key)) && !isSign(p) {
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
		all := map[string]any{firstOf(textIn(item, "type"), "values"): values}
		if file := fileOf(item); file != nil {
			all["file"] = file.Value
		}
		options = all
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
	if kind != "" && typeOf(item) == "" && statement == textIn(item, "text") && slices.ContainsFunc(dialect.Items(valuesOf(item)), func(n *yaml.Node) bool { return n.Value == statement }) {
		statement = "" // it is the value of a check, not a description of it
	}
	if item.Kind == yaml.ScalarNode && !decode.IsText(item) && !decode.IsNull(item) && k.prefix == "" {
		if k.label != "" && k.isNegative() { // such as never_mention: true
			j.add(item, fits(k.path+k.name)+item.Value, "", false)
			return
		}
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
	if k.sense == forbids && negated().MatchString(statement) {
		// A negation below a negation can mean both, so the judge reads it with its key.
		j.add(item, fits(k.name)+statement, label, false)
		return
	}
	j.add(item, k.prefix+statement, label, k.isNegative())
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

// ownChecks returns a map with the checks that a case has beside its lists, under the names of their types, and with
// their file; nil without one.
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
	for _, key := range []string{"path", "file_path", "filename"} { // not file, which agents can get
		if n := c.get(key); decode.IsText(n) {
			own.Set(key, n)
		}
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
	if len(values.Content) > 0 && (slices.Contains(kinds, kind) || kind == "file_contains_any") {
		list = append(list, typedCheck{kind, values})
	}
	for _, p := range dialect.Pairs(spec) {
		kind := kindOf(p.Key.Value)
		if values := textsOf(p.Value); slices.Contains(kinds, kind) && len(values.Content) > 0 {
			list = append(list, typedCheck{ofSubject(kind, spec), values})
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
	if hasGroups(item, spec) && !k.isNegative() {
		if g := groups(item, spec, firstOf(name, "groups")); g != nil && c.compiles(spec, decode.Lookup(decode.Lookup(g, "config"), "regex_match")) {
			return []*yaml.Node{g}
		}
		return nil
	}
	for _, typed := range typedChecks(spec) {
		g := c.grader(item, spec, typed, name, k)
		if g == nil || k.sense == together {
			return nil
		}
		graders = append(graders, g)
	}
	return graders
}

// grader returns the grader of a check, or nil if code cannot decide it.
func (c *caseTranslator) grader(item, spec *yaml.Node, typed typedCheck, name string, k statementKey) *yaml.Node {
	kind, values := typed.kind, typed.values
	base := strings.Replace(strings.TrimPrefix("_"+kind, "_"), "not_", "", 1)
	absent := k.with(base != kind)
	config := dialect.NewMap(spec)
	grader := "text"
	flags, hasFlags := flagsOf(spec)
	anyCase := ""
	if ignoresCase(spec) {
		anyCase = "i"
	}
	switch base {
	case "contains", "contains_all", "output_contains":
		if anyCase != "" {
			config.Set(option(absent, "regex_not_match", "regex_match"), withFlags(quoted(values), anyCase))
			config.Set("syntax", dialect.Scalar(spec, "javascript"))
			break
		}
		config.Set(option(absent, "not_contains_cs", "contains_cs"), values)
		c.hintPattern(kind, values)
	case "contains_any":
		config.Set(option(absent, "regex_not_match", "regex_match"), withFlags(oneOf(spec, values), anyCase))
		if anyCase != "" {
			config.Set("syntax", dialect.Scalar(spec, "javascript"))
		}
	case "regex", "matches", "output_matches":
		patterns := withFlags(values, flags)
		if !hasFlags || !c.compiles(spec, patterns) {
			return nil
		}
		config.Set(option(absent, "regex_not_match", "regex_match"), patterns)
		config.Set("syntax", dialect.Scalar(spec, "javascript"))
	case "file_exists":
		grader = "file"
		config.Set(option(absent, "must_not_exist", "must_exist"), values)
	case "file_contains", "file_contains_any", "file_matches":
		file := fileOf(spec)
		if file == nil || !hasFlags {
			return nil
		}
		grader = "file"
		m := dialect.NewMap(spec)
		m.Set("path", dialect.Scalar(file, file.Value))
		patterns := values
		switch base {
		case "file_contains":
			patterns = quoted(values)
		case "file_contains_any":
			patterns = oneOf(spec, values)
		}
		patterns = withFlags(patterns, flags)
		m.Set(option(absent, "must_not_match", "must_match"), patterns)
		if base != "file_contains" {
			config.Set("syntax", dialect.Scalar(spec, "javascript"))
			if !c.compiles(spec, patterns) {
				return nil
			}
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

// compiles reports whether patterns are valid. It blocks the case if one is not, because the others of the file can run.
func (c *caseTranslator) compiles(at, patterns *yaml.Node) bool {
	for _, p := range dialect.Items(patterns) {
		if _, err := pattern.Compile(pattern.JavaScript, p.Value); err != nil {
			c.block(at, fmt.Sprintf("line %d: the pattern %q is invalid: %v", at.Line, text.Clip(p.Value, 60), err), "")
			return false
		}
	}
	return true
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
