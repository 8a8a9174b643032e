package runner_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// answers is an agent that answers with what follows "Say " in its prompt.
func answers(_ context.Context, trial *executor.Trial) (string, error) {
	return strings.TrimPrefix(trial.Prompt, "Say "), nil
}

// promptfooVerdicts runs a promptfooconfig.yaml, and files beside it, with the agent answers.
func promptfooVerdicts(t *testing.T, suite string) map[string]string {
	t.Helper()
	res, _ := runnertest.RunAgent(t, "-- eval.yaml --\n"+suite, record.Request{Executor: "agent"}, answers)
	verdicts := map[string]string{}
	for _, task := range res.Tasks {
		verdicts[task.ID] = string(task.Verdict)
	}
	return verdicts
}

// Each assertion that the dialect promptfoo translates passes and fails as in its definition.
func TestPromptfooAssertions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, value, passes, fails string }{
		{"contains", "a.c", "xa.cx", "A.C abc"},
		{"not-contains", "a.c", "A.C abc", "xa.cx"},
		{"icontains", "Abc", "xaBCx", "ab"},
		{"not-icontains", "Abc", "ab", "xaBCx"},
		{"contains-any", "[a.c, d]", "xd", "abc D"},
		{"contains-any", "'a.c, d'", "xd", "abc D"},
		{"contains-any", `'"a, b", c'`, "a, b", `"a b"`},
		{"contains-all", `'"a, b" , c"d'`, `a, b c"d`, "a, b c"},
		{"equals", "''", "", "a"},
		{"not-contains-any", "[a.c, d]", "abc D", "xd"},
		{"icontains-any", "[a.c, d]", "A.C", "abc"},
		{"not-icontains-any", "[a.c, d]", "abc", "A.C"},
		{"contains-all", "[a, b]", "xbax", "xax"},
		{"not-contains-all", "[a, b]", "xax", "xbax"},
		{"icontains-all", "[a, b]", "BA", "A"},
		{"equals", "a|b", "a|b", "a"},
		{"not-equals", "a|b", "a", "a|b"},
		{"equals", "{k: [1, {l: null}]}", `{"k": [1.0, {"l": null}]}`, `{"k": [1, {}]}`},
		{"not-equals", "[1]", `[1, 2]`, "[1]"},
		{"starts-with", "a|b", "a|bc", "b"},
		{"not-starts-with", "a|b", "b", "a|bc"},
		{"contains", "7", "17", "1"},
		{"javascript", "'context.providerResponse?.output.length > 3 && !context.providerResponse.cached'", "long", "no"},
		{"contains", "'{{ word }}'", "is {{x}}", "is x"},
		{"contains", "file://word.txt", "a word", "a world"},
		{"regex", `'^a(?!c)\d'`, "a1", "A1"},
		{"not-regex", `'\bno\b'`, "nothing", "no thing"},
		{"is-json", "", `{"a": 1}`, "```json\n{\"a\": 1}\n```"},
		{"is-json", "{type: object, required: [a]}", `{"a": 1}`, `{"b": 1}`},
		{"is-json", "{type: object}", `{}`, "```json\n{}\n```"},
		{"is-json", "'required: [a]'", `{"a": 1}`, `{"b": 1}`},
		{"is-json", "file://schema.json", `[1]`, `["1"]`},
		{"not-is-json", "", "text", "[]"},
		{"not-is-json", "{type: object}", "text", "{}"},
		{"not-is-json", "{type: object}", "[]", "{}"},
		{"is-json", "{properties: {a: {type: string, nullable: true}}}", `{"a": null}`, `{"a": 1}`},
		{"is-json", "{properties: {a: {format: date}}}", `{"a": "2024-02-29"}`, `{"a": "2023-02-29"}`},
		{"is-json", "'true'", "[1]", "one"},
		{"not-contains-json", "false", "[1]", ""},
		{"contains-json", "", "so {\"a\": \"}\"} it is", "so {a} it is"},
		{"contains-json", "{type: object, required: [a]}", `[1] and {"a": 1}`, `[1] and {"b": 1}`},
		{"not-contains-json", "", "none", "a [] b"},
		{"javascript", "output.length > 3", "long", "no"},
		{"javascript", "const n = output.length; n > 3;", "long", "no"},
		{"javascript", `"if (output === 'a') {\n  return true;\n}\nreturn context.vars.word === output"`, "a", "b"},
		{"javascript", "output.length / 10, threshold: 0.5", "longer", "long"},
		{"javascript", "output.length", "x", ""},
		{"javascript", "'({pass: output === \"x\", score: 1, reason: \"\"})'", "x", "y"},
		{"javascript", "JSON.parse(output).a === 1", `{"a": 1}`, "no JSON"},
		{"not-javascript", "output.includes('x')", "y", "x"},
		{"javascript", "file://check.js", "right", "wrong"},
		{"javascript", "'file://check.mjs:named'", "right", "wrong"},
		{"python", `"len(output) > 3 and context['prompt'] == 'Say ' + context['vars']['answer']"`, "long", "no"},
		{"python", `"import re\nreturn re.match('a+$', output) is not None"`, "aa", "ab"},
		{"python", "len(output) / 10, threshold: 0.5", "longer", "long"},
		{"python", "file://check.py", "right", "wrong"},
		{"not-python", "'\"x\" in output'", "y", "x"},
		{"levenshtein", "kitten, threshold: 3", "sitting", "flitting"},
		{"levenshtein", "abc", "abcdefgh", "abcdefghi"},
		{"word-count", "2", "two words", "one"},
		{"word-count", "{min: 2, max: 3}", "now three words", "one"},
		{"contains", "ab, transform: output.split('').reverse().join('')", "ba", "ab"},
		{"javascript", "'output.b > 1', transform: JSON.parse(output)", `{"b": 2}`, `{"b": 1}`},
		{"python", "\"output['b'] > 1\", transform: JSON.parse(output)", `{"b": 2}`, `{"b": 1}`},
		{"python", "output == 'ab', transform: output.trim()", " ab ", " abc "},
		{"latency", "x, threshold: 100000000", "x", ""},
		{"bleu", "the cat sat on the mat", "The cat sat on the mat", "a cat sat on a dog"},
		{"not-bleu", "[a b c d, e f g h]", "a b", "e f g h"},
		{"gleu", "the cat sat, threshold: 0.4", "the cat ran", "a dog sat"},
		{"rouge-n", "police killed the gunman", "police kill the gunman", "Police kill the gunman"},
		{"is-refusal", "", "I'm sorry, but I can't help with that.", "Sorry to hear that! Here is how I help people."},
		{"is-refusal", "", "As an AI, I have no opinion.", "The AI can't help, so it asks."},
		{"is-refusal", "", "I must respectfully decline.", "Teams decline to act."},
		{"not-is-refusal", "", "Sure, here it is.", "I am not able to assist you with this request."},
	} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			if strings.HasSuffix(c.kind, "python") {
				requireProgram(t, "python3")
			}
			value := ", value: " + c.value
			if c.value == "" {
				value = ""
			}
			want := map[string]string{"good": "passed", "bad": "failed"}
			if c.fails == "" {
				want = map[string]string{"good": "passed"}
			}
			suite := "description: d\nproviders: [openai:gpt-4o]\nprompts: ['Say {{answer}}']\ntests:\n"
			for name, answer := range map[string]string{"good": c.passes, "bad": c.fails} {
				if want[name] != "" {
					suite += fmt.Sprintf("  - {description: %s, vars: {answer: %q, word: '{{x}}'}, assert: [{type: %s%s}]}\n", name, answer, c.kind, value)
				}
			}
			suite += "-- word.txt --\nword\n\n-- schema.json --\n{\"type\": \"array\", \"items\": {\"type\": \"number\"}}\n" +
				"-- check.js --\nmodule.exports = async (output, context) => output === 'right' && context.prompt === 'Say right';\n" +
				"-- check.mjs --\nexport function named(output) { return {pass: output === 'right', score: 0.5, reason: 'r'}; }\n" +
				"-- check.py --\nimport json\n\n\ndef get_assert(output, context):\n    return {'pass': output == 'right', 'score': 1, 'reason': context['prompt']}\n"
			require.Equal(t, want, promptfooVerdicts(t, suite))
		})
	}
}

