// Package skillevals translates the evals/evals.json of agent skills.
//
// Two definitions of the format exist: docs/skill-creation/evaluating-skills.mdx of
// agentskills/agentskills, and skills/skill-creator/references/schemas.md of anthropics/skills. The
// package also accepts the forms that other authors gave their files.
package skillevals

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
)

// writtenName is the usual name of a file that waza writes.
const writtenName = "evals.json"

// Dialect returns the dialect.
func Dialect() *dialect.Dialect {
	return &dialect.Dialect{
		Name: "skill-evals",
		Named: func(file string) bool {
			return path.Base(file) == "evals.json" || slices.Contains([]string{"evals/evals.yaml", "evals/evals.yml"}, path.Join(path.Base(path.Dir(file)), path.Base(file)))
		},
		Recognizes: func(root *yaml.Node) bool {
			return !ofPromptfoo(root) && slices.ContainsFunc(casesOf(normal(root)), hasPrompt)
		},
		Placed: func(file string, root *yaml.Node) bool {
			return !strings.HasPrefix(filepath.Base(file), "promptfooconfig") && (filepath.Ext(file) == ".json" || isSure(normal(root)))
		},
		Refuses: func(root *yaml.Node) string {
			// Files of many programs are evals.yaml, and some are an eval.yaml.
			if root.Style&yaml.FlowStyle == 0 || decode.Lookup(root, "tasks") != nil {
				return ""
			}
			return "these are no skill evals: no case has a prompt; a file of skill evals is {\"skill_name\": NAME, " +
				"\"evals\": [{\"id\": 1, \"prompt\": TEXT, \"expectations\": [TEXT]}]}"
		},
		Home: func(file string) string {
			// An evals.json is in the folder evals of its skill.
			return filepath.Dir(filepath.Dir(file))
		},
		Translate: translate,
		Target:    writtenName,
		FileName:  writtenName,
		Write:     write,
	}
}

// listKeys are the keys of the list of cases, see [listsOf].
var listKeys = []string{"evals", "cases", "test_cases", "evaluations", "tests", "queries"}

// promptKeys are the keys of the prompt of a case, the preferred one first. turnKeys are those of a list of messages.
// A weak key can also be part of a case of another tool, such as a question about documents, so it is only that of
// a prompt beside checks or the name of a skill.
var (
	promptKeys     = []string{"prompt", "input", "query", "user_prompt", "user_message", "user_input"}
	turnKeys       = []string{"turns", "messages", "conversation", "query_flow", "prompts"}
	weakPromptKeys = []string{"question", "task", "message", "utterance", "request"}
)

// promptKeysOf returns the keys that can be that of the prompt of a case.
func promptKeysOf(c *yaml.Node) []string {
	keys := slices.Concat(promptKeys, turnKeys)
	switch {
	case decode.IsText(decode.Follow(decode.Lookup(c, "input"))):
		// It is the material of a prompt, if the case has one besides. A single word only names the task.
		keys = slices.DeleteFunc(slices.Clone(promptKeys), func(key string) bool { return key == "input" })
		for _, key := range weakPromptKeys {
			if strings.Contains(strings.TrimSpace(textIn(c, key)), " ") {
				keys = append(keys, key)
			}
		}
		return slices.Concat(keys, []string{"input"}, turnKeys)
	case hasAny(c, expectedSkillKeys) || hasAny(c, caseSkillKeys) || slices.ContainsFunc(statementKeys, func(k statementKey) bool { return decode.Lookup(c, k.name) != nil }):
		keys = append(keys, weakPromptKeys...)
	}
	return keys
}

func isStatementKey(key string) bool {
	return slices.ContainsFunc(statementKeys, func(k statementKey) bool { return k.name == key })
}

