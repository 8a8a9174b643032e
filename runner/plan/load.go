package plan

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/jsonwalk"
	"waza/eval/surroundings"
	"waza/eval/text"
	"waza/runner/internal/secrets"
	"waza/runner/proc"
	"waza/runner/sandbox"
)

const (
	// maxRounds limits how often a suite is read with the results of its programs, because some programs
	// get the results of others.
	maxRounds = 30
	// maxCallTime limits one process of a program, whatever the number of its calls.
	maxCallTime = 10 * time.Minute
	// maxCallOutput and maxCallErrors limit the output of one process that waza keeps.
	maxCallOutput = 64 << 20
	maxCallErrors = 8 << 10
)

// Load is like [eval.Load], and runs the programs that return parts of the suite, such as its prompts: in the
// sandbox of the suite and in its directory. A suite with errors starts no program. The error can also be the
// cause of ctx.
func (r *Planner) Load(ctx context.Context, path string, o eval.Options) (*eval.Suite, decode.Diagnostics, error) {
	results := map[string]dialect.Result{}
	var redactor *secrets.Redactor // of the programs that ran
	for k := range maxRounds {
		o.Results = results
		suite, found, err := eval.Load(path, o)
		if err != nil || suite == nil || found.HasErrors() || len(suite.Calls()) == 0 || k == maxRounds-1 {
			return suite, redacted(found, redactor), err
		}
		c, err := newCaller(suite)
		if err != nil {
			return suite, append(found, suite.Diagnose(decode.At("config", "sandbox"), decode.Error, decode.CodeUnavailable, err.Error())), nil
		}
		redactor = &c.redactor
		err = c.run(ctx, suite.Calls(), results)
		c.sandboxes.Close()
		if err != nil {
			return suite, redacted(found, redactor), err
		}
	}
	panic("unreachable")
}

// redacted returns findings without the secrets that programs know: findings quote texts that programs return.
func redacted(found decode.Diagnostics, redactor *secrets.Redactor) decode.Diagnostics {
	if redactor == nil {
		return found
	}
	found = slices.Clone(found)
	for i := range found {
		found[i].Message, found[i].Suggestion = redactor.Text(found[i].Message), redactor.Text(found[i].Suggestion)
	}
	return found
}

// A caller runs programs that return parts of a suite.
type caller struct {
	suite     *eval.Suite
	sandboxes *sandbox.Sandboxes
	env       []string
	redactor  secrets.Redactor
}

func newCaller(s *eval.Suite) (*caller, error) {
	asked := s.Config.Sandbox
	if asked.Mode == surroundings.SandboxContainer { // an image has the agent, not the programs of the suite
		asked.Mode = surroundings.SandboxAuto
	}
	tier, err := sandbox.Choose(asked.Mode)
	if err != nil {
		return nil, err
	}
	policy, err := sandbox.PolicyOf(&asked, s.Dir)
	if err != nil {
		return nil, err
	}
	c := &caller{suite: s, env: append(s.Config.Inherited(os.Environ()), "WAZA_SUITE_DIR="+s.Dir)}
	c.redactor.Learn(c.env)
	c.sandboxes, err = sandbox.Open(tier, policy)
	return c, err
}

// run adds the results of calls. Calls of one program share a process. The error is the cause of ctx.
func (c *caller) run(ctx context.Context, calls []dialect.Call, results map[string]dialect.Result) error {
	for len(calls) > 0 {
		first := &calls[0]
		same := func(other dialect.Call) bool {
			return first.Input != "" && other.Input != "" && slices.Equal(first.Command, other.Command)
		}
		group := []dialect.Call{*first}
		rest := slices.Clone(calls[1:])
		for _, other := range rest {
			if same(other) {
				group = append(group, other)
			}
		}
		rest = slices.DeleteFunc(rest, same)
		answers, fault := c.process(ctx, group)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for i := range group {
			result := dialect.Result{Fault: fault}
			if i < len(answers) {
				result = answers[i]
			}
			result.Fault = c.redactor.Text(result.Fault)
			results[group[i].Key()] = result
		}
		calls = rest
	}
	return nil
}

