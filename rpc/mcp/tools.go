package mcp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"waza/eval/jsonwalk"
	"waza/eval/text"
	"waza/rpc/internal/wire"
)

// addTools adds all tools. The first ten have the names, parameters and results of
// microsoft/waza.
func (s *server) addTools() {
	suites, runs, records := suiteTools{s}, runTools{s}, recordTools{s}
	add(s, reads, "waza_eval_list", "List suites", "List the evaluation suites (eval.yaml) below a directory.", suites.listSuites)
	add(s, reads, "waza_eval_get", "Describe a suite",
		"Describe a suite: config, tasks, and the graders that apply to all tasks.", suites.getSuite)
	add(s, reads, "waza_eval_validate", "Check a suite",
		"Check a suite and all files it refers to without running it, and whether this machine meets its "+
			"requirements. Each finding has its file and line.",
		suites.validateSuite)
	add(s, starts, "waza_eval_run", "Start a run",
		"Start a run of a suite and return its id at once. Use waza_run_status for its progress and waza_run_result "+
			"for the result. To wait for the result, call waza_run instead.",
		runs.startRun)
	add(s, reads, "waza_task_list", "List tasks", "List the tasks of a suite.", suites.listTasks)
	add(s, reads, "waza_run_status", "Status of a run",
		"Return the status of a run: running, completed, failed (it could not be carried out; failed tasks do not make it fail) or canceled.",
		runs.runStatus)
	add(s, ends, "waza_run_cancel", "Cancel a run", "Cancel a run. The results of trials that have ended are kept.", runs.cancelRun)
	add(s, reads, "waza_results_summary", "Sum up runs",
		"Sum up the recorded runs of the suites below a directory: runs, tasks, pass rate in percent, and averages of "+
			"tokens, cost in US dollars and seconds for each run.",
		records.sumUpRuns)
	addList(s, reads, "waza_results_runs", "List runs",
		"List the recorded runs of the suites below a directory, newest first. The answer is a JSON array.",
		records.listRuns)
	add(s, reads, "waza_skill_check", "Check a skill",
		"Check whether a skill is ready: its SKILL.md against the specification, description, token budget, links, and whether it has a suite.",
		suites.checkSkill)

	add(s, starts, "waza_run", "Run a suite",
		"Run a suite, or some of its tasks, and return the result: a summary, and the failures with their reasons. "+
			"Clients that ask for it get progress notifications; cancelling the call cancels the run.",
		runs.run)
	add(s, starts, "waza_attack", "Attack a suite",
		"Test whether agents that do not do the tasks can pass a suite: one that does nothing, one that repeats its prompt, and "+
			"forgers. Return the faults of the suite, each with a remedy, and the outcomes of each task. It takes seconds for each task.",
		suites.attackSuite)
	add(s, reads, "waza_run_result", "Result of a run",
		"Return the result of a run, or the results so far: a summary, its tasks with those that did not pass first, "+
			"and the reasons of failures.",
		runs.runResult)
	add(s, reads, "waza_run_transcript", "Transcript of a trial",
		"Show what the agent did in one trial of a run: prompt, answer, graders, changed files, and the transcript in "+
			"pages. Long texts are cut; ask for more with offset and max_chars.",
		runs.transcript)
	add(s, reads, "waza_run_compare", "Compare runs",
		"Report whether a run is better or worse than an earlier one, what changed in which task, and which differences may be chance.",
		runs.compareRuns)
	add(s, reads, "waza_run_history", "History of tasks",
		"Show the results of a suite's tasks over its recorded runs, the flakiest first.", runs.history)
	add(s, reads, "waza_plan", "Plan a comparison",
		"Show how many tasks and trials a comparison of two agents needs, before it runs: the chance to detect a gain, and the cost. "+
			"To answer whether one agent is better with as few trials as possible, call waza_run with decide.",
		suites.planComparison)
}

// The families of tools.
type (
	suiteTools  struct{ *server }
	runTools    struct{ *server }
	recordTools struct{ *server }
)

// Effects of tools, for clients that ask their user before a call.
var (
	reads  = sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(bool)}
	starts = sdk.ToolAnnotations{DestructiveHint: new(bool)} // a run executes agents, which can do anything
	ends   = sdk.ToolAnnotations{IdempotentHint: true, OpenWorldHint: new(bool)}
)

// maxAnswer limits the answer of a tool, in bytes of JSON, because it becomes part of the
// context of a model.
const maxAnswer = 64 << 10

// add adds a tool. Its schemas are derived from the fields of In and Out.
func add[In, Out any](
	s *server, a sdk.ToolAnnotations, name, title, doc string,
	do func(context.Context, *sdk.CallToolRequest, In) (*Out, error),
) {
	a.Title = title
	sdk.AddTool(s.mcp, &sdk.Tool{Name: name, Title: title, Description: doc, Annotations: &a},
		func(ctx context.Context, req *sdk.CallToolRequest, in In) (*sdk.CallToolResult, *Out, error) {
			out, err := do(ctx, req, in)
			r, err := s.answer(out, err)
			return r, out, err
		})
}

// addList adds a tool whose answer is an array. The answer has no structured content, which must
// be an object before the protocol of 2026.
func addList[In, Item any](
	s *server, a sdk.ToolAnnotations, name, title, doc string,
	do func(context.Context, *sdk.CallToolRequest, In) ([]Item, error),
) {
	a.Title = title
	sdk.AddTool(s.mcp, &sdk.Tool{Name: name, Title: title, Description: doc, Annotations: &a},
		func(ctx context.Context, req *sdk.CallToolRequest, in In) (*sdk.CallToolResult, any, error) {
			out, err := do(ctx, req, in)
			r, err := s.answer(out, err)
			return r, nil, err
		})
}

// answer returns the result of a tool as text, within the limits.
func (s *server) answer(out any, err error) (*sdk.CallToolResult, error) {
	if err != nil {
		return nil, errors.New(text.Clip(s.brief(err.Error()), maxFault))
	}
	encoded, err := jsonwalk.Encode(out)
	switch {
	case err != nil:
		return nil, err
	case len(encoded) > maxAnswer:
		return nil, fmt.Errorf("the answer has %d bytes, more than the limit of %d; request less", len(encoded), maxAnswer)
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(encoded)}}}, nil
}

// guard turns panics of handlers, and requests that end with the client, into error replies.
func (s *server) guard(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (res sdk.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				s.log.Error("panic", "method", method, "panic", p, "stack", string(debug.Stack()))
				res, err = nil, &jsonrpc.Error{Code: wire.CodeInternalError, Message: "Internal error"}
			}
		}()
		return next(ctx, method, req)
	}
}

// shorten cuts a text of an agent, a grader or a suite, and adds how much is missing.
func shorten(s string, most int) string {
	s = strings.TrimSpace(s)
	if len(s) <= most {
		return s
	}
	head := text.Head(s, most)
	return fmt.Sprintf("%s… (%d more bytes)", head, len(s)-len(head))
}

// maxList limits a list in an answer, in bytes of JSON.
const maxList = 40 << 10

// limitList returns the first elements of a list: at most most, and at most maxList bytes.
func limitList[T any](list []T, most int) []T {
	room := maxList
	for i := range list {
		encoded, err := jsonwalk.Encode(list[i])
		if room -= len(encoded); i == most || err != nil || room < 0 {
			return list[:i]
		}
	}
	return list
}

// round keeps four digits after the point, which is enough for every number here.
func round(f float64) float64 { return math.Round(f*1e4) / 1e4 }

func rounded(f *float64) *float64 {
	if f == nil {
		return nil
	}
	r := round(*f)
	return &r
}