// calls is an agent that makes the calls in its prompt: NAME, NAME=ARGUMENTS, or use-SKILL.
func calls(_ context.Context, trial *executor.Trial) (string, error) {
	trial.Transcript.Add(record.Entry{Type: record.EntryThought, Text: "let me see"})
	for word := range strings.FieldsSeq(trial.Prompt) {
		name, arguments, _ := strings.Cut(word, "=")
		if skill, ok := strings.CutPrefix(name, "use-"); ok {
			trial.Transcript.Skill(skill)
			continue
		}
		call := record.ToolCall{Name: name, Status: "completed"}
		if arguments != "" {
			call.Arguments = []byte(arguments)
		}
		trial.Transcript.ToolCall(call)
	}
	trial.Transcript.Message("assistant", "done")
	return "done", nil
}

// Assertions about the steps of an agent decide by its transcript.
func TestPromptfooSteps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, value, passes, fails string }{
		{"trajectory:tool-used", "Search", "edit search", "edit"},
		{"trajectory:tool-used", "['se*', edit]", "edit search", "search"},
		{"not-trajectory:tool-used", "['se*', edit]", "read", "read edit"},
		{"trajectory:tool-used", "{name: a, min: 2, max: 3}", "a b a", "a a a a"},
		{"trajectory:tool-used", "{pattern: 'a?'}", "ab", "a"},
		{"not-trajectory:tool-used", "{pattern: 'a?', min: 2}", "ab", "ab ac"},
		{"trajectory:tool-used", "{name: 'a(b)'}", "a(b)", "ab"},
		{"trajectory:tool-args-match", "{name: a, args: {q: {r: 1}}}", `a={"q":{"r":1,"s":2},"t":3}`, `a={"q":{"r":2}}`},
		{"trajectory:tool-used", "{name: a, min: null, max: null}", "a a a", "b"},
		{"trajectory:tool-args-match", "{name: a, args: {q: {}}}", `a={"q":{"r":2}}`, `a={"q":1}`},
		{"trajectory:tool-args-match", "{name: a, args: {q: [1]}}", `a={"q":[1]}`, `a={"q":[1,2]}`},
		{"trajectory:tool-args-match", "{name: a, args: {q: 1}, mode: exact}", `a={"q":1}`, `a={"q":1,"r":2}`},
		{
			"trajectory:tool-args-match", "{name: a, args: {q: 1}, mode: exact, defaults: {n: 5}, ignore: '*_id'}",
			`a={"q":1,"n":5,"x_id":7}`, `a={"q":1,"n":6}`,
		},
		{"not-trajectory:tool-args-match", "{pattern: 'a*', arguments: {q: 1}}", `b={"q":1}`, `ab={"q":1}`},
		{"trajectory:tool-sequence", "[a, b]", "a c b", "b a"},
		{"trajectory:tool-sequence", "{steps: [a, {pattern: 'b*'}], mode: exact}", "a bc", "a c b"},
		{"not-trajectory:tool-sequence", "[a, b]", "b a", "a b"},
		{"trajectory:step-count", "{max: 3}", "a", "a b"},
		{"trajectory:step-count", "{type: tool, min: 2}", "a b", "a"},
		{"trajectory:step-count", "{type: [tool, reasoning], pattern: reasoning, min: 1, max: 1}", "a", "reasoning"},
		{"trajectory:step-count", "{type: command, pattern: 'ls*', min: 1}", `bash={"command":"ls"}`, `read={"command":"ls"}`},
		{"trajectory:step-count", "{type: message, min: 2}", "", "a"},
		{"skill-used", "a", "use-a use-b", "use-b"},
		{"skill-used", "{name: a, min: 2}", "use-a use-a", "use-a"},
		{"skill-used", "{name: a, max: 0}", "use-b", "use-a"},
		{"not-skill-used", "[a, b]", "use-c", "use-b"},
	} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			suite, want := "description: d\nproviders: [openai:gpt-4o]\nprompts: ['{{calls}}']\ntests:\n", map[string]string{}
			for verdict, words := range map[string]string{"passed": c.passes, "failed": c.fails} {
				if words != "" {
					want[verdict] = verdict
					suite += fmt.Sprintf("  - {description: %s, vars: {calls: '%s'}, assert: [{type: '%s', value: %s}]}\n", verdict, words, c.kind, c.value)
				}
			}
			res, _ := runnertest.RunAgent(t, "-- eval.yaml --\n"+suite, record.Request{Executor: "agent"}, calls)
			for _, task := range res.Tasks {
				require.Equal(t, task.ID, string(task.Verdict), "%s %s: %v", c.kind, c.value, task.Trial(t, 1))
			}
			require.Len(t, res.Tasks, len(want))
		})
	}
}

// A failed assertion about steps names the expected and the actual steps.
func TestPromptfooStepsFeedback(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, value, calls, want string }{
		{"trajectory:tool-used", "[a, b]", "b c", "expected calls of a, b, and a is missing; the agent called b, c"},
		{"not-trajectory:tool-used", "[a, 'b*']", "bc", "not- forbids it: the agent called bc, which includes b*"},
		{"trajectory:tool-used", "{name: a, min: 2}", "a", "expected at least 2 calls of a, got 1; the agent called a"},
		{"trajectory:tool-used", "{name: a, max: 0, min: 0}", "a", "expected at most 0 calls of a, got 1; the agent called a"},
		{"not-trajectory:tool-used", "{name: a}", "a a", "not- forbids it: 2 calls of a are at least 1; the agent called a, a"},
		{"trajectory:tool-args-match", "{name: a, args: {q: 1}}", `a={"q":2} b`, `expected a call of a with the arguments {"q":1}; its calls have {"q":2}`},
		{
			"trajectory:tool-args-match", "{name: a, args: {q: 1}, mode: exact}", "b",
			`expected a call of a with exactly the arguments {"q":1}; the agent called b`,
		},
		{"not-trajectory:tool-args-match", "{name: a, args: {}}", `a={"q":2}`, `not- forbids it: the agent called a with the arguments {}; its calls have {"q":2}`},
		{"trajectory:tool-sequence", "[a, {pattern: 'b*'}]", "bb a", "expected the calls a, b* in this order; the agent called bb, a"},
		{"trajectory:tool-sequence", "{steps: [a], mode: exact}", "", "expected exactly the calls a in this order; the agent called none"},
		{"not-trajectory:tool-sequence", "[a]", "a b", "not- forbids it: the agent made the calls a in this order; it called a, b"},
		{
			"trajectory:step-count", "{type: [tool, command], name: a, min: 2, max: 3}", "a b",
			"expected 2 to 3 steps of the type tool or command and named a, got 1; the steps are reasoning, a, b, message",
		},
		{"not-trajectory:step-count", "{type: tool, min: 1, max: 1}", "a", "not- forbids it: 1 are exactly 1 steps of the type tool; the steps are reasoning, a, message"},
	} {
		res, _ := runnertest.RunAgent(t, fmt.Sprintf("-- eval.yaml --\ndescription: d\nproviders: [openai:gpt-4o]\nprompts: ['%s']\ntests: [{assert: [{type: '%s', value: %s}]}]\n",
			cmp.Or(c.calls, " "), c.kind, c.value), record.Request{Executor: "agent"}, calls)
		trial := res.Tasks[0].Trial(t, 1)
		require.Equal(t, "failed", string(trial.Verdict), "%v", trial)
		require.Equal(t, c.want, trial.Graders[0].Feedback)
	}
}