// isSure reports whether a case of a file has a check or names a skill, or the file itself does. Files of other
// programs have queries and messages, too.
func isSure(root *yaml.Node) bool {
	return hasAny(root, []string{"skill_name", "skill"}) || slices.ContainsFunc(casesOf(root), func(c *yaml.Node) bool {
		return hasPrompt(c) && (namesSkill(c) || hasAny(c, []string{"expected_output", "expected"}) || hasAny(c, signKeys) ||
			slices.ContainsFunc(dialect.Pairs(c), func(p decode.Pair) bool {
				return isStatementKey(p.Key.Value) || slices.Contains(kinds, kindOf(p.Key.Value))
			}))
	})
}

func hasAny(n *yaml.Node, keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return decode.Lookup(n, key) != nil })
}

// normal returns a file with the names of keys that this package knows.
func normal(root *yaml.Node) *yaml.Node {
	return dialect.SnakeKeys(decode.Follow(root), func(key string) bool {
		return slices.Contains(knownKeys(), key) || isStatementKey(key)
	})
}

// knownKeys are the keys of files, cases and checks besides [statementKeys].
var knownKeys = sync.OnceValue(func() []string {
	return slices.Concat(listKeys, moreKeys, promptKeys, turnKeys, weakPromptKeys, fileKeys, thresholdKeys, filesKeys, labelKeys,
		textKeys, valueKeys, optionKeys, expectedSkillKeys, caseSkillKeys, subjectKeys, signKeys, fixtureKeys, fileKeysOfItems, kinds,
		[]string{"expected_output", "expected", "prompt_file", "eval_id", "eval_name", "forbidden_skills"})
})

// ofPromptfoo reports whether a file has keys that files of promptfoo have besides their tests, and none of skill evals.
func ofPromptfoo(root *yaml.Node) bool {
	return !hasAny(root, []string{"skill_name", "skillName", "evals"}) && slices.ContainsFunc([]string{"prompts", "providers", "targets"}, func(key string) bool { return decode.Lookup(root, key) != nil })
}

// moreKeys are the keys of lists that files have beside that of their cases.
var moreKeys = []string{"edge_cases", "triggers", "trigger_tests"}

func casesOf(root *yaml.Node) []*yaml.Node {
	cases, _ := listsOf(root)
	return cases
}

// listsOf returns the cases of a file, and the keys whose lists they are: the first list of listKeys that is not
// empty, and all others whose items are cases.
func listsOf(root *yaml.Node) (cases []*yaml.Node, keys []string) {
	if root.Kind == yaml.SequenceNode {
		return casesIn(root, false), nil
	}
	if isCase(root) {
		return []*yaml.Node{root}, nil
	}
	for _, key := range slices.Concat(listKeys, moreKeys, groupKeys) {
		n := decode.Follow(decode.Lookup(root, key))
		if n != nil && n.Kind == yaml.MappingNode && slices.Contains(moreKeys, key) {
			continue // an eval.yaml has its trigger tests in such a map
		}
		list := casesIn(n, key == "skills")
		if slices.Contains(groupKeys, key) && !slices.ContainsFunc(list, hasPrompt) {
			continue
		}
		isFirst := len(cases) == 0 && slices.Contains(listKeys, key)
		if isFirst || !slices.ContainsFunc(list, func(c *yaml.Node) bool { return !hasPrompt(c) }) {
			cases, keys = append(cases, list...), append(keys, key)
		}
	}
	return cases, keys
}

// groupKeys are the keys of groups of cases.
var groupKeys = []string{"suites", "groups", "categories", "skills"}

// isCase reports whether a file is one case.
func isCase(root *yaml.Node) bool {
	return !hasAny(root, listKeys) && !hasAny(root, groupKeys[:3]) && hasPrompt(root) &&
		(decode.Lookup(root, "expected_output") != nil ||
			slices.ContainsFunc(statementKeys, func(k statementKey) bool { return decode.Lookup(root, k.name) != nil }))
}

