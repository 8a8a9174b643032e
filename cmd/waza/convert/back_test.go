package convert

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/dialect"
	"waza/eval/dialecttest"
)

// everyCheck has each part of skill evals that has an equivalent in an eval.yaml.
const everyCheck = `{"skill_name": "s", "description": "d", "version": "1", "evals": [
 {"id": 1, "prompt": "a", "expected_output": "b"},
 {"id": "two", "name": "title", "description": "why", "tags": ["x"], "prompt": ["a", "b"], "files": ["in.txt", "evals/own.txt", {"path": "n.txt", "content": "<text>"}],
  "expected_output": "ref", "expectations": ["c", {"name": "l", "text": "d"}], "forbidden": ["e", {"id": "m", "text": "f"}],
  "assertions": [{"type": "contains", "value": "g"}, {"type": "not_contains", "values": ["h", "i"]}, {"type": "regex", "value": "(?i)j+"},
   {"type": "not_regex", "value": "k+"}, {"type": "contains_any", "values": ["l.", "m"]}, {"type": "file_exists", "path": "n"},
   {"type": "file_not_exists", "path": "o"}, {"type": "file_contains", "path": "p", "value": "q.r"},
   {"type": "file_not_contains", "path": "p", "value": "s", "description": "no s"}]},
 {"prompt": "use it", "should_trigger": true, "reason": "r"},
 {"prompt": "do not", "should_trigger": false}]}`

// blocked is the line of a task with a file that does not exist.
var blocked = regexp.MustCompile(`(?m)^  blocked: file .*\n`)