// Providers that report only answers decide no assertion about steps, in contrast to agents in their place.
func TestPromptfooStepless(t *testing.T) {
	t.Parallel()
	model := runnertest.NewModel(t, func(runnertest.Asked) runnertest.Answer { return runnertest.Answer{Text: "x"} })
	provider := func(id string) string {
		return strings.ReplaceAll(`-- eval.yaml --
description: stepless
providers: [`+id+`]
prompts: [x]
defaultTest: {options: {provider: {id: openai:judge, config: {apiBaseUrl: URL}}}}
tests:
  - {description: used, assert: [{type: 'trajectory:tool-used', value: a}]}
  - {description: not used, assert: [{type: 'not-trajectory:tool-used', value: a}]}
  - {description: sequence, assert: [{type: assert-set, assert: [{type: 'not-trajectory:tool-sequence', value: [a]}]}]}
  - {description: arguments, assert: [{type: 'not-trajectory:tool-args-match', value: {name: a, args: {}}}]}
  - {description: count, assert: [{type: 'trajectory:step-count', value: {max: 5}}]}
  - {description: goal, assert: [{type: 'trajectory:goal-success', value: a}]}
  - {description: skill, assert: [{type: not-skill-used, value: a}]}
  - {description: measured, assert: [{type: not-equals, value: ''}, {type: 'trajectory:tool-used', value: a, weight: 0}]}
-- provider.py --
def call_api(prompt, options, context):
    return {"output": "x"}
`, "URL", model.URL)
	}
	errors := map[string]string{"used": "error", "not used": "error", "sequence": "error", "arguments": "error", "count": "error",
		"goal": "error", "skill": "error", "measured": "passed"}
	for _, id := range []string{"{id: openai:m, config: {apiBaseUrl: URL}}", "{id: http, config: {url: URL/chat, body: {}, method: GET}}", "echo", "file://provider.py"} {
		if _, err := exec.LookPath("python3"); strings.HasSuffix(id, ".py") && err != nil {
			continue
		}
		require.Equal(t, errors, promptfooAlone(t, provider(id)), id)
	}
	res, _ := runnertest.RunAgent(t, provider("openai:gpt-4o"), record.Request{Executor: "agent"}, calls)
	for _, task := range res.Tasks {
		if task.ID == "not used" || task.ID == "skill" || task.ID == "count" {
			require.Equal(t, "passed", string(task.Verdict), task.ID)
		}
	}
}

// Weights, thresholds and sets decide as promptfoo's scores do.
func TestPromptfooScores(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]string{
		"all must pass": "failed", "half is enough": "passed", "half is too little": "failed", "heavy": "passed",
		"weight 0": "passed", "set": "passed", "set without a threshold": "failed", "default threshold": "passed",
		"no assertion can decide": "error", "cheap": "passed", "dear": "failed", "not cheap": "failed", "not dear": "passed", "not fast": "failed", "any score": "passed",
		"set of weight 0": "error", "set of weight 0 and a threshold": "passed", "only weight 0": "failed", "only weight 0, any score": "passed",
		"set of only weight 0": "failed",
	}, promptfooVerdicts(t, `
description: scores
providers: [openai:gpt-4o]
prompts: ['Say abc']
defaultTest: {vars: {x: y}}
tests:
  - {description: all must pass, assert: [{type: contains, value: a}, {type: contains, value: z}]}
  - {description: half is enough, threshold: 0.5, assert: [{type: contains, value: a}, {type: contains, value: z}]}
  - {description: half is too little, threshold: 0.6, assert: [{type: contains, value: a}, {type: contains, value: z}]}
  - {description: heavy, threshold: 0.6, assert: [{type: contains, value: a, weight: 2}, {type: contains, value: z}]}
  - {description: weight 0, assert: [{type: contains, value: a}, {type: contains, value: z, weight: 0}]}
  - {description: set, assert: [{type: assert-set, threshold: 0.5, assert: [{type: contains, value: a}, {type: contains, value: z}]}]}
  - {description: set without a threshold, assert: [{type: assert-set, assert: [{type: contains, value: a}, {type: contains, value: z}]}]}
  - {description: default threshold, threshold: 0.1, assert: [{type: javascript, value: '0.2'}]}
  - {description: no assertion can decide, assert: [{type: meteor, value: abc}]}
  - {description: cheap, assert: [{type: cost, threshold: 1}]}
  - {description: dear, assert: [{type: cost, threshold: 0}]}
  - {description: not cheap, assert: [{type: not-cost, threshold: 1}]}
  - {description: not dear, assert: [{type: not-cost, threshold: 0}]}
  - {description: not fast, assert: [{type: not-latency, threshold: 100000000}]}
  - {description: any score, threshold: 0, assert: [{type: contains, value: z}]}
  - {description: set of weight 0, assert: [{type: contains, value: a}, {type: assert-set, weight: 0, assert: [{type: meteor, value: z}]}]}
  - {description: set of weight 0 and a threshold, threshold: 1, assert: [{type: contains, value: a}, {type: assert-set, weight: 0, assert: [{type: contains, value: z}]}]}
  - {description: only weight 0, threshold: 0.5, assert: [{type: contains, value: a, weight: 0}]}
  - {description: 'only weight 0, any score', threshold: 0, assert: [{type: contains, value: z, weight: 0}]}
  - {description: set of only weight 0, assert: [{type: assert-set, threshold: 0.5, assert: [{type: contains, value: a, weight: 0}]}]}
`))
}

// Transforms can be asynchronous, and a case fails if one throws an exception or has no output.
func TestPromptfooTransforms(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]string{
		"async": "passed", "async for another": "failed", "nothing": "failed", "nothing at last": "failed", "null": "failed", "null of an output": "failed",
		"exception": "failed", "transform alone": "passed",
	}, promptfooVerdicts(t, `
description: transforms
providers: [openai:gpt-4o]
prompts: ['Say abc']
tests:
  - {description: async, options: {transform: Promise.resolve(output + 'd')}, assert: [{type: equals, value: ABCD, transform: output.toUpperCase()}]}
  - {description: async for another, options: {transform: Promise.resolve(output + 'd')}, assert: [{type: contains, value: Promise, transform: String(output)}]}
  - {description: transform alone, options: {postprocess: output + 'p', transform: output + 't'}, assert: [{type: equals, value: abct}]}
  - {description: exception, options: {transform: JSON.parse(output).text}, assert: [{type: not-contains, value: a}]}
  - {description: nothing, options: {transform: output.none}, assert: [{type: contains, value: undefined, transform: String(output)}]}
  - {description: nothing at last, options: {transform: output.trim()}, assert: [{type: not-contains, value: a, transform: output.none}]}
  - {description: 'null', options: {transform: 'null'}, assert: [{type: not-contains, value: a}]}
  - {description: null of an output, options: {transform: 'JSON.parse("null")'}, assert: [{type: not-icontains-all, value: [a]}]}
`))
}

// Code that uses names which only Node.js has runs there, also where it only looks for them: typeof fetch was "undefined", and a failure.
func TestPromptfooNeedsNode(t *testing.T) {
	t.Parallel()
	requireProgram(t, "node")
	require.Equal(t, map[string]string{
		"async": "passed", "timer": "failed", "typeof": "passed", "clone": "passed", "bare": "passed", "text": "passed", "in a text": "passed",
	}, promptfooVerdicts(t, `
description: node
providers: [openai:gpt-4o]
prompts: ['Say abc']
tests:
  - {description: async, assert: [{type: javascript, value: "(async () => new Headers().get('a') === null)()"}]}
  - {description: timer, assert: [{type: not-javascript, value: performance.now() > 0}]}
  - {description: typeof, assert: [{type: javascript, value: typeof fetch === 'function' && typeof process !== 'undefined'}]}
  - {description: clone, assert: [{type: javascript, value: "structuredClone({a: output}).a === 'abc' && new TextEncoder().encode(output).length === 3"}]}
  - {description: bare, assert: [{type: javascript, value: "const {env} = process; return new Promise(done => setTimeout(() => done(typeof env === 'object' && !!crypto.randomUUID()), 1))"}]}
  - {description: text, assert: [{type: javascript, value: "const f = globalThis['fetch'];\nreturn typeof f === 'function'"}]}
  - {description: in a text, assert: [{type: javascript, value: "({process: 1}).process === 1 && output !== 'fetch' /* setTimeout */"}]}
`))
}

