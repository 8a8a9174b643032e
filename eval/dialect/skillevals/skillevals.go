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
			return path.Base(file) == "evals.json" || strings.HasSuffix(file, "evals/evals.yaml") || strings.HasSuffix(file, "evals/evals.yml")
		},
		Recognizes: func(root *yaml.Node) bool {
			return !ofPromptfoo(root) && slices.ContainsFunc(casesOf(normal(root)), hasPrompt)
		},
		Placed: func(file string, _ *yaml.Node) bool {
			return !strings.HasPrefix(filepath.Base(file), "promptfooconfig")
		},
		Refuses: func(*yaml.Node) string {
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
	if hasAny(c, expectedSkillKeys) || hasAny(c, caseSkillKeys) || slices.ContainsFunc(statementKeys, func(k statementKey) bool { return decode.Lookup(c, k.name) != nil }) {
		keys = append(keys, weakPromptKeys...)
	}
	return keys
}

func hasAny(n *yaml.Node, keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return decode.Lookup(n, key) != nil })
}

// normal returns a file with the names of keys that this package knows.
func normal(root *yaml.Node) *yaml.Node {
	return dialect.SnakeKeys(decode.Follow(root), func(key string) bool {
		return slices.Contains(knownKeys(), key) || slices.ContainsFunc(statementKeys, func(k statementKey) bool { return k.name == key })
	})
}

// knownKeys are the keys of files, cases and checks besides [statementKeys].
var knownKeys = sync.OnceValue(func() []string {
	return slices.Concat(listKeys, moreKeys, promptKeys, turnKeys, weakPromptKeys, fileKeys, thresholdKeys, filesKeys, labelKeys,
		textKeys, optionKeys, expectedSkillKeys, caseSkillKeys, subjectKeys,
		[]string{"expected_output", "expected", "should_trigger", "prompt_file", "eval_id", "eval_name", "forbidden_skills"})
})

// ofPromptfoo reports whether a file has keys that files of promptfoo have besides their tests.
func ofPromptfoo(root *yaml.Node) bool {
	return slices.ContainsFunc([]string{"prompts", "providers", "targets"}, func(key string) bool { return decode.Lookup(root, key) != nil })
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
		return casesIn(root), nil
	}
	if isCase(root) {
		return []*yaml.Node{root}, nil
	}
	for _, key := range slices.Concat(listKeys, moreKeys, groupKeys) {
		n := decode.Follow(decode.Lookup(root, key))
		if n != nil && n.Kind == yaml.MappingNode && slices.Contains(moreKeys, key) {
			continue // an eval.yaml has its trigger tests in such a map
		}
		list := casesIn(n)
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
// with a list of cases, or a list.
func casesIn(n *yaml.Node) (cases []*yaml.Node) {
	for _, item := range dialect.Items(n) {
		cases = append(cases, groupOrCase(item)...)
	}
	for _, p := range dialect.Pairs(n) {
		switch c := p.Value; {
		case c.Kind == yaml.SequenceNode:
			cases = append(cases, casesIn(c)...)
		case c.Kind == yaml.MappingNode && hasPrompt(c) && decode.Lookup(c, "id") == nil:
			m := dialect.NewMap(c)
			m.Set("id", dialect.Scalar(p.Key, p.Key.Value))
			m.Node.Content = append(m.Node.Content, c.Content...)
			cases = append(cases, m.Node)
		case c.Kind == yaml.MappingNode:
			cases = append(cases, groupOrCase(c)...)
		}
	}
	return cases
}

// groupOrCase returns the cases of a group, or the item itself.
func groupOrCase(item *yaml.Node) []*yaml.Node {
	if !hasPrompt(item) {
		for _, key := range listKeys {
			if list := dialect.Items(decode.Lookup(item, key)); slices.ContainsFunc(list, hasPrompt) {
				return list
			}
		}
	}
	return []*yaml.Node{item}
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
