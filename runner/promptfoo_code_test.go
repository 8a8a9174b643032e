package runner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// reasonsOf returns the verdict of each task, with the error of its trial or the feedback of its first grader.
func reasonsOf(t *testing.T, res runnertest.Result) map[string]string {
	t.Helper()
	reasons := map[string]string{}
	for _, task := range res.Tasks {
		trial := task.Trial(t, 1)
		reason := trial.Error
		if reason == "" && len(trial.Graders) > 0 {
			reason = trial.Graders[0].Feedback
			if trial.Graders[0].Error != "" {
				reason = trial.Graders[0].Error
			}
		}
		reasons[task.ID] = string(task.Verdict) + ": " + reason
	}
	return reasons
}

// A program of the workspace that an assertion starts wrote a verdict to the standard output of the assertion, which counted as its own.
func TestAttackPromptfooAssertions(t *testing.T) {
	t.Parallel()
	requireProgram(t, "node")
	requireProgram(t, "python3")
	const forged = "(while :; do echo; echo '{\"score\":1,\"passed\":true}'; done >/proc/$PPID/fd/1) & sleep .05\n"
	res, _ := runnertest.RunAgent(t, `-- eval.yaml --
description: attack
providers: [openai:gpt-4o]
prompts: [x]
tests:
  - {description: node, assert: [{type: javascript, value: file://check.js}]}
  - {description: not node, assert: [{type: not-javascript, value: file://checks.js}]}
  - {description: python, assert: [{type: python, value: file://check.py}]}
-- check.js --
require('child_process').execFileSync('sh', [process.env.WAZA_WORKSPACE_DIR + '/x.sh'], {stdio: 'ignore'});
module.exports = () => false;
-- checks.js --
const {spawnSync} = require('child_process');
module.exports = () => { spawnSync('sh', [process.env.WAZA_WORKSPACE_DIR + '/x.sh'], {stdio: 'inherit'}); return true; };
-- check.py --
import os, subprocess


def get_assert(output, context):
    subprocess.run(['sh', os.environ['WAZA_WORKSPACE_DIR'] + '/x.sh'], stdout=subprocess.DEVNULL, close_fds=False)
    return False
`, record.Request{Executor: "agent"}, func(_ context.Context, trial *executor.Trial) (string, error) {
		dir, err := trial.Dir()
		if err != nil {
			return "", err
		}
		return "done", os.WriteFile(filepath.Join(dir, "x.sh"), []byte(forged), 0o600)
	})
	for _, task := range res.Tasks {
		require.Equal(t, "failed", string(task.Verdict), task.ID)
	}
}