// A Python assertion decides by what it returns alone.
func TestPromptfooPythonReturns(t *testing.T) {
	t.Parallel()
	requireProgram(t, "python3")
	require.Equal(t, map[string]string{"ends": "error", "ends after words": "error", "prints": "failed",
		"not throws": "failed", "not parsed": "failed", "not a result": "failed", "not a function": "error", "without a reason": "failed",
		"not without a reason": "failed"}, promptfooVerdicts(t, `
description: python
providers: [openai:gpt-4o]
prompts: ['Say abc']
tests:
  - {description: ends, assert: [{type: python, value: "import os\nos._exit(0)"}]}
  - {description: ends after words, assert: [{type: python, value: "import os\nprint('fine', flush=True)\nos._exit(0)"}]}
  - {description: prints, assert: [{type: python, value: "import atexit\natexit.register(print, '{\"score\": 1}')\nreturn False"}]}
  - {description: not throws, assert: [{type: not-python, value: 1 / 0}]}
  - {description: not parsed, assert: [{type: not-python, value: 'output =='}]}
  - {description: not a result, assert: [{type: not-python, value: 'None'}]}
  - {description: not a function, assert: [{type: not-python, value: file://none.py}]}
  - {description: without a reason, assert: [{type: python, value: "{'pass': True, 'score': 1}"}]}
  - {description: not without a reason, assert: [{type: not-python, value: "{'pass': False, 'score': 0}"}]}
-- none.py --
`))
}

// A rubric is judged by the model that the assertion, or the default test, names.
func TestPromptfooJudge(t *testing.T) {
	t.Parallel()
	judge := runnertest.NewModel(t, func(a runnertest.Asked) runnertest.Answer {
		good := strings.Contains(a.Prompt+strings.Join(a.Said, ""), "is about rain")
		score := map[bool]float64{true: 0.7, false: 0.2}[good]
		return runnertest.Answer{Tool: "submit_verdict", Arguments: map[string]any{"score": score, "passed": good, "reason": "r"}}
	})
	require.Equal(t, map[string]string{"good": "passed", "bad": "failed", "strict": "failed", "inverse": "passed"}, promptfooVerdicts(t, fmt.Sprintf(`
description: judges
providers: [openai:gpt-4o]
prompts: ['Say {{topic}}']
defaultTest: {options: {provider: {id: openai:judge-1, config: {apiBaseUrl: %q}}}}
tests:
  - {description: good, vars: {topic: rain}, assert: [{type: llm-rubric, value: 'is about {{topic}}'}]}
  - {description: bad, vars: {topic: sun}, assert: [{type: llm-rubric, value: 'is about {{topic}}'}]}
  - {description: strict, vars: {topic: rain}, assert: [{type: llm-rubric, value: 'is about {{topic}}', threshold: 0.9}]}
  - {description: inverse, vars: {topic: sun}, assert: [{type: not-llm-rubric, value: 'is about {{topic}}'}]}
`, judge.URL)))
	for _, asked := range judge.Requests() {
		require.Equal(t, "judge-1", asked.Model)
	}
}

// Each type of assertion that a judge decides passes by its own rule. The judge gives the score that the
// agent answers, and passes scores from 0.5.
func TestPromptfooJudgedTypes(t *testing.T) {
	t.Parallel()
	output := regexp.MustCompile(`<<<BEGIN output \w+>>>\n([\d.]+)`)
	judge := runnertest.NewModel(t, func(a runnertest.Asked) runnertest.Answer {
		score, err := strconv.ParseFloat(output.FindStringSubmatch(a.Prompt)[1], 64)
		return runnertest.Answer{Tool: "submit_verdict", Arguments: map[string]any{"score": score, "passed": err == nil && score >= 0.5, "reason": "r"}}
	})
	for _, c := range []struct{ assert, passes, fails string }{
		{"llm-rubric, value: a, threshold: 0.2", "0.5", "0.4"},
		{"llm-rubric, value: a, threshold: 0.7", "0.7", "0.6"},
		{"llm-rubric, rubricPrompt: 'Rate {{output}}'", "0.5", "0.4"},
		{"model-graded-closedqa, value: a", "1", "0"},
		{"not-model-graded-closedqa, value: a", "0", "1"},
		{"factuality, value: a", "1", "0"},
		{"factuality, value: a", "0.3", "0"}, // whatever the judge decides
		{"g-eval, value: a", "0.7", "0.6"},
		{"g-eval, value: [a, b]", "0.7", "0.6"},
		{"g-eval, value: a, threshold: 0.3", "0.3", "0.2"},
		{"context-recall, value: a", "0.5", "0.4"},
		{"context-relevance", "0.5", "0.4"},
		{"context-faithfulness", "0.5", "0.4"},
		{"context-recall, value: a, threshold: 0.3", "0.3", "0.2"},
		{"context-relevance, threshold: 0.3", "0.3", "0.2"},
		{"context-faithfulness, threshold: 0.3", "0.3", "0.2"},
		{"not-context-faithfulness, threshold: 0.3", "0.2", "0.3"},
		{"conversation-relevance, threshold: 0.3", "0.3", "0.2"},
		{"'trajectory:goal-success', value: a", "0.5", "0.4"},
	} {
		t.Run(c.assert, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, map[string]string{"good": "passed", "bad": "failed"}, promptfooVerdicts(t, fmt.Sprintf(`
description: judged
providers: [openai:gpt-4o]
prompts: ['Say {{answer}}']
defaultTest:
  options: {provider: {id: openai:judge-1, config: {apiBaseUrl: %q}}}
  vars: {context: c, query: q}
  assert: [{type: %s}]
tests:
  - {description: good, vars: {answer: '%s'}}
  - {description: bad, vars: {answer: '%s'}}
`, judge.URL, c.assert, c.passes, c.fails)))
		})
	}
}

