package rpc_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.lsp.dev/protocol"

	"waza/rpc"
	"waza/rpc/internal/lsp"
	"waza/runner/record/recordtest"
)

// languageShapes are the types of the server's messages in the Language Server Protocol: the
// params of its own messages, and the results of the client's requests.
var languageShapes = map[string]reflect.Type{
	"textDocument/publishDiagnostics": reflect.TypeFor[protocol.PublishDiagnosticsParams](),
	"textDocument/completion":         reflect.TypeFor[protocol.CompletionList](),
	"textDocument/hover":              reflect.TypeFor[protocol.Hover](),
	"textDocument/definition":         reflect.TypeFor[protocol.DefinitionResult](),
	"textDocument/documentSymbol":     reflect.TypeFor[protocol.DocumentSymbolResult](),
	"textDocument/documentLink":       reflect.TypeFor[[]protocol.DocumentLink](),
	"textDocument/codeLens":           reflect.TypeFor[[]protocol.CodeLens](),
	"client/registerCapability":       reflect.TypeFor[protocol.RegistrationParams](),
	"window/showMessage":              reflect.TypeFor[protocol.ShowMessageParams](),
	"window/showDocument":             reflect.TypeFor[protocol.ShowDocumentParams](),
	"window/workDoneProgress/create":  reflect.TypeFor[protocol.WorkDoneProgressCreateParams](),
	"$/progress":                      reflect.TypeFor[protocol.ProgressParams](),
	"textDocument/codeAction":         reflect.TypeFor[[]protocol.CommandOrCodeAction](),
}

// checkLanguage checks a line of the server against the types of the protocol: members that the
// types lack disappear when the line is decoded and encoded again.
func checkLanguage(t testing.TB, sent, asked string, params, result json.RawMessage) {
	t.Helper()
	name, raw := sent, params
	if sent == "" {
		name, raw = asked, result
	}
	if raw == nil || string(raw) == "null" || name == "workspace/executeCommand" {
		return
	}
	shape, ok := languageShapes[name]
	require.True(t, ok, "no type for %s: %s", name, raw)
	v := reflect.New(shape).Interface()
	require.NoError(t, protocol.Unmarshal(raw, v), "%s", raw)
	again, err := protocol.Marshal(v)
	require.NoError(t, err)
	require.JSONEq(t, string(raw), string(again))
}

const commandSuite = `
-- eval.yaml --
name: demo
config: {executor: mock, mock: {latency_ms: 1, replies: [{match: good, output: "yes"}, {output: "no"}]}}
graders: [{type: text, name: says_yes, config: {contains: ["yes"]}}]
tasks: [{id: "a[1]", prompt: good}, {id: b, prompt: bad}]
-- slow/eval.yaml --
name: slow
config: {executor: mock, mock: {latency_ms: 600000}}
graders: [{type: text, name: says_yes, config: {contains: ["yes"]}}]
tasks: [{id: a, prompt: good}]
`

// editor connects a client with these capabilities.
func editor(t *testing.T, capabilities string) (c *client, dir string) {
	t.Helper()
	c, dir = stdio(t, newServer(t, rpc.Options{})), write(t, commandSuite)
	c.must("initialize", json.RawMessage(`{"processId":null,"rootUri":"file://`+dir+`","capabilities":`+capabilities+`}`), nil)
	return c, dir
}

// command executes a command and decodes its result.
func (c *client) command(name string, argument, result any) {
	c.Helper()
	c.must("workspace/executeCommand", map[string]any{"command": name, "arguments": []any{argument}}, result)
}

// until reads lines up to one that contains a text, and returns them.
func (c *client) until(text string) []string {
	c.Helper()
	var list []string
	for {
		line, ok := c.line()
		require.True(c, ok, "the output has ended before %s", text)
		list = append(list, line)
		if strings.Contains(line, text) {
			return list
		}
	}
}

type started struct{ RunID, Status string }

// After the reply, the progress of a run started by a command is reported.
func TestRunCommandShowsProgress(t *testing.T) {
	t.Parallel()
	c, dir := editor(t, `{"textDocument":{},"window":{"workDoneProgress":true}}`)
	var run started
	c.command(lsp.CommandRun, map[string]any{"path": "file://" + dir + "/eval.yaml"}, &run)
	require.Equal(t, "running", run.Status)
	before := c.until("window/workDoneProgress/create")
	require.Contains(t, before[len(before)-1], `"params":{"token":"waza-`+run.RunID+`"}`)
	c.send(`{"jsonrpc":"2.0","id":"waza-1","result":null}` + "\n")
	lines := slices.Concat(before, c.until(`"kind":"end"`))
	shown, complete := []string{}, 0
	for _, line := range lines {
		if strings.Contains(line, `"$/progress"`) {
			shown = append(shown, line)
		}
		if strings.Contains(line, `"eval.complete"`) {
			complete++
		}
	}
	require.Contains(t, shown[0], `"value":{"kind":"begin","title":"waza: demo","cancellable":true,"percentage":0}`)
	require.Contains(t, shown[len(shown)-1], `"value":{"kind":"end","message":"1/2 tasks passed"}`)
	if complete == 0 {
		c.until(`"eval.complete"`)
	}
}