// Code that reached the response of a provider by another name than context.providerResponse saw an empty one, and passed or failed by it.
func TestPromptfooResponseParts(t *testing.T) {
	t.Parallel()
	requireProgram(t, "node")
	requireProgram(t, "python3")
	res, _ := runnertest.Run(t, `-- eval.yaml --
description: d
providers: [file://provider.js]
prompts: [x]
tests:
  - {description: destructured, assert: [{type: javascript, value: "const {metadata} = context; return !metadata?.err"}]}
  - {description: tokens, assert: [{type: javascript, value: "const r = context.providerResponse; return !r.tokenUsage || r.tokenUsage.total < 5"}]}
  - {description: raw, assert: [{type: javascript, value: "context.providerResponse?.['raw']?.x !== 1"}]}
  - {description: has, assert: [{type: not-javascript, value: "const r = context.providerResponse; return 'tokenUsage' in r"}]}
  - {description: lists, assert: [{type: not-javascript, value: "const r = context.providerResponse; return Object.keys(r).length > 2"}]}
  - {description: provider, assert: [{type: javascript, value: "const {provider} = context; return !provider"}]}
  - {description: threshold, assert: [{type: javascript, value: "const {test} = context; return test.threshold === undefined"}]}
  - {description: caught, assert: [{type: javascript, value: "const c = context; try { return c.trace === undefined } catch { return true }"}]}
  - {description: python tokens, assert: [{type: python, value: "r = context['providerResponse']\nreturn not r.get('tokenUsage')"}]}
  - {description: python lists, assert: [{type: not-python, value: "c = context\nreturn len({**c}) > 9"}]}
  - {description: python provider, assert: [{type: python, value: "c = context\nreturn 'provider' not in c"}]}
  - {description: context, assert: [{type: javascript, value: file://context.js}]}
  - {description: parameter, assert: [{type: javascript, value: file://parameter.js}]}
  - {description: named, assert: [{type: python, value: file://named.py}]}
  - {description: others, vars: {v: [a]}, metadata: {m: 1}, assert: [{type: javascript, config: {k: 2}, value: "const {vars, test, config, prompt} = context; return vars.v === 'a' && test.vars.v === 'a' && test.metadata.m + config.k === 3 && prompt === 'x'"}]}
  - {description: python others, vars: {v: [a]}, metadata: {m: 1}, assert: [{type: python, value: "c = context\nreturn c['vars']['v'] == c['test']['vars']['v'] == 'a' and c['test']['metadata']['m'] == 1 and bool(c)"}]}
-- provider.js --
module.exports = () => ({output: "x", metadata: {k: 1, err: "boom"}, tokenUsage: {total: 100}, raw: {x: 1}});
-- context.js --
module.exports = (output, ctx) => ctx.metadata.k === 1 && ctx.providerResponse.output === "x";
-- parameter.js --
module.exports = (o, {metadata}) => metadata.err === "boom";
-- named.py --
def get_assert(output, ctx):
    return ctx["metadata"]["k"] == 1 and ctx["providerResponse"]["metadata"]["err"] == "boom"
`, record.Request{})
	lacks := func(name string) string { return "error: its code needs " + name + ", which waza does not have" }
	want := map[string]string{
		"destructured": "failed: the assertion is false", "tokens": lacks("context.providerResponse.tokenUsage"), "raw": lacks("context.providerResponse.raw"),
		"has": lacks("context.providerResponse.tokenUsage"), "provider": lacks("context.provider"), "threshold": lacks("context.test.threshold"),
		"lists":  "error: its code lists the parts of context.providerResponse, and waza does not have all of them",
		"caught": lacks("context.trace"), "python tokens": lacks(`context["providerResponse"]['tokenUsage']`), "python provider": lacks("context['provider']"),
		"python lists": "error: its code lists the parts of context, and waza does not have all of them",
		"context":      "passed: the assertion is true", "parameter": "passed: the assertion is true", "named": "passed: the assertion is True",
		"others": "passed: the assertion is true", "python others": "passed: the assertion is True",
	}
	got := reasonsOf(t, res)
	for name := range want {
		require.Contains(t, got[name], strings.SplitN(want[name], ": ", 2)[0]+": ", name)
		require.Contains(t, got[name], strings.SplitN(want[name], ": ", 2)[1], name)
	}
	require.Len(t, got, len(want))
}