// An assertion about the meaning of the output asks the embedding model of the assertion, or of the default test. The
// stand-in for a model makes the vector of a text from its numbers.
func TestPromptfooSimilar(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := map[string]bool{}
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Model string
			Input []string
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Input[0] == "refused" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		mu.Lock()
		asked[r.URL.Path+" "+body.Model] = true
		mu.Unlock()
		vectors := []string{}
		for _, text := range body.Input {
			vectors = append(vectors, "["+strings.Join(strings.Fields(text), ", ")+"]")
		}
		fmt.Fprintf(w, `{"embeddings": [%s], "data": [{"embedding": %s}], "usage": {"prompt_tokens": 5}}`,
			strings.Join(vectors, ", "), strings.Join(vectors, `}, {"embedding": `))
	}))
	t.Cleanup(model.Close)
	for _, c := range []struct{ assert, passes, fails string }{
		{"similar, value: 1 0", "4 3", "3 4"},
		{"similar, value: 1 0, threshold: 0.6", "3 4", "0 1"},
		{"not-similar, value: 1 0", "3 4", "4 3"},
		{"similar, value: [0 1, file://one.txt]", "4 3", "-1 0"},
		{"not-similar, value: [0 1, 1 0]", "-1 0", "0 1"},
		{"'similar:cosine', value: 1 0", "2 0", "1 2"},
		{"'similar:dot', value: 0.5 1, threshold: 0.8", "1 0.5", "1 0.25"},
		{"'not-similar:dot', value: 0.5 1, threshold: 0.8", "1 0.25", "1 0.5"},
		{"'similar:euclidean', value: 1 1, threshold: 5", "4 5", "5 5"},
		{"'not-similar:euclidean', value: 1 1, threshold: 5", "5 5", "1 1"},
		{"similar, value: '{{word}} 0', transform: output.slice(1)", "x4 3", "x3 4"},
		{"similar, value: 1 0, provider: {embedding: {id: 'ollama:embeddings:two', config: {apiBaseUrl: URL}}}", "4 3", "3 4"},
		{"not-similar, value: 1 0", "3 4", "''"}, // an answer without words is similar to nothing, and fails
	} {
		t.Run(c.assert, func(t *testing.T) {
			t.Parallel()
			suite := strings.ReplaceAll(fmt.Sprintf(`
description: similar
providers: [openai:gpt-4o]
prompts: ['Say {{answer}}']
defaultTest:
  options: {provider: {id: 'openai:embeddings:one', config: {apiBaseUrl: URL}}}
  vars: {word: 1}
  assert: [{type: %s}]
tests:
  - {description: good, vars: {answer: %s}}
  - {description: bad, vars: {answer: %s}}
-- one.txt --
1 0
`, c.assert, c.passes, c.fails), "URL", "'"+model.URL+"'")
			require.Equal(t, map[string]string{"good": "passed", "bad": "failed"}, promptfooVerdicts(t, suite))
		})
	}
	t.Run("costs", func(t *testing.T) {
		t.Parallel()
		res, _ := runnertest.RunAgent(t, fmt.Sprintf(`-- eval.yaml --
description: similar
providers: [openai:gpt-4o]
prompts: [Say 1 0]
defaultTest: {options: {provider: {id: 'openai:embeddings:text-embedding-3-small', config: {apiBaseUrl: %q}}}}
tests:
  - {description: good, assert: [{type: similar, value: 1 0}]}
  - {description: refused, assert: [{type: not-similar, value: refused}]}
`, model.URL), record.Request{Executor: "agent"}, answers)
		verdicts := map[string]string{}
		for _, task := range res.Tasks {
			verdicts[task.ID] = string(task.Verdict)
			if task.ID == "good" {
				spent := task.Trial(t, 1).Spent.Judges
				require.Equal(t, int64(5), spent.InputTokens)
				require.InDelta(t, 5*0.02/1e6, spent.CostUSD, 1e-12)
			}
		}
		require.Equal(t, map[string]string{"good": "passed", "refused": "error"}, verdicts)
	})
	t.Cleanup(func() {
		require.Contains(t, asked, "/embeddings one")
		require.Contains(t, asked, "/api/embed two")
	})
}

// Without a key for the embedding model, nothing is decided.
func TestPromptfooSimilarWithoutModel(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("OPENAI_BASE_URL", "")
	res, _ := runnertest.RunAgent(t, `-- eval.yaml --
description: similar
providers: [openai:gpt-4o]
prompts: [Say 1 0]
tests: [{assert: [{type: not-similar, value: 1 0}]}]
`, record.Request{Executor: "agent"}, answers)
	require.Equal(t, "error", string(res.Tasks[0].Verdict))
	require.Contains(t, res.Tasks[0].Trial(t, 1).Error, "embedding model text-embedding-3-large: the API key is missing")
}

// A judge finds the questions that the output answers, and an embedding model compares them with the query, or with the
// prompt. The stand-in for both finds three times the output, and makes the vector of a text from its numbers.
func TestPromptfooAnswerRelevance(t *testing.T) {
	t.Parallel()
	output := regexp.MustCompile(`<<<BEGIN output \w+>>>\n(.*)\n`)
	judge := runnertest.NewModel(t, func(a runnertest.Asked) runnertest.Answer {
		question := output.FindStringSubmatch(a.Prompt)[1]
		return runnertest.Answer{Tool: "submit_questions", Arguments: map[string]any{"questions": []string{question, question, question}}}
	})
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Input []string }
		if json.NewDecoder(r.Body).Decode(&body) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		var vectors []string
		for _, text := range body.Input {
			vectors = append(vectors, "["+strings.Join(strings.Fields(strings.TrimPrefix(text, "Say ")), ", ")+"]")
		}
		fmt.Fprintf(w, `{"data": [{"embedding": %s}]}`, strings.Join(vectors, `}, {"embedding": `))
	}))
	t.Cleanup(model.Close)
	require.Equal(t, map[string]string{
		"query": "passed", "other query": "failed", "threshold": "passed", "inverse": "passed", "prompt": "passed", "transform": "failed",
	}, promptfooVerdicts(t, fmt.Sprintf(`
description: relevance
providers: [openai:gpt-4o]
prompts: ['Say {{answer}}']
defaultTest: {options: {provider: {text: {id: openai:judge, config: {apiBaseUrl: %q}}, embedding: {id: openai:embeddings:e, config: {apiBaseUrl: %q}}}}}
tests:
  - {description: query, vars: {answer: 4 3, query: 1 0}, assert: [{type: answer-relevance}]}
  - {description: other query, vars: {answer: 3 4, query: 1 0}, assert: [{type: answer-relevance}]}
  - {description: threshold, vars: {answer: 3 4, query: 1 0}, assert: [{type: answer-relevance, threshold: 0.6}]}
  - {description: inverse, vars: {answer: 3 4, query: 1 0}, assert: [{type: not-answer-relevance}]}
  - {description: prompt, vars: {answer: 3 4}, assert: [{type: answer-relevance, threshold: 1}]}
  - {description: transform, vars: {answer: 4 3, query: 1 0}, options: {transform: "output.replace('4', '0')"}, assert: [{type: answer-relevance}]}
`, judge.URL, model.URL)))
}

// A server decides an assertion with the output and the context.
func TestPromptfooWebhook(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Output  any
			Context struct {
				Prompt string
				Vars   map[string]any
			}
		}
		switch {
		case json.NewDecoder(r.Body).Decode(&body) != nil || body.Context.Prompt != "Say "+fmt.Sprint(body.Context.Vars["answer"]):
			w.WriteHeader(http.StatusTeapot)
		case r.URL.Path == "/words":
			fmt.Fprint(w, `{"reason": "no verdict"}`)
		default:
			fmt.Fprintf(w, `{"pass": %v, "score": 0.75, "reason": "as it is"}`, fmt.Sprint(body.Output) == "good")
		}
	}))
	t.Cleanup(server.Close)
	require.Equal(t, map[string]string{
		"passes": "passed", "fails": "failed", "inverse": "passed", "inverse of a pass": "failed", "transform": "passed", "score": "passed",
		"score too low": "failed", "inverse score": "failed", "no verdict": "error", "no verdict, inverse": "error",
	}, promptfooVerdicts(t, strings.ReplaceAll(`
description: webhook
providers: [openai:gpt-4o]
prompts: ['Say {{answer}}']
defaultTest: {vars: {path: grade}}
tests:
  - {description: passes, vars: {answer: good}, assert: [{type: webhook, value: 'URL/{{path}}'}]}
  - {description: fails, vars: {answer: bad}, assert: [{type: webhook, value: 'URL/{{path}}'}]}
  - {description: inverse, vars: {answer: bad}, assert: [{type: not-webhook, value: URL}]}
  - {description: inverse of a pass, vars: {answer: good}, assert: [{type: not-webhook, value: URL}]}
  - {description: transform, vars: {answer: '{"a": "good"}'}, assert: [{type: webhook, value: URL, transform: JSON.parse(output).a}]}
  - {description: score, threshold: 0.75, vars: {answer: bad}, assert: [{type: webhook, value: URL}]}
  - {description: score too low, threshold: 0.8, vars: {answer: good}, assert: [{type: webhook, value: URL}]}
  - {description: inverse score, threshold: 0.5, vars: {answer: bad}, assert: [{type: not-webhook, value: URL}]}
  - {description: no verdict, vars: {answer: good}, assert: [{type: webhook, value: URL/words}]}
  - {description: 'no verdict, inverse', vars: {answer: good}, assert: [{type: not-webhook, value: URL/words}]}
`, "URL", server.URL)))
}