// A suite in another format means the same after it was written as an eval.yaml and back.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	suites := map[string]string{}
	dir := t.TempDir()
	for _, sub := range []string{"evals", ".git"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, sub), 0o700))
	}
	for name, text := range map[string]string{
		".git/HEAD": "", "SKILL.md": "---\nname: s\ndescription: d\n---\n", "in.txt": "in", "evals/own.txt": "own", "evals/evals.json": everyCheck,
		"evals/trigger-evals.json": `{"pass_threshold": 0.7, "queries": [{"query": "a", "should_trigger": true, "reason": "r"},
			{"query": "b", "should_trigger": "t", "acceptable": ["u"], "should_not_trigger": ["s"]}, {"query": "c", "should_trigger": false}]}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	suites["every check"], suites["routes"] = filepath.Join(dir, "evals", "evals.json"), filepath.Join(dir, "evals", "trigger-evals.json")
	for _, pattern := range []string{"skill-*", "triggers"} {
		found, err := filepath.Glob(filepath.FromSlash("../../../../shared/suites/formats/" + pattern + "/evals/*.json"))
		require.NoError(t, err)
		for _, path := range found {
			copied := t.TempDir()
			require.NoError(t, os.CopyFS(copied, os.DirFS(filepath.Dir(filepath.Dir(path)))))
			suites[path] = filepath.Join(copied, "evals", filepath.Base(path))
		}
	}
	for name, path := range suites {
		t.Run(name, func(t *testing.T) {
			before, _, err := eval.Load(path, eval.Options{})
			require.NoError(t, err)
			want := blocked.ReplaceAllString(dialecttest.Describe(t, before), "")
			node, err := before.Node()
			require.NoError(t, err)
			text, err := dialect.Encode(node)
			require.NoError(t, err)
			middle := filepath.Join(filepath.Dir(path), "eval.yaml")
			require.NoError(t, os.WriteFile(middle, text, 0o600))
			suite, found, err := eval.Load(middle, eval.Options{})
			require.NoError(t, err)
			require.Empty(t, found.Errors())

			d, err := target(before.Format)
			require.NoError(t, err)
			doc := suite.Document(path)
			written, err := d.Write(doc)
			require.NoError(t, err)
			for _, l := range doc.Losses {
				// Some files of the examples were never published.
				require.True(t, !l.Verdict || strings.HasSuffix(l.Part, ": blocked"), "%+v", l)
			}
			require.NoError(t, os.WriteFile(path, []byte(*written[0].Content), 0o600))
			after, found, err := eval.Load(path, eval.Options{})
			require.NoError(t, err)
			require.Empty(t, found.Errors(), "%s", *written[0].Content)
			require.Equal(t, want, dialecttest.Describe(t, after), "%s", *written[0].Content)
			require.NoError(t, os.Remove(middle))
		})
	}
}

// Parts that skill evals and trigger sets cannot say are reported, not left out in silence.
func TestLosses(t *testing.T) {
	t.Parallel()
	judges := "tasks: [{id: a, inputs: {prompt: a}, graders: [{name: one, type: prompt, config: {statements: [x], reference: r}}, " +
		"{name: two, type: prompt, config: {statements: [y]REFERENCE}}]}]\n"
	for name, c := range map[string]struct {
		suite, to string
		want      []dialect.Loss
	}{
		"second judge": {
			strings.Replace(judges, "REFERENCE", ", reference: r", 1), "evals.json",
			[]dialect.Loss{{Part: `task a: grader "two"`, Reason: "one judge decides all statements of a case"}},
		},
		"second reference": {
			strings.Replace(judges, "REFERENCE", ", reference: s", 1), "evals.json",
			[]dialect.Loss{
				{Part: `task a: grader "two" reference`, Reason: "a case has one reference, for all of its statements", Verdict: true},
				{Part: `task a: grader "two"`, Reason: "one judge decides all statements of a case"},
			},
		},
		"variables in checks": {
			"inputs: {who: Ada}\ntasks: [{id: a, inputs: {prompt: a}, graders: [{name: names, type: text, config: {contains_cs: ['{{who}}']}}]}]\n", "evals.json",
			[]dialect.Loss{
				{Part: "inputs", Verdict: true},
				{Part: `task a: grader "names"`, Reason: "texts of checks have no template variables", Verdict: true},
			},
		},
		"confidence of a case": {
			"trigger_tests: {should_trigger_prompts: [{prompt: p, confidence: medium}]}\n", "evals.json",
			[]dialect.Loss{{Part: "confidence of the trigger test p", Reason: "all prompts have the same weight"}},
		},
		"confidence of a query": {
			"config: {trials_per_task: 3}\ntrigger_tests: {first_tool: true, threshold: 0.5, should_trigger_prompts: [{prompt: p, confidence: medium}]}\n", "triggers",
			[]dialect.Loss{{Part: "confidence of p", Reason: "all queries have the same weight"}},
		},
		"repeated and routed queries": {
			"config: {trials_per_task: 3}\ntrigger_tests: {first_tool: true, threshold: 0.5, should_not_trigger_prompts: [{prompt: p, skill: other}, p, p]}\n", "triggers",
			[]dialect.Loss{{Part: "trigger test p", Reason: "of two entries with the same query and skill, the last one counts", Verdict: true}},
		},
		"nothing to check": {
			"tasks: [{id: a, inputs: {prompt: a}}]\n", "evals.json",
			[]dialect.Loss{{Part: "task a: verdict", Reason: "nothing checks it, and a case without checks ends in an error", Verdict: true}},
		},
		"options of an executor": {
			"config: {executor: command, command: cat, system_prompt: Be brief.}\ntasks: [{id: a, inputs: {prompt: a}, graders: [{name: g, type: text, config: {contains_cs: [x]}}]}]\n", "evals.json",
			[]dialect.Loss{
				{Part: "config.executor", Reason: "waza run has flags for it"},
				{Part: "config.command", Reason: "an option of the executor, which the other tool does not have"},
				{Part: "config.system_prompt", Reason: "the agent gets no system prompt", Verdict: true},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "eval.yaml")
			require.NoError(t, os.WriteFile(file, []byte("name: s\n"+c.suite), 0o600))
			suite, found, err := eval.Load(file, eval.Options{})
			require.NoError(t, err)
			require.Empty(t, found.Errors())
			d, err := target(c.to)
			require.NoError(t, err)
			doc := suite.Document(file + "x")
			_, err = d.Write(doc)
			require.NoError(t, err)
			if d.Name == "skill-evals" {
				c.want = append([]dialect.Loss{{Part: "skill", Reason: "a file names a skill, so skill_name is the name of the suite"}}, c.want...)
			}
			require.ElementsMatch(t, c.want, doc.Losses)
		})
	}
}

// An eval.yaml with parts that a format can say has the same tasks and graders after it was written in the
// format, and after that was written as an eval.yaml.
func TestThereAndBack(t *testing.T) {
	t.Parallel()
	for to, tasks := range map[string]string{
		"vally": "config: {trials_per_task: 2, timeout_seconds: 90, model: m}\nscore_threshold: 0.5\ntasks:\n" +
			"  - {id: a, description: d, tags: ['k:v', 'k:w', 'l:x'], trials: 3, timeout_seconds: 1.5, inputs: {prompt: 'x {{y}}', follow_up_prompts: [z], setup: [touch a]}, graders: [" +
			"{name: n, type: text, weight: 2, config: {contains: [q]}}, {name: o, type: file, negate: true, config: {content_patterns: [{path: p, must_match: [r+]}], syntax: javascript}}, " +
			"{name: p, type: tool_constraint, turn: 2, config: {expect_tools: [{tool: '^a|b$', args: {x: {regex: y}}}], syntax: javascript}}]}\n" +
			"  - {id: b, inputs: {prompt: x}, graders: [{name: n, type: behavior, config: {max_duration_ms: 500}}]}\n",
		"promptfoo": "config: {executor: openai, model: m, base_url: 'http://localhost:1/v1', trials_per_task: 2}\ntasks:\n" +
			"  - {id: a, score_threshold: 0.5, inputs: {prompt: 'x {{y}} {% z %}', system_prompt: '{{s}}'}, graders: [{name: '1: n', type: text, weight: 2, config: {contains_cs: ['{{q}}']}}, " +
			"{name: '2: o', type: code, config: {language: javascript, function: return output.length}}, {name: '3: p', type: prompt, negate: true, config: {prompt: 'file://x', threshold: 0.5, verdict_counts: true}}]}\n" +
			"  - {id: b, inputs: {prompt: './check.py'}, graders: [{name: '1: n', type: text, config: {regex_match: ['\\A(?:a\\|b)\\z']}}]}\n",
	} {
		t.Run(to, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "eval.yaml")
			require.NoError(t, os.WriteFile(file, []byte("name: s\nliteral: true\n"+tasks), 0o600))
			suite, found, err := eval.Load(file, eval.Options{})
			require.NoError(t, err)
			require.Empty(t, found.Errors())
			d, err := target(to)
			require.NoError(t, err)
			losses, again := dialecttest.Rewrite(t, suite, d)
			require.Empty(t, losses)
			require.Equal(t, to, again.Format)
			require.Equal(t, contents(suite), contents(again))
			node, err := again.Node()
			require.NoError(t, err)
			text, err := dialect.Encode(node)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, text, 0o600))
			back, found, err := eval.Load(file, eval.Options{})
			require.NoError(t, err)
			require.Empty(t, found.Errors())
			require.Equal(t, contents(suite), contents(back))
		})
	}
}

// contents returns the inputs and the graders of tasks.
func contents(s *eval.Suite) (list []any) {
	list = append(list, s.Config.TrialsPerTask, s.Config.TimeoutSeconds, s.Config.Model)
	for _, t := range s.Tasks {
		inputs := t.Inputs
		inputs.Context = nil // which the translation adds for code
		list = append(list, t.ID, t.Trials, t.TimeoutSeconds, t.ScoreThreshold, inputs)
		for _, g := range t.Effective {
			list = append(list, g.Name, g.Type, g.Weight, g.Turn, g.Negate, g.Optional, g.Config)
		}
	}
	return list
}

// A folder that cannot be written as a whole can be written again.
func TestFolderIsWholeOrNot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	list := []dialect.File{dialect.TextFile("a/task.toml", "x"), {Path: "a/tests", Source: filepath.Join(dir, "none")}}
	require.Error(t, writeFolder(dir, list))
	require.NoFileExists(t, filepath.Join(dir, "a", "task.toml"))
	require.NoError(t, writeFolder(dir, list[:1]))
	require.ErrorContains(t, writeFolder(dir, list[:1]), "exists already")
}
