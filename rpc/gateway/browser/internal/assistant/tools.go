package assistant

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"waza/eval/text"
	"waza/rpc/gateway/internal/message"
	"waza/runner/provider"
)

// toolsFile contains the tools of extensions. Assistants refer to them by name, as capabilities.
//
//go:embed tools.json
var toolsFile embed.FS

// tools returns the tools of extensions by name, in the form for models, and the schemas of their
// arguments. It reads them at the first call.
var tools = sync.OnceValues(readTools)

func readTools() (map[string]provider.Tool, message.Schemas) {
	data, err := toolsFile.ReadFile("tools.json")
	if err != nil {
		panic(err)
	}
	var file struct {
		Defs map[string]map[string]any `json:"$defs"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		panic(err)
	}
	all := map[string]provider.Tool{}
	for name, parameters := range file.Defs {
		description, _ := parameters["description"].(string)
		delete(parameters, "description")
		all[name] = provider.Tool{Name: name, Description: description, Parameters: parameters}
	}
	names := slices.Sorted(maps.Keys(all))
	return all, message.SchemasOf(toolsFile, "tools.json", false, names...)
}

// Tools returns the sorted names of the tools that assistants can have.
func Tools() []string {
	all, _ := tools()
	return slices.Sorted(maps.Keys(all))
}

// The protocol's limits for the time of a tool.
const (
	leastToolTime = time.Second
	mostToolTime  = time.Minute
)

// toolTime returns the time limit of a tool: the one in its arguments, or else the default.
func toolTime(arguments map[string]any, otherwise time.Duration) time.Duration {
	if n, ok := arguments["timeout_ms"].(json.Number); ok {
		if ms, err := n.Int64(); err == nil {
			otherwise = time.Duration(ms) * time.Millisecond
		}
	}
	return min(max(otherwise, leastToolTime), mostToolTime)
}

// pageTime is the pause before a tool is repeated that came before the new page was ready.
const pageTime = 500 * time.Millisecond

// loadsPage reports whether a tool can load a page. Until the page is ready, its part of the
// extension gets no calls.
func loadsPage(tool string, arguments map[string]any) bool {
	enters, _ := arguments["press_enter"].(bool)
	return tool == "navigate" || tool == "click_element" || enters
}

// ToolResult is an extension's answer to an [Execution].
type ToolResult struct {
	// Status is success, error or timeout.
	Status string
	// Result is JSON; nil means none.
	Result json.RawMessage
	// Error is the reason for a failure.
	Error string
}

// isUndelivered reports whether the tool call did not reach the page, so that it can be repeated
// without being executed twice. Other errors of messages in a browser, such as a port that closed
// early, leave that open.
func (r *ToolResult) isUndelivered() bool {
	return r.Status == "error" && strings.Contains(strings.ToLower(r.Error), "receiving end does not exist")
}

// mostResult is the maximum size of a result for a model, in bytes.
const mostResult = 50_000

// mostError is the maximum size of a stored error, in bytes.
const mostError = 4000

// text returns the result of a tool as text for the model.
func (r *ToolResult) text(tool string) string {
	switch {
	case r.Status != "success":
		return "error: " + text.Clip(orElse(r.Error, "the tool failed: "+r.Status), mostError)
	case tool == "screenshot":
		return fmt.Sprintf("The screenshot was taken (%d bytes). It cannot be shown here.", len(r.Result))
	case len(r.Result) == 0 || string(r.Result) == "null":
		return "done"
	}
	var answer string
	if r.Result[0] != '"' || json.Unmarshal(r.Result, &answer) != nil {
		var compact bytes.Buffer
		if json.Compact(&compact, r.Result) != nil {
			return "done"
		}
		answer = compact.String()
	}
	if len(answer) > mostResult {
		return fmt.Sprintf("%s (shortened from %d bytes)", text.Clip(answer, mostResult), len(answer))
	}
	return answer
}

func orElse(s, otherwise string) string {
	if strings.TrimSpace(s) == "" {
		return otherwise
	}
	return s
}
