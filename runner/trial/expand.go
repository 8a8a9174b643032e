package trial

import (
	"context"
	"fmt"
	"sync"

	"waza/eval"
	"waza/eval/files"
	"waza/runner/record"
)

// maxExpansion limits the total bytes of all texts of one attempt with expanded template
// variables: prompts, files, and texts for executors and graders.
const maxExpansion = 32 << 20

// expander expands the template variables of an attempt's texts. A text that becomes too long
// ends the attempt, because using a part of it would be meaningless. An expander is safe for
// concurrent use.
type expander struct {
	task *eval.Task
	vars eval.TrialVars
	end  ender // of the attempt

	mu   sync.Mutex // guards left
	left int
}

// Expand returns a function that expands the template variables of texts of an order's task like
// in its first attempt. It calls end with the reason when texts become too long.
func Expand(o *record.Order, end context.CancelCauseFunc) func(text string) string {
	return expandOf(o, 1, endFunc(end))
}

// ender ends an attempt.
type ender interface{ end(cause error) }

// endFunc is an ender.
type endFunc context.CancelCauseFunc

func (f endFunc) end(cause error) { f(cause) }

// expandOf is like [Expand], for any attempt.
func expandOf(o *record.Order, attempt int, end ender) func(text string) string {
	e := &expander{}
	e.init(o, attempt, end)
	return e.fill
}

// init prepares the expander for an attempt.
func (e *expander) init(o *record.Order, attempt int, end ender) {
	e.task, e.vars, e.end, e.left = o.Task, o.Vars(attempt), end, maxExpansion
}

// fill returns the expanded text, or "" once the attempt has ended because of the limit.
func (e *expander) fill(text string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	out, err := e.task.Expand(text, e.vars, min(e.left, eval.MaxExpandedBytes))
	switch {
	case err != nil && e.left < eval.MaxExpandedBytes:
		e.end.end(&expansionError{
			fmt.Errorf("the texts of the trial exceed %s in total after expansion of their template variables", files.Size(maxExpansion)),
		})
		return ""
	case err != nil:
		e.end.end(&expansionError{err})
		return ""
	case out != text:
		e.left -= len(out)
	}
	return out
}

// expansionError is the cause of the end of an attempt whose texts become too long.
type expansionError struct{ err error }

func (e *expansionError) Error() string { return e.err.Error() }