// A contextTransform makes the context from the output of the provider, whatever the transform of the test makes of it. The
// judge passes what contains rain.
func TestPromptfooContextTransform(t *testing.T) {
	t.Parallel()
	output := regexp.MustCompile(`(?s)<<<BEGIN output \w+>>>\n(.*)\n<<<END output`)
	judge := runnertest.NewModel(t, func(a runnertest.Asked) runnertest.Answer {
		seen := output.FindStringSubmatch(a.Prompt)[1]
		score := 0.0
		if strings.Contains(a.Prompt, "JSON object with an answer") {
			if seen == `{"answer":"wet","context":"rain\n\nsnow"}` {
				score = 1
			}
		} else if seen == "rain\n\nsnow" {
			score = 1
		}
		return runnertest.Answer{Tool: "submit_verdict", Arguments: map[string]any{"score": score, "passed": score == 1, "reason": seen}}
	})
	for _, kind := range []string{"context-recall, value: a", "context-relevance", "context-faithfulness"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, map[string]string{"good": "passed", "bad": "failed", "none": "failed", "inverse of none": "failed"},
				promptfooVerdicts(t, strings.NewReplacer("URL", judge.URL, "KIND", kind).Replace(`
description: contexts
providers: [openai:gpt-4o]
prompts: ['Say {{answer}}']
defaultTest: {vars: {query: q, context: other}, options: {transform: JSON.parse(output).answer, provider: {id: openai:judge, config: {apiBaseUrl: URL}}}}
tests:
  - {description: good, vars: {answer: '{"answer": "wet", "docs": ["rain", "snow"]}'}, assert: [{type: KIND, contextTransform: JSON.parse(output).docs}]}
  - {description: bad, vars: {answer: '{"answer": "wet", "docs": "sun"}'}, assert: [{type: KIND, contextTransform: JSON.parse(output).docs}]}
  - {description: none, vars: {answer: '{"answer": "wet"}'}, assert: [{type: KIND, contextTransform: JSON.parse(output).docs}]}
  - {description: inverse of none, vars: {answer: '{"answer": "wet"}'}, assert: [{type: not-KIND, contextTransform: JSON.parse(output).docs}]}
`)))
		})
	}
}

// Each provider gets each prompt, with its own settings, and chats have system prompts.
func TestPromptfooProviders(t *testing.T) {
	t.Parallel()
	model := runnertest.NewModel(t, func(a runnertest.Asked) runnertest.Answer {
		return runnertest.Answer{Text: fmt.Sprintf("%s: %s, %s", a.Model, a.System, a.Prompt)}
	})
	res, _ := runnertest.RunAgent(t, fmt.Sprintf(`-- eval.yaml --
description: providers
providers:
  - {id: openai:one, config: {apiBaseUrl: %q, temperature: 0.5}}
  - {id: openai:chat:two, config: {apiBaseUrl: %q}}
prompts: [file://chat.json]
tests:
  - {vars: {name: Ada}, assert: [{type: contains, value: 'one: Be kind., Greet Ada'}]}
-- chat.json --
[{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Greet {{name}}"}]
`, model.URL, model.URL), record.Request{}, nil)
	verdicts := map[string]string{}
	for _, task := range res.Tasks {
		verdicts[task.Cell.Model] = string(task.Verdict)
	}
	require.Equal(t, map[string]string{"one": "passed", "two": "failed"}, verdicts)
	for _, asked := range model.Requests() {
		require.Equal(t, asked.Model == "one", asked.Temperature != nil, asked.Model)
	}
}

// An HTTP API gets the prompt and the variables, and transformResponse makes the output of its response.
func TestPromptfooHTTP(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Messages []struct{ Role, Content string }
			Lang     string
		}
		if json.NewDecoder(r.Body).Decode(&body) != nil || len(body.Messages) != 2 {
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprint(w, `{"error": "no messages"}`)
			return
		}
		fmt.Fprintf(w, `{"choices": [{"text": %q}], "lang": %q}`, body.Messages[0].Content+" "+body.Messages[1].Content, body.Lang)
	}))
	t.Cleanup(api.Close)
	for response, verdicts := range map[string]map[string]string{
		"json.choices[0].text": {"text": "passed", "json": "failed", "python": "passed"},
		"(json, text) => ({output: text.slice(0, 0) + json.choices[0].text})": {"text": "passed", "json": "failed", "python": "passed"},
		"file://parse.js":        {"text": "passed", "json": "failed", "python": "passed"},
		"file://parse.mjs:named": {"text": "passed", "json": "failed", "python": "passed"},
		"json":                   {"text": "failed", "json": "passed", "python": "failed"},
		"":                       {"text": "failed", "json": "passed", "python": "failed"},
		"json.none":              {"text": "failed", "json": "failed", "python": "failed"},
	} {
		t.Run(response, func(t *testing.T) {
			t.Parallel()
			got := promptfooAlone(t, fmt.Sprintf(`-- eval.yaml --
description: http
providers:
  - id: https
    config: {url: %q, body: {messages: '{{prompt}}', lang: '{{lang}}'}%s}
prompts: [file://chat.json]
defaultTest: {vars: {name: 'A"da', lang: en}}
tests:
  - {description: text, assert: [{type: equals, value: 'Be kind. Greet A"da'}]}
  - {description: json, assert: [{type: javascript, value: output.lang === 'en'}, {type: is-json}]}
  - {description: python, assert: [{type: python, value: 'output.startswith("Be kind")'}]}
-- chat.json --
[{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Greet {{name}}"}]
-- parse.js --
module.exports = (json, text, context) => json.choices[0].text;
-- parse.mjs --
export function named(json) { return {output: json.choices[0].text}; }
`, api.URL, map[bool]string{true: fmt.Sprintf(", transformResponse: %q", response)}[response != ""]))
			if _, err := exec.LookPath("python3"); err != nil {
				t.Log("the verdict of Python is not compared: ", err)
				delete(got, "python")
				delete(verdicts, "python")
			}
			require.Equal(t, verdicts, got)
		})
	}
	require.Equal(t, map[string]string{"any": "passed"}, promptfooAlone(t, fmt.Sprintf(`-- eval.yaml --
description: status
providers: [{id: %q, config: {body: x}}]
prompts: [x]
tests: [{description: any, assert: [{type: javascript, value: output.error === 'no messages'}]}]
`, api.URL)))
	require.Equal(t, map[string]string{"given": "passed", "none": "passed"}, promptfooAlone(t, fmt.Sprintf(`-- eval.yaml --
description: variables
providers: [{id: %q, config: {body: '{"messages": [{"content": "{{prompt}}"}, {"content": "{{a.b}}"}], "lang": "{{lang}}", "n": {{n}}}'}}]
prompts: ["say \"hi\""]
defaultTest: {vars: {n: 1}}
tests:
  - {description: given, vars: {lang: 'e"n', a: {b: c}}, assert: [{type: javascript, value: "output.lang === 'e\"n' && output.choices[0].text === 'say \"hi\" c'"}]}
  - {description: none, assert: [{type: javascript, value: "output.lang === '' && output.choices[0].text === 'say \"hi\" '"}]}
`, api.URL)))
}

