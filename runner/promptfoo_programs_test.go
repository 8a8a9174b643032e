package runner_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/runnertest"
)

// requireProgram skips a test on a machine without a program.
func requireProgram(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("no %s", name)
	}
}

// promptsOf returns the prompts and the reasons of blocked tasks, by task.
func promptsOf(t *testing.T, suite string) map[string]string {
	t.Helper()
	s := runnertest.Load(t, runnertest.NewRunner(t), "-- eval.yaml --\n"+suite)
	prompts := map[string]string{}
	for _, task := range s.Tasks {
		prompts[task.ID] = task.Inputs.Prompt
		if task.Inputs.SystemPrompt != "" {
			prompts[task.ID] = "system: " + task.Inputs.SystemPrompt + "; " + task.Inputs.Prompt
		}
		if task.Blocked != "" {
			prompts[task.ID] = "blocked: " + task.Blocked
		}
	}
	return prompts
}

// A program returns the prompt of each case: it gets the variables, the provider and the config.
func TestPromptfooPromptPrograms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, program, prompt, file, source, want string }{
		{"module", "node", "file://p.js", "p.js", "module.exports = ({vars, provider, config}) => `" + `${vars.a} ${provider.id} ${provider.label} ${config.k}` + "`;", "A echo me v"},
		{"default export", "node", "file://p.mjs", "p.mjs", "export default async ({vars}) => 'hi ' + vars.a;", "hi A"},
		{"named", "node", "file://p.mjs:named", "p.mjs", "export function named({vars}) { return vars.a + '!'; }", "A!"},
		{"named member", "node", "p.cjs:named", "p.cjs", "module.exports = {named: ({vars}) => vars.a + '?'};", "A?"},
		{"files beside it", "node", "file://p.js", "p.js", "module.exports = () => require('fs').readFileSync(require('path').join(__dirname, 'text.txt'), 'utf8');", "beside A\n"},
		{"rendered", "node", "file://p.js", "p.js", "module.exports = () => '{{a}} {{b.c}}';", "A 1"},
		{"a chat", "node", "file://p.js", "p.js",
			"module.exports = ({vars}) => [{role: 'system', content: 'Be {{a}}.'}, {role: 'user', content: vars.a}];", "system: Be A.; A"},
		{"a map", "node", "file://p.js", "p.js", "module.exports = () => ({prompt: 'x {{a}}'});", "x A"},
		{"a map with a chat", "node", "file://p.js", "p.js", "module.exports = () => ({prompt: [{role: 'user', content: 'y'}], config: {}});", "y"},
		{"other maps", "node", "file://p.js", "p.js", "module.exports = () => ({k: '{{a}}'});", "{\n  \"k\": \"A\"\n}"},
		{"config", "node", "file://p.js", "p.js", "module.exports = () => ({prompt: 'x', config: {temperature: 1}});",
			"blocked: the program p.js returns config.temperature: waza has no settings of providers for single prompts"},
		{"an exception", "node", "file://p.js", "p.js", "module.exports = () => { throw new Error('no ' + 1); };", "blocked: the program p.js: no 1"},
		{"no text", "node", "file://p.js", "p.js", "module.exports = () => 7;", "blocked: the program p.js must return a text, a list or a map, got 7"},
		{"no function", "node", "file://p.js:x", "p.js", "module.exports = {y: 1};", "blocked: the program p.js:x: it exports no function x"},
		{"output", "node", "file://p.js", "p.js", "console.log('{\"output\": 1}'); module.exports = () => { process.stdout.write('x'); return 'p'; };", "p"},
		{"the end", "node", "file://p.js", "p.js", "module.exports = () => process.exit(0);", "blocked: the program p.js: it ended without an answer"},
		{"never", "node", "file://p.js", "p.js", "module.exports = () => new Promise(() => {});", "blocked: the program p.js: it ended without an answer"},
		{"python", "python3", "file://p.py:create", "p.py",
			"def create(context):\n    print('noise')\n    return context['vars']['a'] + context['provider']['id'] + context['config']['k']", "Aechov"},
		{"coroutine", "python3", "file://p.py:create", "p.py", "async def create(context):\n    return [{'role': 'user', 'content': 'é{{a}}'}]", "éA"},
		{"python script", "python3", "file://p.py", "p.py", "import json, sys\nprint('x', json.loads(sys.argv[1])['vars']['a'])", "x A"},
		{"python exception", "python3", "file://p.py:create", "p.py", "def create(context):\n    return context['none']", "blocked: the program p.py:create: KeyError: 'none'"},
		{"python function", "python3", "file://p.py:create", "p.py", "x = 1", "blocked: the program p.py:create: it ended with exit status 1: it has no function create"},
		{"script", "sh", "./p.sh", "p.sh", "#!/bin/sh\necho \"got $1\" | cut -c1-30", `got {"config":{"k":"v"},"provi`},
		{"exec", "sh", "exec:sh p.sh 'a b'", "p.sh", "echo \"$1\"", "a b"},
		{"failed script", "sh", "exec:./p.sh", "p.sh", "#!/bin/sh\necho gone >&2; exit 3", "blocked: the program ./p.sh: it ended with exit status 3: gone"},
		{"only errors", "sh", "exec:./p.sh", "p.sh", "#!/bin/sh\necho gone >&2", "blocked: the program ./p.sh: it printed only errors: gone"},
		{"no file", "sh", "exec:./q.sh", "p.sh", "", "blocked: the file q.sh does not exist"},
		{"no program", "sh", "exec:no-such-program-here", "p.sh", "", "blocked: the program no-such-program-here: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			requireProgram(t, c.program)
			got := promptsOf(t, fmt.Sprintf(`description: programs
providers: [{id: echo, label: me}]
prompts: [{raw: %q, config: {k: v}}]
tests: [{description: t, vars: {a: A, b: {c: 1}}}]
-- text.txt --
beside {{a}}
-- %s --
%s
`, c.prompt, c.file, c.source))["t"]
			if c.name == "no program" || c.name == "no file" {
				require.True(t, strings.HasPrefix(got, c.want) || strings.Contains(got, "q.sh does not exist"), got)
				return
			}
			require.Equal(t, c.want, got)
		})
	}
}

