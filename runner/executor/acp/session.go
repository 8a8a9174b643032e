package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"waza/eval/text"
	"waza/runner/executor"
)

// session is the conversation of one trial with an agent.
type session struct {
	*recorder
	agent  *agent
	id     string
	rules  *rules
	policy Policy
	trial  *executor.Trial
	// killed is the end of a turn at which waza had to kill the agent; nil for none.
	killed *executor.EndError
}

// opened is the part of the answer to session/new that waza uses.
type opened struct {
	SessionID string `json:"sessionId"`
	Models    *struct {
		CurrentModelID  string `json:"currentModelId"`
		AvailableModels []struct {
			ModelID string `json:"modelId"`
		} `json:"availableModels"`
	} `json:"models"`
	ConfigOptions []configOption `json:"configOptions"`
}

// openSession starts the session of a trial in its workspace.
func (a *agent) openSession(ctx context.Context, x *acp, t *executor.Trial, dir string, rec *recorder) (*session, error) {
	own, err := x.inside(t.Servers)
	if err != nil {
		return nil, err
	}
	servers, err := a.servers(x.suite.ServersFor(t.Task), own)
	if err != nil {
		return nil, err
	}
	cwd, err := t.Start()
	if err != nil {
		return nil, err
	}
	var o opened
	err = a.bounded(ctx, x.startTime, "session/new", func(ctx context.Context) (err error) {
		o, err = sdk.SendRequest[opened](a.conn, ctx, sdk.AgentMethodSessionNew, sdk.NewSessionRequest{Cwd: cwd, McpServers: servers})
		return err
	})
	if err != nil {
		return nil, err
	}
	if o.SessionID == "" {
		return nil, fmt.Errorf("%s: session/new: the answer contains no session id", a.preset.name)
	}
	s := &session{recorder: rec, agent: a, id: o.SessionID, policy: x.policy, trial: t}
	if s.rules, err = newRules(x.policy, dir, cwd, x.suite.ServersFor(t.Task), t.Servers); err != nil {
		return nil, err
	}
	s.rules.judges = x.judges
	a.setSession(s)
	if a.preset.modelEnv == "" && len(a.preset.modelArgs) == 0 && t.Model != "" {
		if err := s.chooseModel(ctx, x.startTime, &o, t); err != nil {
			return s, err
		}
	}
	if effort := x.suite.Config.ReasoningEffort; effort != "" {
		return s, s.chooseEffort(ctx, x.startTime, &o, effort)
	}
	return s, nil
}

// answer is the end of a prompt turn.
type answer struct {
	sdk.PromptResponse
	err error
}