// Each provider of a file has its own request, response and prompts, and a program beside them has none of these.
func TestPromptfooSeveralHTTP(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]string
		if json.NewDecoder(r.Body).Decode(&body) != nil {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		fmt.Fprintf(w, `{"small": %q, "large": %q}`, body["question"]+r.Header.Get("Word"), body["input"]+r.Header.Get("Word"))
	}))
	t.Cleanup(api.Close)
	res, _ := runnertest.Run(t, fmt.Sprintf(`-- eval.yaml --
description: several
_base: &base {url: %q}
providers:
  - {id: 'https:small', config: {<<: *base, body: {question: '{{prompt}}'}, headers: {Word: '!'}, transformResponse: json.small}}
  - {id: 'https:large', label: large, config: {<<: *base, body: {input: '{{prompt}}'}, headers: {Word: '?'}, transformResponse: json.large}}
  - {id: echo, prompts: [other]}
prompts: [{id: usual, raw: hello}, {id: other, raw: bye}]
tests: [{description: a, assert: [{type: equals, value: 'hello!'}]}]
`, api.URL), record.Request{})
	verdicts := map[string]string{}
	for i := range res.Tasks {
		task := &res.Tasks[i]
		verdicts[task.ID] = fmt.Sprint(task.Verdict, " ", task.Model, task.Trial(t, 1).Output)
	}
	require.Equal(t, map[string]string{
		"a [usual][https:small]": `passed {"small": "hello!", "large": "!"}`, "a [other][https:small]": `failed {"small": "bye!", "large": "!"}`,
		"a [usual][large]": `failed {"small": "?", "large": "hello?"}`, "a [other][large]": `failed {"small": "?", "large": "bye?"}`,
		"a[echo]": "failed bye",
	}, verdicts)
}

// Providers that are programs get the prompt, their config and the variables of the test.
func TestPromptfooPrograms(t *testing.T) {
	t.Parallel()
	for provider, c := range map[string]struct{ program, files string }{
		"file://provider.py": {"python3", `-- provider.py --
def call_api(prompt, options, context):
    print("words")
    if prompt == "fail":
        return {"error": "no answer"}
    return {"output": " ".join([prompt, options["config"]["name"], context["vars"]["word"]]), "tokenUsage": {"prompt": 3, "completion": 4}}
`},
		"python:provider.py:ask": {"python3", `-- provider.py --
async def ask(prompt, options, context):
    return {"output": " ".join([prompt, options["config"]["name"], context["vars"]["word"]])} if prompt != "fail" else {}
`},
		"file://provider.js": {"node", `-- provider.js --
module.exports = class {
  constructor(options) { this.name = options.config.name; }
  async callApi(prompt, context) {
    console.log("words");
    return prompt === "fail" ? {error: "no answer"} : {output: [prompt, this.name, context.vars.word].join(" "), tokenUsage: {prompt: 3}};
  }
};
`},
		"file://provider.mjs": {"node", `-- provider.mjs --
export default (prompt, context, options) => {
  if (prompt === "fail") throw new Error("no answer");
  return [prompt, options.config.name, context.vars.word].join(" ");
};
`},
	} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(c.program); err != nil {
				t.Skip(c.program + " is not installed")
			}
			want := map[string]string{"1": "passed", "2": "failed", "3": "error"}
			suite := fmt.Sprintf(`-- eval.yaml --
description: programs
providers: [{id: %q, config: {name: "it's"}}]
prompts: ['{{text}}']
tests:
  - {vars: {text: greet, word: a}, assert: [{type: equals, value: "greet it's a"}]}
  - {vars: {text: greet, word: b}, assert: [{type: equals, value: "greet it's c"}]}
  - {vars: {text: fail, word: a}, assert: [{type: contains, value: a}]}
`, provider)
			require.Equal(t, want, promptfooAlone(t, suite+c.files))
		})
	}
}

// A provider that ends without an answer makes its cases errors, and only what it returns is the answer.
func TestPromptfooAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ program, file, source, verdict string }{
		{"node", "provider.js", "module.exports = () => new Promise(() => {});", "error"},
		{"node", "provider.js", "module.exports = () => process.exit(0);", "error"},
		{"node", "provider.js", "module.exports = () => { process.stdout.write('words'); return 'answer'; };", "passed"},
		{"node", "provider.js", "module.exports = class { callApi = async () => ({output: 'answer'}); };", "passed"},
		{"python3", "provider.py", "import os\n\n\ndef call_api(*args):\n    os._exit(0)", "error"},
		{"python3", "provider.py", "import sys\n\n\ndef call_api(*args):\n    sys.exit(0)", "error"},
		{"python3", "provider.py", "import os\n\n\ndef call_api(*args):\n    os.write(1, b'words')\n    return {'output': 'answer'}", "passed"},
		{"python3", "provider.py", "import os\n\n\ndef call_api(*args):\n    if os.fork() == 0:\n        os._exit(0)\n" +
			"    return {'output': 'answer' if os.wait()[1] == 0 else 'words'}", "passed"},
	} {
		t.Run(c.source, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(c.program); err != nil {
				t.Skip(c.program + " is not installed")
			}
			require.Equal(t, map[string]string{"1": c.verdict}, promptfooAlone(t, fmt.Sprintf(`-- eval.yaml --
description: answers
providers: [file://%s]
prompts: [x]
tests: [{assert: [{type: not-contains, value: words}, {type: not-equals, value: ''}]}]
-- %s --
%s
`, c.file, c.file, c.source)))
		})
	}
}

// A program gets the prompt, options and the variables of the test as arguments.
func TestPromptfooExec(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]string{"1": "passed", "2": "failed"}, promptfooAlone(t, `-- eval.yaml --
description: exec
providers: ["exec:sh -c 'echo \"$1 $2 $3\"' sh"]
prompts: [greet]
defaultTest: {assert: [{type: javascript, value: "output.startsWith('greet {} {') && JSON.parse(output.slice(9)).vars.word === 'a'"}]}
tests: [{vars: {word: a}}, {vars: {word: b}}]
`))
}

// promptfooAlone returns the verdicts of a suite with its own providers.
func promptfooAlone(t *testing.T, files string) map[string]string {
	t.Helper()
	res, _ := runnertest.Run(t, files, record.Request{})
	verdicts := map[string]string{}
	for _, task := range res.Tasks {
		verdicts[task.ID] = string(task.Verdict)
	}
	return verdicts
}