// An answer belongs to its case, whatever programs that the program starts write to their standard output.
func TestPromptfooProgramsThatStartOthers(t *testing.T) {
	t.Parallel()
	requireProgram(t, "node")
	requireProgram(t, "python3")
	for _, source := range []string{
		"-- p.js --\nconst {execFileSync} = require('child_process');\nmodule.exports = ({vars}) => {\n" +
			"if (vars.x !== 'two') execFileSync('cat', ['info.json'], {stdio: 'inherit'});\nreturn 'ask ' + vars.x; };",
		"-- p.py --\nimport subprocess\ndef ask(context):\n    x = context['vars']['x']\n    if x != 'two': subprocess.run(['cat', 'info.json'])\n    return 'ask ' + x",
	} {
		file := "p.js"
		if strings.Contains(source, "p.py") {
			file = "p.py:ask"
		}
		require.Equal(t, map[string]string{"one": "ask one", "two": "ask two", "three": "ask three"}, promptsOf(t, `description: others
providers: [echo]
prompts: [file://`+file+`]
tests: [{description: one, vars: {x: one}}, {description: two, vars: {x: two}}, {description: three, vars: {x: three}}]
-- info.json --
{"output": "false"}
{"version": 1}
no end of line`+"\n"+source+"\n"), file)
	}
	// A second process that answers too makes all answers of the program uncertain.
	got := promptsOf(t, `description: twice
providers: [echo]
prompts: [file://p.py:ask]
tests: [{description: one, vars: {x: one}}, {description: two, vars: {x: two}}]
-- p.py --
import os
def ask(context):
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    return context['vars']['x']
`)
	for _, reason := range got {
		require.Contains(t, reason, `blocked: the program p.py:ask: it wrote a line that is no answer to a call of waza: "1 17 {\"output\": \"two\"}"`)
	}
}