// casesIn returns the cases of a list, or of a map of cases by id. An item without a prompt can be a group: a map
// with a list of cases, or a list. ofSkills means that groups are skills.
func casesIn(n *yaml.Node, ofSkills bool) (cases []*yaml.Node) {
	for _, item := range dialect.Items(n) {
		name := decode.Follow(decode.Lookup(item, "name"))
		if !ofSkills || !decode.IsText(name) {
			name = nil
		}
		cases = append(cases, groupOrCase(item, name)...)
	}
	pairs := dialect.Pairs(n)
	hasCases := slices.ContainsFunc(pairs, func(p decode.Pair) bool { return hasPrompt(p.Value) })
	for _, p := range pairs {
		skill := p.Key
		if !ofSkills {
			skill = nil
		}
		switch c := p.Value; {
		case c.Kind == yaml.SequenceNode:
			cases = append(cases, casesIn(c, false)...)
		case c.Kind == yaml.MappingNode && hasPrompt(c) && decode.Lookup(c, "id") == nil:
			m := dialect.NewMap(c)
			m.Set("id", dialect.Scalar(p.Key, p.Key.Value))
			m.Node.Content = append(m.Node.Content, c.Content...)
			cases = append(cases, m.Node)
		case c.Kind == yaml.MappingNode:
			cases = append(cases, groupOrCase(c, skill)...)
		case hasCases && decode.IsText(c) && !slices.Contains(slices.Concat(fileKeys, labelKeys), p.Key.Value):
			m := dialect.NewMap(c)
			m.Set("id", dialect.Scalar(p.Key, p.Key.Value))
			m.Set("prompt", c)
			cases = append(cases, m.Node)
		}
	}
	return cases
}

// groupOrCase returns the cases of a group, or the item itself. Cases have the keys of their group, which is about a
// skill if one is given.
func groupOrCase(item, skill *yaml.Node) (cases []*yaml.Node) {
	if hasPrompt(item) {
		return []*yaml.Node{item}
	}
	var lists []string
	for _, key := range listKeys {
		list := dialect.Items(decode.Lookup(item, key))
		if len(lists) == 0 && slices.ContainsFunc(list, hasPrompt) || len(list) > 0 && !slices.ContainsFunc(list, func(c *yaml.Node) bool { return !hasPrompt(c) }) {
			lists = append(lists, key)
		}
	}
	var shared []decode.Pair
	for _, p := range dialect.Pairs(item) {
		if key := p.Key.Value; !slices.Contains(lists, key) && !slices.Contains(keysOfGroups, key) {
			shared = append(shared, p)
		}
	}
	if skill != nil && !hasAny(item, caseSkillKeys) {
		shared = append(shared, decode.Pair{Key: dialect.Scalar(skill, "skill"), Value: skill})
	}
	for _, key := range lists {
		for _, c := range dialect.Items(decode.Lookup(item, key)) {
			cases = append(cases, withShared(c, shared))
		}
	}
	if len(lists) == 0 {
		return []*yaml.Node{item}
	}
	return cases
}

// keysOfGroups are keys that describe a group and not its cases.
var keysOfGroups = []string{"id", "name", "title", "description", "note", "notes", "comment", "_comment"}

// withShared returns a case with the keys of its group. A list that both have counts as a whole, and else the value of
// the case.
func withShared(c *yaml.Node, shared []decode.Pair) *yaml.Node {
	if c.Kind != yaml.MappingNode || len(shared) == 0 {
		return c
	}
	m := dialect.NewMap(c)
	m.Node.Content = slices.Clone(c.Content)
	for _, p := range shared {
		own := decode.Follow(m.Get(p.Key.Value))
		switch {
		case own == nil:
			m.Node.Content = append(m.Node.Content, p.Key, p.Value)
		case own.Kind == yaml.SequenceNode && p.Value.Kind == yaml.SequenceNode:
			m.Set(p.Key.Value, dialect.List(own, slices.Concat(own.Content, p.Value.Content)...))
		}
	}
	return m.Node
}

func hasPrompt(c *yaml.Node) bool {
	for _, key := range promptKeysOf(c) {
		if n := decode.Follow(decode.Lookup(c, key)); decode.IsText(n) || n != nil && n.Kind == yaml.SequenceNode {
			return true
		}
	}
	return decode.IsText(decode.Follow(decode.Lookup(c, "prompt_file"))) ||
		decode.IsText(decode.Follow(decode.Lookup(c, "command"))) && decode.Lookup(c, "args") != nil
}