// The configuration by another author whose prompts come from a program: each assertion decides in both ways.
func TestPromptfooSharedPrograms(t *testing.T) {
	requireProgram(t, "node")
	original, err := os.ReadFile(filepath.FromSlash("../../shared/suites/formats/promptfoo-code/evals/promptfooconfig.yaml"))
	if err != nil {
		t.Skip("no shared suites beside the checkout")
	}
	dir := t.TempDir()
	for name, content := range map[string]string{
		"evals/promptfooconfig.yaml": string(original),
		"evals/prompt-loader.js": `const {readFileSync} = require("fs");
module.exports = ({vars: {prompt_file, ...rest}}) =>
	readFileSync(__dirname + "/../" + prompt_file, "utf8") + Object.entries(rest).map(([k, v]) => " " + k + "=" + v).join("");`,
		".git/HEAD":                 "", // the folder is a repository
		"src/skills/again/SKILL.md": "Review again:",
		"src/skills/tidy/SKILL.md":  "Tidy up:",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	t.Setenv("OPENAI_BASE_URL", (&runnertest.Jury{}).Serve(t))
	t.Setenv("OPENAI_API_KEY", "x")
	texts := map[string]string{"passes=5 → model plans exactly 5 initial passes": "5", "model=fast → reviewer uses haiku": "haiku"}
	for _, c := range []struct {
		answer          string
		judged, matched bool
	}{
		{"perfect: 5 with HAIKU", true, true}, {"perfect", true, false}, {"bad: 5 with haiku", false, true}, {"bad", false, false},
	} {
		var prompts sync.Map
		res := runnertest.RunFile(t, filepath.Join(dir, "evals", "promptfooconfig.yaml"), eval.Options{Executor: "agent", JudgeModel: "gpt-5"},
			record.Request{Executor: "agent"}, func(_ context.Context, trial *executor.Trial) (string, error) {
				prompts.Store(trial.Task.ID, trial.Prompt)
				return c.answer, nil
			})
		require.Len(t, res.Tasks, 11)
		for _, task := range res.Tasks {
			want := "failed"
			if c.judged && (texts[task.ID] == "" || c.matched) {
				want = "passed"
			}
			trial := task.Trial(t, 1)
			require.Equal(t, want, string(task.Verdict), "%s: %s", task.ID, trial.Error)
			for _, g := range trial.Graders {
				require.Equal(t, c.judged && g.Type == "prompt" || c.matched && g.Type != "prompt", g.Passed, "%s: %s", task.ID, g.Type)
			}
		}
		prompt, _ := prompts.Load("all=true → removes all runs")
		require.Equal(t, "Tidy up: arg_all=true arg_keep=1", prompt)
	}
}

// The configuration by another author that generates attacks is refused.
func TestPromptfooSharedSuites(t *testing.T) {
	t.Parallel()
	path := filepath.FromSlash("../../shared/suites/formats/promptfoo-plain/promptfooconfig.yaml")
	if _, err := os.Stat(path); err != nil {
		t.Skip("no shared suites beside the checkout")
	}
	_, found, err := eval.Load(path, eval.Options{})
	require.NoError(t, err)
	var errors []string
	for _, d := range found.Errors() {
		errors = append(errors, fmt.Sprintf("%d: %s", d.Line, d.Message))
	}
	require.Contains(t, errors, "16: waza cannot translate redteam: waza generates no attacks")
}

// Code of assertions loads modules beside its file, in Python and in JavaScript, and uses what only Node.js has.
func TestPromptfooModules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ program, kind, value, passes, fails string }{
		{"python3", "python", "file://checks/verdict.py", "right", "wrong"},
		{"python3", "python", "file://checks/verdict.py:later", "right", "wrong"},
		{"node", "javascript", "file://checks/verdict.cjs", "right", "wrong"},
		{"node", "javascript", "file://checks/verdict.mjs:named", "right", "wrong"},
		{"node", "javascript", "file://checks/esm.js", "right", "wrong"},
		{"node", "not-javascript", "file://checks/verdict.cjs", "wrong", "right"},
		{"node", "javascript", "'process.mainModule.require(\"path\").basename(output) === \"b\"'", "a/b", "b/a"},
		{"node", "javascript", "'new URL(output).hostname.length / 10', threshold: 0.5", "http://abcde", "http://abcd"},
		{"node", "javascript", "\"const b = Buffer.from(output);\\nreturn {pass: b.length === 1, score: 1, reason: context.vars.answer}\"", "x", "xy"},
		{"node", "javascript", "'new URL(output).hostname === context.test.metadata.host', transform: output.trim()", "  http://a ", "http://b"},
		{"node", "not-javascript", "'new URL(output).hostname === \"a\"'", "http://b", "no address"},
	} {
		t.Run(c.value, func(t *testing.T) {
			t.Parallel()
			requireProgram(t, c.program)
			suite := "description: d\nproviders: [openai:gpt-4o]\nprompts: ['Say {{answer}}']\ndefaultTest: {metadata: {host: a}}\ntests:\n"
			for name, answer := range map[string]string{"good": c.passes, "bad": c.fails} {
				suite += fmt.Sprintf("  - {description: %s, vars: {answer: %q}, assert: [{type: %s, value: %s}]}\n", name, answer, c.kind, c.value)
			}
			suite += "-- checks/verdict.py --\nfrom __future__ import annotations\nfrom dataclasses import dataclass\nimport helper\n\n\n" +
				"@dataclass\nclass Verdict:\n    ok: bool\n\n\ndef get_assert(output, context):\n    return Verdict(helper.right(output)).ok\n\n\n" +
				"async def later(output, context):\n    return context['test']['metadata']['host'] == 'a' and helper.right(output)\n" +
				"-- checks/helper.py --\ndef right(output):\n    return output == 'right'\n" +
				"-- checks/verdict.cjs --\nconst {right} = require('./helper.cjs');\nmodule.exports = output => ({pass: right(output), score: right(output) ? 1 : 0, reason: 'r'});\n" +
				"-- checks/helper.cjs --\nexports.right = output => output === 'right';\n" +
				"-- checks/verdict.mjs --\nimport { right } from '../checks/helper.cjs';\nexport const named = async output => right(output);\n" +
				"-- checks/esm.js --\nimport { right } from './other.js';\nexport default right;\n" +
				"-- checks/other.js --\nexport const right = output => output === 'right';\n"
			require.Equal(t, map[string]string{"good": "passed", "bad": "failed"}, promptfooVerdicts(t, suite))
		})
	}
}

// Code of assertions sees the metadata that a provider in a file reports with its answer, and nothing else of the response.
func TestPromptfooMetadata(t *testing.T) {
	t.Parallel()
	for provider, source := range map[string]string{
		"provider.py":  "def call_api(prompt, options, context):\n    return {'output': prompt, 'metadata': {'calls': [1, 2]}}\n",
		"provider.cjs": "module.exports = async prompt => ({output: prompt, metadata: {calls: [1, 2]}});\n",
	} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			requireProgram(t, "node")
			requireProgram(t, "python3")
			require.Equal(t, map[string]string{
				"engine": "passed", "response": "passed", "node": "passed", "python": "passed", "transformed": "passed", "wrong": "failed",
				"tokens": "error", "python tokens": "error", "answer before a transform": "error",
			}, promptfooAlone(t, strings.NewReplacer("PROVIDER", provider).Replace(`-- eval.yaml --
description: d
providers: [file://PROVIDER]
prompts: ['{{a}}']
defaultTest: {vars: {a: x}}
tests:
  - {description: engine, assert: [{type: javascript, value: context.metadata.calls.length === 2}]}
  - {description: response, assert: [{type: javascript, value: '(context.providerResponse?.metadata?.calls ?? []).length === 2 && context.providerResponse.output === "x"'}]}
  - {description: node, assert: [{type: javascript, value: file://check.cjs}]}
  - {description: python, assert: [{type: python, value: file://check.py}]}
  - {description: transformed, assert: [{type: javascript, transform: output + 'y', value: 'output === "xy" && context.metadata.calls[1] === 2'}]}
  - {description: wrong, assert: [{type: python, value: "context['metadata']['calls'] == []"}]}
  - {description: tokens, assert: [{type: javascript, value: context.providerResponse.tokenUsage.total > 0}]}
  - {description: python tokens, assert: [{type: python, value: "context['providerResponse'].get('tokenUsage') is None"}]}
  - {description: answer before a transform, assert: [{type: javascript, transform: output + 'y', value: context.providerResponse.output === 'x'}]}
-- PROVIDER --
`)+source+`-- check.cjs --
const fs = require('fs');
module.exports = (output, {providerResponse}) => providerResponse.metadata.calls[0] === 1;
-- check.py --
def get_assert(output, context):
    meta = (context.get("providerResponse") or {}).get("metadata") or {}
    return meta.get("calls") == [1, 2] and context["metadata"]["calls"][1] == 2
`))
		})
	}
}

// An assertion whose module does not exist is an error, and no verdict, also with not-.
func TestPromptfooMissingModules(t *testing.T) {
	t.Parallel()
	requireProgram(t, "node")
	requireProgram(t, "python3")
	suite := "description: d\nproviders: [openai:gpt-4o]\nprompts: ['Say {{a}}']\ntests:\n" +
		"  - {description: js, vars: {a: x}, assert: [{type: not-javascript, value: file://check.js}]}\n" +
		"  - {description: py, vars: {a: x}, assert: [{type: not-python, value: file://check.py}]}\n" +
		"-- check.js --\nrequire('no-such-module');\nmodule.exports = () => true;\n" +
		"-- check.py --\nimport no_such_module\n"
	require.Equal(t, map[string]string{"js": "error", "py": "error"}, promptfooVerdicts(t, suite))
}