// prompt runs one turn. A non-empty preface goes before the text. When ctx ends, the agent is
// asked to cancel and then killed, at the latest after the grace period. It is not killed if waza needs nothing
// more of the turn and the agent ended it in time.
func (s *session) prompt(ctx context.Context, x *acp, preface, text string) error {
	a := s.agent
	if s.killed != nil { // an agent must not choose an error, which does not count
		return &executor.FailedError{Reason: "the agent cannot get its next prompt, because waza had to kill it; it did not stop when it was asked to: " +
			s.killed.Reason}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.startTurn(preface, text)
	s.watch(executor.FirstEvent(x.suite, s.trial.Task), cancel)
	defer s.alive()

	asking, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	blocks := []sdk.ContentBlock{sdk.TextBlock(text)}
	if preface != "" {
		blocks = []sdk.ContentBlock{sdk.TextBlock(preface), sdk.TextBlock(text)}
	}
	done := make(chan answer, 1)
	go func() {
		r, err := sdk.SendRequest[sdk.PromptResponse](a.conn, asking, sdk.AgentMethodSessionPrompt, sdk.PromptRequest{
			SessionId: sdk.SessionId(s.id), Prompt: blocks,
		})
		done <- answer{r, err}
	}()
	select {
	case r := <-done:
		if _, ok := executor.Ended(ctx); ok || ctx.Err() == nil {
			return s.finish(r)
		}
	case <-ctx.Done():
		r, stopped := s.cancel(x.grace, done)
		if end, ok := executor.Ended(ctx); ok && stopped {
			s.turnEnded(&r.PromptResponse) // it can contain the tokens of the turn
			s.agent.worked.Store(true)
			return end // another prompt can follow
		}
	}
	cause := context.Cause(ctx)
	s.killed, _ = executor.Ended(ctx)
	a.kill(cause) // its tools can still be running
	return cause
}

// cancel asks the agent to stop, so that it can clean up, and waits at most for the grace
// period. It returns how the agent ended the turn; stopped is false if the agent did not, or failed.
func (s *session) cancel(grace time.Duration, done <-chan answer) (r answer, stopped bool) {
	ctx := context.Background()
	if s.agent.conn.SendNotification(ctx, sdk.AgentMethodSessionCancel, sdk.CancelNotification{SessionId: sdk.SessionId(s.id)}) != nil {
		return r, false
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case r = <-done:
		return r, r.err == nil
	case <-timer.C:
		return r, false
	}
}

// finish evaluates the end of a turn. A turn that the agent stopped itself ended normally,
// whatever the stop reason. A failure of the provider is not a fault of the agent.
func (s *session) finish(r answer) error {
	if s.gaveUp(r.err) {
		s.agent.worked.Store(true)
		return nil
	}
	if r.err != nil {
		return s.agent.fault(sdk.AgentMethodSessionPrompt, r.err)
	}
	fault := s.turnEnded(&r.PromptResponse)
	switch {
	case fault != "":
		fault = s.agent.hide.Text(fault)
		if s.agent.saysLoggedOut(fault) {
			return s.agent.loggedOut(fault)
		}
		return fmt.Errorf("%s: the provider failed: %s", s.agent.preset.name, fault)
	case r.StopReason == sdk.StopReasonCancelled:
		return fmt.Errorf("%s: the agent cancelled the turn without a request", s.agent.preset.name)
	}
	s.agent.worked.Store(true)
	return nil
}

// gaveUp reports whether a turn ended in an error because a permission was refused, and records
// it. Some agents cannot continue after a refusal. That is the intent of the suite's policy and
// not a fault: the trial is graded by its record.
func (s *session) gaveUp(err error) bool {
	var re *sdk.RequestError
	known := s.agent.preset.refused
	return known != nil && errors.As(err, &re) && known().MatchString(re.Message) && s.refusalEndsTurn(re.Message)
}

// close ends the session, so that the agent is free for another one.
func (s *session) close() {
	a := s.agent
	if a.hello.AgentCapabilities.SessionCapabilities.Close != nil && !a.dead() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		_ = a.conn.SendRequestNoResult(ctx, sdk.AgentMethodSessionClose, sdk.CloseSessionRequest{SessionId: sdk.SessionId(s.id)})
	}
	a.setSession(nil)
}

// handle handles a message of the agent about this session.
func (s *session) handle(method string, params json.RawMessage) (any, *sdk.RequestError) {
	switch method {
	case sdk.ClientMethodSessionUpdate:
		var n struct {
			Update update `json:"update"`
		}
		if err := json.Unmarshal(params, &n); err != nil {
			return nil, sdk.NewInvalidParams(nil)
		}
		if signs[n.Update.Kind] {
			s.alive()
		}
		s.handleUpdate(&n.Update, params)
		return nil, nil
	case sdk.ClientMethodSessionRequestPermission:
		s.alive()
		return s.permit(params)
	case sdk.ClientMethodFsReadTextFile:
		s.alive()
		return s.readFile(params)
	case sdk.ClientMethodFsWriteTextFile:
		s.alive()
		return s.writeFile(params)
	}
	return nil, sdk.NewMethodNotFound(method)
}

// signs are the updates that prove that the model is at work. The other updates can come from a
// program whose model never answers.
var signs = map[string]bool{"agent_message_chunk": true, "agent_thought_chunk": true,
	"tool_call": true, "tool_call_update": true, "plan": true}

var blank = text.Pattern(`^\s*$`)