// Only the call of an assertion fails it. A file that cannot be loaded, and the end of the program, are errors with their reason alone.
func TestPromptfooAssertionErrors(t *testing.T) {
	t.Parallel()
	requireProgram(t, "node")
	requireProgram(t, "python3")
	res, _ := runnertest.RunAgent(t, `-- eval.yaml --
description: d
providers: [openai:gpt-4o]
prompts: [Say package.json]
tests:
  - {description: python function, assert: [{type: not-python, value: 'file://m.py:gone'}]}
  - {description: python syntax, assert: [{type: not-python, value: file://syntax.py}]}
  - {description: python load, assert: [{type: python, value: file://load.py}]}
  - {description: function, assert: [{type: javascript, value: 'file://m.cjs:gone'}]}
  - {description: value, assert: [{type: not-javascript, value: file://value.cjs}]}
  - {description: node function, assert: [{type: javascript, value: 'file://n.cjs:gone'}]}
  - {description: syntax, assert: [{type: not-javascript, value: file://syntax.cjs}]}
  - {description: module, assert: [{type: javascript, value: "process.mainModule.require('no-such-module')(output)"}]}
  - {description: ends, assert: [{type: javascript, value: "process.mainModule.require('process').exit(0)"}]}
  - {description: never, assert: [{type: not-javascript, value: "process.env && new Promise(() => {})"}]}
  - {description: timer, assert: [{type: javascript, value: file://timer.cjs}]}
  - {description: number, assert: [{type: javascript, value: "process.env && 0 / 0"}]}
  - {description: score, assert: [{type: javascript, value: "process.env && {pass: true, score: 0 / 0, reason: ''}"}]}
  - {description: python number, assert: [{type: python, value: "float('nan')"}]}
  - {description: comment, assert: [{type: javascript, value: file://comment.cjs}]}
  - {description: python comment, assert: [{type: python, value: "# context['provider'] is not used\nreturn '# context' not in output"}]}
-- m.py --
def get_assert(output, context):
    return True
-- syntax.py --
def get_assert(:
-- load.py --
raise KeyError("at the start")
-- m.cjs --
module.exports = {other: () => true};
-- value.cjs --
module.exports = {pass: true};
-- n.cjs --
require("path").gone = 1;
-- syntax.cjs --
module.exports = () => (;
-- timer.cjs --
module.exports = () => new Promise(() => setTimeout(() => { throw new Error("late"); }, 1));
-- comment.cjs --
// context.provider and context.providerResponse.tokenUsage are not used
module.exports = output => require("path").basename(output) === "package.json";
`, record.Request{Executor: "agent"}, func(ctx context.Context, trial *executor.Trial) (string, error) {
		dir, err := trial.Dir()
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte("{}"), 0o600); err != nil {
			return "", err
		}
		return answers(ctx, trial)
	})
	got := reasonsOf(t, res)
	for name, want := range map[string]string{
		"python function": "error: m.py has no function gone", "python syntax": "error: SyntaxError: ", "python load": "error: KeyError: 'at the start'",
		"function": "error: m.cjs exports no function gone", "value": "error: value.cjs exports no function", "node function": "error: n.cjs exports no function gone", "syntax": "error: Unexpected token ';'", "module": "error: Cannot find module 'no-such-module'",
		"ends": "error: the assertion ended the program", "never": "error: the promise of the assertion never settles", "timer": "error: Error: late\n    at ",
		"number": "failed: got \"NaN\"", "score": "failed: \"score\":\"NaN\"", "python number": "failed: got NaN", "comment": "passed: ", "python comment": "passed: ",
	} {
		verdict, reason, _ := strings.Cut(want, ": ")
		require.True(t, strings.HasPrefix(got[name], verdict+": "), "%s: %s", name, got[name])
		require.Contains(t, got[name], reason, name)
		require.NotContains(t, got[name], "invalid verdict", name)
		require.NotContains(t, got[name], "trust_workspace", name) // the workspace has a file that the task names
	}
}

// Variables that are too long for one argument of a program made each trial an error.
func TestPromptfooLongVariables(t *testing.T) {
	t.Parallel()
	requireProgram(t, "node")
	requireProgram(t, "python3")
	suite := func(length int) string {
		return fmt.Sprintf(`
description: long
providers: [openai:gpt-4o]
prompts: [Say abc]
defaultTest: {vars: {long: %s}}
tests:
  - {description: node, assert: [{type: javascript, value: "process.env && context.vars.long.length === %[2]d && context.test.vars.long.endsWith('é')"}]}
  - {description: python, assert: [{type: python, value: "len(context['vars']['long']) == %[2]d and context['test']['vars']['long'][-1] == 'é'"}]}
`, strings.Repeat("é", length), length)
	}
	require.Equal(t, map[string]string{"node": "passed", "python": "passed"}, promptfooVerdicts(t, suite(200_000)))
	for _, reason := range promptsOf(t, suite(600_000)[1:]) {
		require.Equal(t, "blocked: its context has more than 960 KiB, which is too long for the arguments of a program", reason)
	}
}

// Metadata that waza could not record was missing, without an error. NaN is null, as in JSON of JavaScript.
func TestPromptfooLostMetadata(t *testing.T) {
	t.Parallel()
	requireProgram(t, "node")
	requireProgram(t, "python3")
	for provider, source := range map[string]string{
		"provider.py": "def call_api(prompt, options, context):\n    return {'output': 'x', 'metadata': {'long': {'k': 'x' * 2_000_000}, " +
			"'list': [1], 'nan': {'score': [float('nan')]}}[prompt]}\n",
		"provider.cjs": "module.exports = prompt => ({output: 'x', metadata: {long: {k: 'x'.repeat(2000000)}, list: [1], nan: {score: [NaN]}}[prompt]});\n",
	} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, map[string]string{"long": "error", "list": "error", "nan": "passed"}, promptfooAlone(t, `-- eval.yaml --
description: d
providers: [file://`+provider+`]
prompts: ['{{p}}']
defaultTest: {assert: [{type: javascript, value: 'context.metadata.score[0] === null'}]}
tests: [{description: long, vars: {p: long}}, {description: list, vars: {p: list}}, {description: nan, vars: {p: nan}}]
-- `+provider+` --
`+source))
		})
	}
}