// Cancelling the progress cancels the run.
func TestProgressIsCancelled(t *testing.T) {
	t.Parallel()
	c, dir := editor(t, `{"textDocument":{},"window":{"workDoneProgress":true}}`)
	var run started
	c.command(lsp.CommandRun, map[string]any{"path": filepath.Join(dir, "slow")}, &run)
	c.until("window/workDoneProgress/create")
	c.send(`{"jsonrpc":"2.0","id":"waza-1","result":null}` + "\n")
	c.until(`"kind":"begin"`)
	c.send(`{"jsonrpc":"2.0","method":"window/workDoneProgress/cancel","params":{"token":"waza-` + run.RunID + `"}}` + "\n")
	lines := c.until(`"kind":"end"`)
	require.Contains(t, lines[len(lines)-1], "the run was cancelled")
}

// A client that cannot show progress gets a message at the end. Ids with characters of globs
// match their task.
func TestRunCommandTellsTheEnd(t *testing.T) {
	t.Parallel()
	c, dir := editor(t, `{"textDocument":{}}`)
	var run started
	c.command(lsp.CommandDebug, map[string]any{"path": dir + "/eval.yaml", "tasks": []string{"a[1]"}, "trials": 3}, &run)
	lines := c.until("window/showMessage")
	require.Contains(t, lines[len(lines)-1], `"params":{"type":3,"message":"waza: demo: 1/1 tasks passed"}`)
	var result recordtest.Result
	c.must("run.result", map[string]any{"runId": run.RunID}, &result)
	require.Len(t, result.Tasks, 1)
	require.Len(t, result.Task(t, "a[1]").Trials, 1)
}

func TestCancelCommand(t *testing.T) {
	t.Parallel()
	c, dir := editor(t, `{"textDocument":{}}`)
	var cancelled struct{ RunIDs []string }
	c.command(lsp.CommandCancel, map[string]any{}, &cancelled)
	require.Empty(t, cancelled.RunIDs)
	var one, two started
	c.command(lsp.CommandRun, map[string]any{"path": filepath.Join(dir, "slow")}, &one)
	c.command(lsp.CommandRun, map[string]any{"path": filepath.Join(dir, "slow")}, &two)
	c.command(lsp.CommandCancel, map[string]any{"runId": one.RunID}, &cancelled)
	require.Equal(t, []string{one.RunID}, cancelled.RunIDs)
	c.command(lsp.CommandCancel, nil, &cancelled)
	require.Contains(t, cancelled.RunIDs, two.RunID)
	c.until(two.RunID)
}

func TestCompareAndShowCommands(t *testing.T) {
	t.Parallel()
	c, dir := editor(t, `{"textDocument":{},"window":{"showDocument":{"support":true}}}`)
	suite := filepath.Join(dir, "eval.yaml")
	m := c.call("workspace/executeCommand", map[string]any{"command": lsp.CommandCompare, "arguments": []any{map[string]any{"path": suite}}})
	require.Contains(t, m.Error.Message, "fewer than two runs")
	first := c.start(map[string]any{"path": suite})
	c.follow(first)
	second := c.start(map[string]any{"path": suite})
	c.follow(second)
	for _, argument := range []map[string]any{{"path": suite}, {"run": second}, {"run": second, "base": first}} {
		var compared struct{ Runs []struct{ RunID string } }
		c.command(lsp.CommandCompare, argument, &compared)
		require.Len(t, compared.Runs, 2)
		require.Equal(t, first, compared.Runs[0].RunID)
		require.Equal(t, second, compared.Runs[1].RunID)
	}

	id := c.request("workspace/executeCommand",
		map[string]any{"command": lsp.CommandShowRun, "arguments": []any{map[string]any{"runId": second, "taskId": "a[1]"}}})
	line := c.until("window/showDocument")[0]
	require.Contains(t, line, second+`.html#task/a%5B1%5D","external":true}`)
	c.send(`{"jsonrpc":"2.0","id":"waza-1","result":{"success":true}}` + "\n")
	m, _ = c.collect(id)
	var shown struct {
		File  string
		Shown bool
	}
	require.NoError(t, json.Unmarshal(m.Result, &shown))
	require.True(t, shown.Shown)
	html, err := os.ReadFile(shown.File)
	require.NoError(t, err)
	require.Contains(t, string(html), "<!doctype html>")

	m = c.call("workspace/executeCommand", map[string]any{"command": "waza.rnu"})
	require.Equal(t, "waza.run", m.Error.Data["suggestion"])
	m = c.call("workspace/executeCommand", map[string]any{"command": lsp.CommandRun, "arguments": []any{map[string]any{"pth": suite}}})
	require.Equal(t, "path", m.Error.Data["suggestion"])
}
