package telemetry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"waza/runner/record"
)

// Names from the semantic conventions for generative AI, which are in development:
// https://opentelemetry.io/docs/specs/semconv/gen-ai/
const (
	operationName  = "gen_ai.operation.name"
	providerName   = "gen_ai.provider.name"
	agentName      = "gen_ai.agent.name"
	requestModel   = "gen_ai.request.model"
	inputTokens    = "gen_ai.usage.input_tokens"
	outputTokens   = "gen_ai.usage.output_tokens"
	inputMessages  = "gen_ai.input.messages"
	outputMessages = "gen_ai.output.messages"
	toolName       = "gen_ai.tool.name"
	toolCallID     = "gen_ai.tool.call.id"
	toolArguments  = "gen_ai.tool.call.arguments"
	toolResult     = "gen_ai.tool.call.result"
	evaluated      = "gen_ai.evaluation.result" // name of an event
	evaluationName = "gen_ai.evaluation.name"
	scoreValue     = "gen_ai.evaluation.score.value"
	scoreLabel     = "gen_ai.evaluation.score.label"
	errorType      = "error.type"
)

// maxToolSpans is the maximum number of spans for tool calls of one attempt.
const maxToolSpans = 1000

// maxText is the maximum length of exported content, in bytes.
const maxText = 16 << 10

// modelExecutors maps executors that ask a model directly to the name of its provider.
var modelExecutors = map[string]string{"openai": "openai", "anthropic": "anthropic"}

// span is an open span, and the context for its children.
type span struct {
	trace.Span
	ctx context.Context
}

// tracedRun converts the events of a run to spans. It must not be used concurrently.
//
// Spans of a run and its tasks start and end with their events. Spans of a trial are created at
// its end, because its result contains all times.
type tracedRun struct {
	traces *Traces
	record *record.Run
	run    span
	tasks  map[int]span // running tasks, by number
	ended  int          // spans that ended since the last flush
}

func (r *tracedRun) handle(e *record.Event) {
	switch e.Type {
	case record.RunStart, record.RunResumed:
		r.startRun(e)
	case record.TaskStart:
		r.tasks[e.TaskNum] = r.child(r.run.ctx, "task "+e.TaskID, e.Time, r.taskAttributes(e)...)
	case record.TrialComplete:
		r.trial(e)
	case record.TaskComplete:
		r.endTask(e)
	case record.End:
		r.end(e)
	}
}

// child starts a span in the span of ctx. A nil context means that the start of the run was not
// received.
func (r *tracedRun) child(ctx context.Context, name string, at time.Time, attributes ...attribute.KeyValue) span {
	ctx = cmp.Or(ctx, context.Background())
	ctx, s := r.traces.tracer.Start(ctx, name, trace.WithTimestamp(at), trace.WithAttributes(attributes...))
	return span{s, ctx}
}

func (r *tracedRun) finish(s span, at time.Time) {
	s.End(trace.WithTimestamp(at))
	if r.ended++; r.ended >= flushEvery {
		r.ended = 0
		r.traces.flush()
	}
}

func (r *tracedRun) startRun(e *record.Event) {
	c := &r.record.Config
	r.run = r.child(context.Background(), "run "+r.record.Suite.Name, e.Time,
		attribute.String("waza.run.id", r.record.RunID),
		attribute.String("waza.suite.name", r.record.Suite.Name),
		attribute.String("waza.executor", c.Executor),
		attribute.Int("waza.tasks", len(r.record.Tasks)),
		attribute.Bool("waza.resumed", e.Type == record.RunResumed),
	)
	r.run.setText(agentName, c.Agent)
	r.run.setText(requestModel, c.Model)
	r.run.setText("waza.suite.skill", r.record.Suite.Skill)
	r.run.setText("waza.fleet", r.record.Fleet)
}

func (r *tracedRun) end(e *record.Event) {
	if r.run.Span == nil {
		return
	}
	for num, t := range r.tasks { // still running at the end of the run
		r.finish(t, e.Time)
		delete(r.tasks, num)
	}
	r.run.SetAttributes(attribute.String("waza.status", string(e.Status)))
	if s := e.Summary; s != nil {
		r.run.SetAttributes(
			attribute.Int("waza.trials.passed", s.Trials.Passed), attribute.Int("waza.trials.failed", s.Trials.Failed),
			attribute.Int("waza.trials.errors", s.Trials.Errors), attribute.Int("waza.trials.timeouts", s.Trials.Timeouts),
		)
		r.run.setUsage(s.Usage)
	}
	if e.Status == record.StatusFailed {
		r.fault(r.run, "run_failed", e.Error)
	}
	r.finish(r.run, e.Time)
}

// fault marks an error of the harness. A failure of the agent is not an error.
func (r *tracedRun) fault(s span, kind, message string) {
	s.SetAttributes(attribute.String(errorType, kind))
	if !r.traces.options.Contents {
		message = "" // it can quote the agent
	}
	s.SetStatus(codes.Error, clip(message))
}