// Findings quote texts of programs without the secrets that these know.
func TestPromptfooProgramsSecrets(t *testing.T) {
	requireProgram(t, "python3")
	const secret = "sk-4711-0123456789abcdef"
	t.Setenv("THEIR_API_KEY", secret)
	dir := t.TempDir()
	for name, content := range map[string]string{
		"promptfooconfig.yaml": "providers: [echo]\nprompts: [x]\ntests: file://t.py\n",
		"t.py":                 "import os\ndef generate_tests():\n    return [{'description': 'a', 'assert': [{'type': os.environ['THEIR_API_KEY']}]}]\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	r := runnertest.NewRunner(t)
	_, found, err := r.Planner().Load(t.Context(), filepath.Join(dir, "promptfooconfig.yaml"), eval.Options{Vocabulary: r.Planner().Vocabulary()})
	require.NoError(t, err)
	text := fmt.Sprint(found)
	require.Contains(t, text, "waza cannot decide the assertion type")
	require.NotContains(t, text, secret)
}

// Programs return the values of variables, one after the other: each gets those before it.
func TestPromptfooVariablePrograms(t *testing.T) {
	t.Parallel()
	requireProgram(t, "node")
	requireProgram(t, "python3")
	got := promptsOf(t, `description: variables
providers: [echo]
prompts: ["{{a}} {{b}} {{c.k}}"]
tests:
  - {description: chain, vars: {a: base, b: file://v.py, c: file://v.js}}
  - {description: each, vars: {a: [file://one.js, two], b: "", c: {k: ""}}}
  - {description: fault, vars: {a: file://bad.py, b: file://v.py, c: 1}}
  - {description: empty, vars: {a: file://empty.js, b: 1, c: 2}}
-- v.py --
def get_var(name, prompt, variables):
    return {"output": " " + name + "=" + variables["a"] + "/" + prompt[:5] + variables["c"] + " "}
-- v.js --
module.exports = (name, prompt, vars, provider) => ({output: {k: [name, vars.b, provider.id()].join(",")}});
-- one.js --
module.exports = async () => ({output: "one"});
-- bad.py --
def get_var(name, prompt, variables):
    return {"error": "no value"}
-- empty.js --
module.exports = () => "text";
`)
	require.Equal(t, map[string]string{
		"chain":                  "base b=base/basefile://v.js c,b=base/{{a}}file://v.js,echo",
		"each [a=file://one.js]": "one  ",
		"each [a=two]":           "two  ",
		"fault":                  "blocked: the variable a: the program bad.py: no value",
		"empty":                  "blocked: the variable a: the program empty.js must return a map with output, got text",
	}, got)
}

// Programs return tests, with a config. Their texts, variables and prompts are those of any test.
func TestPromptfooTestPrograms(t *testing.T) {
	t.Parallel()
	requireProgram(t, "node")
	requireProgram(t, "python3")
	const files = `
-- gen.py --
def generate_tests():
    return [{"description": "usual", "vars": {"w": "a"}, "assert": [{"type": "equals", "value": "a"}]}]


def create(config):
    return [{"description": config["name"] + str(i), "vars": {"w": "b"}, "assert": [{"type": "equals", "value": i}]} for i in ["b", "c"]]
-- gen.mjs --
export default async () => [{description: "js", vars: {w: "file://w.js"}, assert: [{type: "equals", value: "W"}]}];
export const list = [{description: "list", vars: {w: "x"}, assert: [{type: "equals", value: "y"}]}];
-- w.js --
module.exports = () => ({output: "W"});
`
	require.Equal(t, map[string]string{
		"usual": "passed", "n-b": "passed", "n-c": "failed", "js": "passed", "list": "failed", "own": "passed",
	}, promptfooAlone(t, "-- eval.yaml --\n"+`description: tests
providers: [echo]
prompts: ["{{w}}"]
tests:
  - file://gen.py
  - {path: "file://gen.py:create", config: {name: n-}}
  - gen.mjs
  - file://gen.mjs:list
  - {description: own, vars: {w: z}, assert: [{type: equals, value: z}]}
`+files))
	require.Equal(t, map[string]string{"n-b": "passed", "n-c": "failed"}, promptfooAlone(t, "-- eval.yaml --\n"+`description: tests
providers: [echo]
prompts: ["{{w}}"]
tests: {path: "file://gen.py:create", config: {name: n-}}
`+files))
}

// A prompt can depend on the provider only if there is one.
func TestPromptfooProgramsOfProviders(t *testing.T) {
	t.Parallel()
	requireProgram(t, "node")
	const suite = `description: providers
providers: ["exec:./a", {id: "exec:./b", label: bee}]
prompts: [file://p.js]
-- p.js --
`
	require.Equal(t, map[string]string{"1": "same"}, promptsOf(t, suite+`module.exports = () => "same";`))
	require.Equal(t, map[string]string{
		"1": "blocked: the program p.js returns different values for the providers, and waza gives all of them the same: write a file for each",
	}, promptsOf(t, suite+`module.exports = ({provider}) => provider.id;`))
}

// Programs of a suite are in its sandbox, and their keys are in no reason.
func TestAttackPromptfooPrograms(t *testing.T) {
	requireProgram(t, "python3")
	t.Setenv("EXAMPLE_API_KEY", "sk-0123456789abcdef0123")
	got := promptsOf(t, `description: attack
providers: [echo]
prompts: [file://p.py:key]
-- p.py --
import os


def key(context):
    raise ValueError(os.environ.get("EXAMPLE_API_KEY", "nothing"))
`)
	require.Contains(t, got["1"], "blocked: the program p.py:key: ValueError: ")
	require.NotContains(t, got["1"], "sk-0123456789abcdef0123")
}

// Code of options.transformVars makes variables of those of the test, before lists among them multiply it.
func TestPromptfooTransformVars(t *testing.T) {
	t.Parallel()
	requireProgram(t, "node")
	requireProgram(t, "python3")
	require.Equal(t, map[string]string{
		"one": "A AB", "list [b=x]": "A x", "list [b=y]": "A y", "lines": "A A!", "file": "A Aa", "python": "A Ap", "same id": "A true",
		"list of one": "A x-", "one of several [a=A]": "A 2", "one of several [a=B]": "B 2", "one item": "A y",
		"exception": "blocked: options.transformVars: the program vars.none.length: Cannot read properties of undefined (reading 'length')",
		"no map":    "blocked: options.transformVars: it must return variables, got 7",
	}, promptsOf(t, `
description: d
providers: [echo]
prompts: ['{{a}} {{b}}']
defaultTest: {vars: {a: A}, assert: [{type: contains, value: A}]}
tests:
  - {description: one, options: {transformVars: '{...vars, b: vars.a + "B"}'}}
  - {description: list, options: {transformVars: '{b: ["x", "y"]}'}}
  - {description: lines, options: {transformVars: "const b = vars.a + '!';\nreturn {b};"}}
  - {description: file, options: {transformVars: 'file://make.js:named'}}
  - {description: python, options: {transformVars: file://make.py}}
  - {description: same id, options: {transformVars: '({b: /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(context.uuid)})'}}
  - {description: list of one, vars: {c: [x]}, options: {transformVars: '{...vars, b: vars.c.join("-") + "-"}'}}
  - {description: one of several, vars: {a: [A, B]}, options: {transformVars: '{...vars, b: vars.a.length}'}}
  - {description: one item, vars: {c: [y]}, options: {transformVars: '{...vars, b: vars.c[0]}'}}
  - {description: exception, options: {transformVars: vars.none.length}}
  - {description: no map, options: {transformVars: '7'}}
-- make.js --
exports.named = vars => ({b: vars.a + "a"});
-- make.py --
def get_transform(vars, context):
    return {"b": vars["a"] + "p"}
`))
}

// A schema can be a value that a module exports, but not a function, which needs the output.
func TestPromptfooExportedSchema(t *testing.T) {
	t.Parallel()
	requireProgram(t, "node")
	require.Equal(t, map[string]string{
		"schema": "list", "function": "blocked: the value of is-json: the program schema.cjs:made: it exports a function, which needs the output of a case",
	}, promptsOf(t, `
description: d
providers: [echo]
prompts: [list]
tests:
  - {description: schema, assert: [{type: is-json, value: 'file://schema.cjs:answer'}]}
  - {description: function, assert: [{type: is-json, value: 'file://schema.cjs:made'}]}
-- schema.cjs --
exports.answer = {type: "array"};
exports.made = () => exports.answer;
`))
}

// Node.js runs programs in TypeScript if it can read it, and else the error names the version that can.
func TestPromptfooTypeScript(t *testing.T) {
	t.Parallel()
	requireProgram(t, "node")
	prompts := promptsOf(t, `
description: d
providers: [echo]
prompts: [file://p.ts]
tests: [{description: typed, vars: {a: A}, assert: [{type: contains, value: A}]}]
-- p.ts --
import { greet } from './greet';
export default ({vars}: {vars: Record<string, string>}): string => greet(vars.a);
-- greet.ts --
export const greet = (name: string): string => 'hi ' + name;
`)
	reads, err := exec.Command("node", "-p", "Boolean(process.features.typescript && require('module').registerHooks)").Output()
	require.NoError(t, err)
	if strings.TrimSpace(string(reads)) == "true" {
		require.Equal(t, map[string]string{"typed": "hi A"}, prompts)
		return
	}
	require.Regexp(t, `^blocked: the program p\.ts: p\.ts is TypeScript, which needs Node\.js 22\.18 or later; this is v`, prompts["typed"])
}