// process runs a program for calls with the same command. It returns the results of the first calls, and the
// reason why the others have none.
func (c *caller) process(ctx context.Context, calls []dialect.Call) (answers []dialect.Result, fault string) {
	var input strings.Builder
	var limit time.Duration
	mark := "waza-" + rand.Text()
	if calls[0].Input != "" {
		input.WriteString(mark + "\n")
	}
	for i := range calls {
		limit += calls[i].Timeout
		if calls[i].Input != "" {
			input.WriteString(calls[i].Input + "\n")
		}
	}
	limit = min(limit, maxCallTime)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %s", limit))
	defer cancel()
	out, said := &proc.Limited{Max: maxCallOutput}, &proc.Limited{Max: maxCallErrors}
	err := proc.Run(ctx, proc.Command{
		Args: calls[0].Command, Dir: c.suite.Dir, Env: c.env, Stdin: strings.NewReader(input.String()), Stdout: out, Stderr: said,
		Sandbox: c.sandboxes.For(sandbox.View{Env: c.env, Suite: true, Read: []string{c.suite.Root(), c.suite.Dir}}),
	})
	switch {
	case ctx.Err() != nil:
		fault = context.Cause(ctx).Error()
	case err != nil:
		fault = failure(err, said.String())
	case out.Dropped > 0:
		fault = fmt.Sprintf("it returned more than %d MiB", maxCallOutput>>20)
	case calls[0].Input == "":
		return []dialect.Result{textResult(out.String(), said.String())}, ""
	default:
		fault = failure(errors.New("it ended without an answer"), said.String())
	}
	if calls[0].Input == "" {
		return nil, fault
	}
	answers, wrong := answersIn(out.String(), mark, len(calls))
	if wrong != "" {
		return answers, wrong
	}
	return answers, fault
}

// answersIn returns the answers in the output of a program, those to its first calls. Lines without the mark are
// output of programs that this one started. wrong quotes a line with the mark that is no answer, or an answer to
// no call; then the answers of the program cannot be attributed and none counts.
func answersIn(out, mark string, calls int) (answers []dialect.Result, wrong string) {
	for line := range strings.Lines(out) {
		rest, isMarked := strings.CutPrefix(line, mark+" ")
		if !isMarked {
			continue
		}
		number, size, data, ok := cutAnswer(rest)
		if ok && size != len(data) && !strings.HasSuffix(line, "\n") {
			break // it was cut off, because the program ended
		}
		answer, isAnswer := answerOf(data)
		if !ok || size != len(data) || !isAnswer || number != len(answers) || number >= calls {
			return nil, fmt.Sprintf("it wrote a line that is no answer to a call of waza: %q", text.Clip(strings.TrimSpace(rest), maxQuoted))
		}
		answers = append(answers, answer)
	}
	return answers, ""
}

// maxQuoted is the most bytes of a wrong line in a reason.
const maxQuoted = 200

// cutAnswer splits a line into the number of the call, the size of the answer, and the answer.
func cutAnswer(line string) (number, size int, data string, ok bool) {
	first, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	second, data, _ := strings.Cut(rest, " ")
	number, err := strconv.Atoi(first)
	size, serr := strconv.Atoi(second)
	return number, size, data, err == nil && serr == nil
}

// answerOf returns the result in an answer; ok is false if the text is not an answer.
func answerOf(data string) (r dialect.Result, ok bool) {
	var answer struct {
		Output json.RawMessage `json:"output"`
		Error  *string         `json:"error"`
	}
	switch err := json.Unmarshal([]byte(data), &answer); {
	case err != nil, answer.Output == nil && answer.Error == nil:
		return dialect.Result{}, false
	case answer.Error != nil:
		return dialect.Result{Fault: text.Clip(*answer.Error, maxFault)}, true
	case len(answer.Output) > decode.MaxTextBytes:
		return dialect.Result{Fault: fmt.Sprintf("it returned more than %d MiB", decode.MaxTextBytes>>20)}, true
	case jsonwalk.Depth(string(answer.Output)) > decode.MaxDepth:
		return dialect.Result{Fault: fmt.Sprintf("its value is nested more than %d levels deep", decode.MaxDepth)}, true
	}
	return dialect.Result{Output: string(answer.Output)}, true
}

// maxFault is the most bytes of a program's own error in the reason of a task.
const maxFault = 500

// ansiEscape matches sequences that color the output of terminals.
var ansiEscape = text.Pattern(`\x1b(?:[@-Z\\-_]|\[[0-?]*[ -/]*[@-~])`)

// textResult returns the result of a program whose standard output is a text. One that prints only errors has
// failed.
func textResult(out, said string) dialect.Result {
	clean := strings.TrimSpace(ansiEscape().ReplaceAllString(out, ""))
	said = strings.TrimSpace(ansiEscape().ReplaceAllString(said, ""))
	switch {
	case clean == "" && said != "":
		return dialect.Result{Fault: failure(errors.New("it printed only errors"), said)}
	case len(clean) > decode.MaxTextBytes:
		return dialect.Result{Fault: fmt.Sprintf("it printed more than %d MiB", decode.MaxTextBytes>>20)}
	}
	return dialect.Result{Output: strings.ToValidUTF8(clean, "�")}
}

// failure returns the reason of a failure with the last lines of the standard error.
func failure(err error, said string) string {
	reason := err.Error()
	if exit := (*proc.ExitError)(nil); errors.As(err, &exit) {
		reason = "it ended with " + reason
	}
	if said = strings.TrimSpace(said); said != "" {
		lines := strings.Split(said, "\n")
		reason += ": " + text.Clip(strings.Join(lines[max(0, len(lines)-3):], " | "), maxFault)
	}
	return reason
}