func (r *tracedRun) verdict(s span, v record.Verdict, message string) {
	s.SetAttributes(attribute.String("waza.verdict", string(v)))
	if v == record.Errored || v == record.TimedOut {
		r.fault(s, string(v), message)
	}
}

func (r *tracedRun) taskAttributes(e *record.Event) []attribute.KeyValue {
	list := []attribute.KeyValue{
		attribute.String("waza.task.id", e.TaskID), attribute.String("waza.task.name", e.TaskName), attribute.Int("waza.trials", e.TotalTrials),
	}
	if e.Role != record.RoleTask {
		list = append(list, attribute.String("waza.task.role", string(e.Role)))
	}
	if cell := r.cell(e); cell != nil {
		list = append(list, attribute.String("waza.cell", cell.Name))
	}
	return list
}

// task returns the task to which an event belongs, or nil for an event of the run.
func (r *tracedRun) task(e *record.Event) *record.TaskRef {
	if e.TaskNum < 1 || e.TaskNum > len(r.record.Tasks) {
		return nil
	}
	return &r.record.Tasks[e.TaskNum-1]
}

// cell returns the cell of the matrix to which an event belongs, or nil without a matrix.
func (r *tracedRun) cell(e *record.Event) *record.Cell {
	if t := r.task(e); t != nil {
		return t.Cell
	}
	return nil
}

func (r *tracedRun) endTask(e *record.Event) {
	t, ok := r.tasks[e.TaskNum]
	if !ok {
		return // none of its trials started
	}
	delete(r.tasks, e.TaskNum)
	message := ""
	if e.Task != nil {
		message = e.Task.Error
		t.setUsage(e.Task.Usage)
	}
	if e.Score != nil {
		t.SetAttributes(attribute.Float64("waza.score", *e.Score))
	}
	r.verdict(t, e.Verdict, message)
	r.finish(t, e.Time)
}

// trial creates the spans of a trial. A trial that never started, or was reused from a different
// run, has none.
func (r *tracedRun) trial(e *record.Event) {
	t := e.Trial
	if t == nil || t.StartedAt.IsZero() || t.Cached != nil {
		return
	}
	parent := r.run.ctx
	if task, ok := r.tasks[e.TaskNum]; ok {
		parent = task.ctx
	}
	name := r.agent()
	s := r.child(parent, "invoke_agent "+name, t.StartedAt,
		attribute.String(operationName, "invoke_agent"), attribute.String(agentName, name),
		attribute.String("waza.task.id", e.TaskID), attribute.Int("waza.trial", t.TrialNum),
		attribute.Int64("waza.executor.duration_ms", t.ExecutorMS), attribute.Int64("waza.executor.startup_ms", t.StartupMS),
	)
	model := r.model(e)
	s.setText(requestModel, model)
	if l := t.Ledger(); l != nil {
		s.setUsage(l.Agent)
		if l.Responder != nil && l.Responder.CostUSD > 0 {
			s.SetAttributes(attribute.Float64("waza.usage.responder_cost_usd", l.Responder.CostUSD))
		}
		if l.Judges != nil && l.Judges.CostUSD > 0 {
			s.SetAttributes(attribute.Float64("waza.usage.judge_cost_usd", l.Judges.CostUSD))
		}
	}
	if t.Score != nil {
		s.SetAttributes(attribute.Float64("waza.score", *t.Score))
	}
	if r.traces.options.Contents {
		s.setMessages(t.Prompt, t.Output)
	}
	end := t.StartedAt.Add(milliseconds(t.DurationMS))
	r.attempts(s, model, t, end)
	r.evaluations(s, t, end)
	r.verdict(s, t.Verdict, t.Error)
	r.finish(s, end)
}

// agent returns the name of the agent that executed the trials.
func (r *tracedRun) agent() string {
	if name := r.record.Config.Agent; name != "" {
		return name
	}
	return r.record.Config.Executor
}

func (r *tracedRun) model(e *record.Event) string {
	if t := r.task(e); t != nil {
		return r.record.ModelOf(t)
	}
	return r.record.Config.Model
}

// attempts creates the spans of the agent's work. If a trial was retried, each attempt has a
// span. The spans follow each other without gaps, because the pauses between attempts are not
// recorded.
func (r *tracedRun) attempts(s span, model string, t *record.Trial, end time.Time) {
	at := t.StartedAt
	for i := range t.Attempts {
		a := &t.Attempts[i]
		next := earlier(at.Add(milliseconds(a.DurationMS)), end)
		as := r.attempt(s, i+1, at)
		r.tools(as, a.Transcript, at, next)
		r.verdict(as, a.Verdict, a.Error)
		r.finish(as, next)
		at = next
	}
	last := s
	if len(t.Attempts) > 0 {
		last = r.attempt(s, len(t.Attempts)+1, at)
	}
	r.chat(last, model, t, at, end)
	r.tools(last, t.Transcript, at, end)
	if len(t.Attempts) > 0 {
		r.verdict(last, t.Verdict, t.Error)
		r.finish(last, end)
	}
}

