package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/executor"
	"waza/runner/executor/mock"
	"waza/runner/executor/router"
	"waza/runner/plan"
	"waza/runner/runnertest"
)

// An order lists what a machine needs, whether or not this machine has it.
func TestNeeds(t *testing.T) {
	t.Parallel()
	const task = "tasks: [{id: a, prompt: x}]\n"
	with := func(config, graders string) string {
		return "-- eval.yaml --\nname: n\nconfig: {" + config + "}\ngraders: [" + graders + "]\n" + task
	}
	for _, c := range []struct{ name, files, want string }{
		{
			"built in",
			with("executor: mock", "{type: text, config: {contains: [x]}}, {type: code, config: {language: javascript, assertions: ['1']}}"),
			"",
		},
		{"a program of PATH", with("executor: command, command: [absent-program, x]", ""), "program absent-program"},
		{"for the shell", with("executor: command, command: 'absent-program x'", ""), "program sh"},
		{"an absolute path", with("executor: command, command: [/opt/absent]", ""), "program /opt/absent"},
		{"where systems keep programs", with("executor: command, command: [/usr/bin/absent]", ""), "program absent"},
		{"PATH of the suite", with("executor: command, command: [absent], env: {PATH: /opt}", ""), ""},
		{
			"a script of the suite",
			with("executor: command, command: [./agent]", "") + "-- agent --\n#!/usr/bin/env -S node --quiet\n",
			"program node",
		},
		{"a program of the suite", with("executor: command, command: [agent]", "") + "-- agent --\n\x7fELF\n", ""},
		{"a shell script", with("executor: command, command: [sh, agent.sh]", "") + "-- agent.sh --\n", "program sh"},
		{"an agent", with("executor: copilot-sdk", ""), "agent copilot"},
		{"an agent by its alias", with("executor: acp, agent: claude-code", ""), "agent claude-code"},
		{
			"an agent and its servers",
			with("executor: acp, agent: codex, mcp_servers: {a: {command: npx, args: [x]}, b: {type: http, url: 'http://localhost:1'}}", ""),
			"agent codex, program npx",
		},
		{"an agent written out", with("executor: acp, agent: {command: own-agent}", ""), "program own-agent"},
		{"a preset with arguments", with("executor: acp, agent: {preset: gemini, args: [--x]}", ""), "agent gemini"},
		{
			"a preset started otherwise",
			with("executor: acp, agent: {preset: gemini, command: ./start}", "") + "-- start --\n#!/bin/sh\n",
			"program sh",
		},
		{"a model", with("executor: openai, model: m", ""), "key OPENAI_API_KEY"},
		{"a model with a key of its own", with("executor: anthropic, model: m, api_key_env: TEAM_KEY", ""), "key TEAM_KEY"},
		{"a model of a server", with("executor: openai, model: m, base_url: 'http://localhost:1/v1'", ""), ""},
		{"a program that prints the key", with("executor: openai, model: m, api_key_command: [pass, show, x]", ""), "program pass"},
		{"assertions in Python", with("executor: mock", "{type: code, config: {assertions: ['1']}}"), "program python3"},
		{"a program that grades", with("executor: mock", "{type: program, config: {command: jq}}"), "program jq"},
		{
			"a script that grades",
			with("executor: mock", "{type: program, config: {command: ./check}}") + "-- check --\n#!/usr/bin/python3 -u\n",
			"program python3",
		},
		{
			"an older script that grades",
			with("executor: mock", "{type: program, config: {script: check.js}}") + "-- check.js --\n",
			"program node",
		},
		{"a judge", with("executor: mock, judge_model: 'anthropic:m'", "{type: prompt, config: {prompt: 'good?'}}"), "key ANTHROPIC_API_KEY"},
		{
			"judges",
			with("executor: mock", "{type: prompt, config: {prompt: 'good?', judges: [claude-x, gpt-x, gpt-y]}}"),
			"key ANTHROPIC_API_KEY, key OPENAI_API_KEY",
		},
		{"an agent that judges", with("executor: mock", "{type: prompt, config: {prompt: 'good?', judge: {agent: codex}}}"), "agent codex"},
		{
			"a model that chooses clients",
			with("executor: router, model: claude-x, router: {clients: [{name: a, description: d}]}", ""),
			"key ANTHROPIC_API_KEY",
		},
		{
			"a checkpoint",
			"-- eval.yaml --\nname: n\nconfig: {executor: mock}\ntasks:\n- id: a\n  inputs:\n    prompt: x\n    " +
				"checkpoints: [{after_turn: 1, graders: [{type: program, config: {command: jq}}]}]\n",
			"program jq",
		},
		{
			"a user",
			"-- eval.yaml --\nname: n\nconfig: {executor: mock, judge_model: gpt-x}\ntasks:\n- id: a\n  inputs:\n    " +
				"prompt: x\n    responder: {instructions: i, max_followups: 1}\n",
			"key OPENAI_API_KEY",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := runnertest.PlanOf(t, runnertest.NewRunner(t), c.files)
			defer p.Close()
			require.Equal(t, c.want, needsOf(p))
		})
	}
}

// needsOf returns the needs of the orders of the first task, on one line.
func needsOf(p *plan.Plan) string {
	o := p.Order(p.Tasks[0], "run", 1)
	var words []string
	for _, n := range o.Needs {
		words = append(words, string(n.Kind)+" "+n.Name)
	}
	return strings.Join(words, ", ")
}

// Kinds of executors that other machines may lack are needs, too.
func TestNeedsOfKinds(t *testing.T) {
	t.Parallel()
	own := mock.Kind
	own.Name, own.Aliases = "own", nil
	r, err := runner.New(runner.Options{StateDir: t.TempDir(), Executors: plan.Executors.With(own)})
	require.NoError(t, err)
	p := runnertest.PlanOf(t, r, "-- eval.yaml --\nname: n\nconfig: {executor: own}\ntasks: [{id: a, prompt: x}]\n")
	defer p.Close()
	require.Equal(t, "executor own", needsOf(p))
}

// Executors whose agents connect to this machine report it.
func TestStays(t *testing.T) {
	t.Parallel()
	var stay []string
	for _, name := range plan.Executors.Names() {
		k, _ := plan.Executors.Lookup(name)
		if k.LocalReason != nil && k.LocalReason(executor.Settings{Options: k.Options()}) != "" {
			stay = append(stay, name)
		}
	}
	require.Equal(t, []string{"remote", "browser"}, stay)
	k, _ := plan.Executors.Lookup("router")
	require.NotEmpty(t, k.LocalReason(executor.Settings{Options: &router.Options{Router: router.Router{Live: true}}}))
}
