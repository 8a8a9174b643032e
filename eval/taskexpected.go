package eval

import (
	"math"
	"slices"
	"strings"

	"waza/eval/decode"
	"waza/eval/text"
)

// expectedCheck checks the expectations of a task that waza grades without a grader of the suite.
type expectedCheck struct{ *Check }

func (c *taskCheck) expected() expectedCheck {
	return expectedCheck{
		&Check{loader: c.loader, src: c.src, options: decode.Lookup(c.node, "expected"), decl: c.node, label: "expected", task: c.task},
	}
}

func (c expectedCheck) check() {
	e := c.task.Expected
	if e == nil {
		return
	}
	for i, p := range e.Matches {
		c.Regexp(decode.At("matches", i), p)
	}
	if e.ToolCalls != nil {
		c.checkToolCalls("required", e.ToolCalls.Required)
		c.checkToolCalls("forbidden", e.ToolCalls.Forbidden)
	}
	c.checkRecipients()
	for i, o := range e.Outcomes {
		at := decode.At("outcomes", i)
		switch {
		case o.Type != OutcomeCompleted && o.Type != OutcomeToolCalled:
			c.Warnf(append(at, "type"), decode.CodeNoEffect,
				"outcome %q is not graded; waza grades task_completed and tool_called", text.Clip(o.Type, 60))
		case o.Type == OutcomeToolCalled && o.CalledTool() == "":
			c.Warnf(append(at, "type"), decode.CodeNoEffect, "tool_called has no effect without tool_name")
		case o.Type == OutcomeCompleted && o.ToolName+o.Value != "":
			c.Warnf(at, decode.CodeNoEffect, "tool_name and value have no effect with `type: task_completed`")
		}
	}
}

// checkRecipients checks the clients that must receive the message.
func (c expectedCheck) checkRecipients() {
	e := c.task.Expected
	clients, known := c.loader.executors().clientsOf()
	if e.Recipients == nil || !known {
		return
	}
	if clients == nil {
		c.Warnf(decode.At("recipients"), decode.CodeNoEffect,
			"recipients has no effect with executor %s: it has no clients",
			text.Clip(c.loader.suite.Config.Executor, 60))
		return
	}
	names, others := clients.ClientNames()
	seen := map[string]bool{}
	for i, name := range e.Recipients {
		at, folded := decode.At("recipients", i), strings.ToLower(name)
		switch is := func(n string) bool { return strings.EqualFold(n, name) }; {
		case strings.TrimSpace(name) == "":
			c.Errorf(at, decode.CodeInvalidValue, "recipients[%d] is empty", i)
		case seen[folded]:
			c.Warnf(at, decode.CodeNoEffect, "recipients[%d] has no effect: %q is already in the list", i, text.Clip(name, 80))
		case !others && !slices.ContainsFunc(names, is):
			c.Suggestf(at, decode.Error, decode.CodeInvalidValue, decode.Nearest(name, names),
				"recipients[%d]: unknown client %q; config.router.clients has %s", i, text.Clip(name, 80),
				text.Clip(strings.Join(names, ", "), 300))
		}
		seen[folded] = true
		for _, n := range names { // spelled as in the suite
			if strings.EqualFold(n, name) {
				e.Recipients[i] = n
			}
		}
	}
}

func (c expectedCheck) checkToolCalls(key string, calls []ExpectedToolCall) {
	n := 0
	for i, call := range calls {
		if call.Tool == "" && len(call.Arguments) == 0 && call.Pattern == "" && call.ArgsPattern == "" {
			c.Errorf(decode.At("tool_calls", key, i), decode.CodeChecksNothing,
				"tool_calls.%s[%d] needs at least one of tool, arguments, pattern and args_pattern", key, i)
		}
		if n += min(max(call.Count, 1), MaxExpectedCalls+1); n > MaxExpectedCalls && key == "required" {
			c.Errorf(decode.At("tool_calls", key, i), decode.CodeTooLarge, "tool_calls.%s requires more than %d calls", key, MaxExpectedCalls)
			n = math.MinInt // report it once
		}
		c.Regexp(decode.At("tool_calls", key, i, "pattern"), call.Pattern)
		c.Regexp(decode.At("tool_calls", key, i, "args_pattern"), call.ArgsPattern)
	}
}