func (r *tracedRun) attempt(s span, n int, at time.Time) span {
	return r.child(s.ctx, fmt.Sprintf("attempt %d", n), at, attribute.Int("waza.attempt", n))
}

// chat creates a single span for all model calls of an executor that asks models directly,
// because the times of the calls are not recorded.
func (r *tracedRun) chat(s span, model string, t *record.Trial, at, end time.Time) {
	provider := modelExecutors[r.record.Config.Executor]
	if provider == "" {
		return
	}
	at = at.Add(milliseconds(t.StartupMS))
	ctx, c := r.traces.tracer.Start(s.ctx, "chat "+
		model, trace.WithTimestamp(at), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String(operationName, "chat"), attribute.String(providerName, provider), attribute.String(requestModel, model)))
	call := span{c, ctx}
	call.setUsage(t.Usage)
	if t.Speed != nil {
		call.SetAttributes(attribute.Int("waza.requests", t.Speed.Requests), attribute.Int("waza.retries", t.Speed.Retries),
			attribute.Float64("waza.first_token_ms", t.Speed.FirstTokenMS))
	}
	if !record.Finished(t.Graders) && (t.Verdict == record.Errored || t.Verdict == record.TimedOut) {
		r.fault(call, string(t.Verdict), t.Error)
	}
	r.finish(call, earlier(at.Add(milliseconds(t.ExecutorMS)), end))
}

func (r *tracedRun) tools(s span, transcript []record.Entry, started, end time.Time) {
	n := 0
	for i := range transcript {
		e := &transcript[i]
		if e.Type != record.EntryToolCall || e.Tool == nil {
			continue
		}
		if n++; n <= maxToolSpans {
			r.tool(s, e, earlier(started.Add(milliseconds(e.AtMS)), end), end)
		}
	}
	if n > maxToolSpans {
		s.SetAttributes(attribute.Int("waza.tool_calls.dropped", n-maxToolSpans))
	}
}

func (r *tracedRun) tool(s span, e *record.Entry, at, end time.Time) {
	c := e.Tool
	ts := r.child(s.ctx, "execute_tool "+c.Name, at, attribute.String(operationName, "execute_tool"), attribute.String(toolName, c.Name))
	ts.setText(toolCallID, c.ID)
	ts.setText("waza.tool.kind", c.Kind)
	ts.setText("waza.tool.status", c.Status)
	if c.SelfReported {
		ts.SetAttributes(attribute.Bool("waza.tool.self_reported", true))
	}
	if c.Status == "failed" {
		r.fault(ts, "tool_failed", "")
	}
	if r.traces.options.Contents {
		ts.setText(toolArguments, string(c.Arguments))
		ts.setText(toolResult, string(c.Result))
	}
	r.finish(ts, earlier(at.Add(milliseconds(c.DurationMS)), end))
}

// evaluations adds the results of the graders to the span of the trial.
func (r *tracedRun) evaluations(s span, t *record.Trial, at time.Time) {
	for i := range t.Graders {
		g := &t.Graders[i]
		label, attributes := "failed", []attribute.KeyValue{
			attribute.String(evaluationName, g.Name), attribute.String("waza.grader.type", g.Type),
		}
		switch {
		case g.Error != "":
			label = "error"
			attributes = append(attributes, attribute.String(errorType, "grader_failed"))
		case g.NeedsReview:
			label = "needs_review"
		case g.Passed:
			label = "passed"
		}
		if g.Error == "" && !g.NeedsReview {
			attributes = append(attributes, attribute.Float64(scoreValue, g.Score))
		}
		s.AddEvent(evaluated, trace.WithTimestamp(at), trace.WithAttributes(append(attributes, attribute.String(scoreLabel, label))...))
	}
}

func (s span) setText(key, value string) {
	if value != "" {
		s.SetAttributes(attribute.String(key, clip(value)))
	}
}

func (s span) setUsage(u *record.Usage) {
	if u == nil {
		return
	}
	s.SetAttributes(attribute.Int64(inputTokens, u.InputTokens), attribute.Int64(outputTokens, u.OutputTokens))
	if u.CostUSD > 0 {
		s.SetAttributes(attribute.Float64("waza.usage.cost_usd", u.CostUSD))
	}
}

// setMessages sets prompt and output in the form of the conventions.
func (s span) setMessages(prompt, output string) {
	for key, m := range map[string][2]string{inputMessages: {"user", prompt}, outputMessages: {"assistant", output}} {
		b, err := json.Marshal([]any{map[string]any{"role": m[0], "parts": []any{map[string]string{"type": "text", "content": clip(m[1])}}}})
		if err == nil {
			s.SetAttributes(attribute.String(key, string(b)))
		}
	}
}
