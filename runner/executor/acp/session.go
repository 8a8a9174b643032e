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

// session is one trial's conversation with an agent.
type session struct {
	*recorder
	agent  *agent
	id     string
	rules  *rules
	policy Policy
	trial  *executor.Trial
}

// opened is the answer to session/new, as much of it as matters.
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

// openSession begins a trial's session in its workspace.
func (a *agent) openSession(ctx context.Context, x *acp, t *executor.Trial, dir string, rec *recorder) (*session, error) {
	servers, err := a.servers(x.suite.Config.MCPServers)
	if err != nil {
		return nil, err
	}
	var o opened
	err = a.bounded(ctx, x.startTime, "session/new", func(ctx context.Context) (err error) {
		o, err = sdk.SendRequest[opened](a.conn, ctx, sdk.AgentMethodSessionNew, sdk.NewSessionRequest{Cwd: dir, McpServers: servers})
		return err
	})
	if err != nil {
		return nil, err
	}
	if o.SessionID == "" {
		return nil, fmt.Errorf("%s: session/new: the answer names no session", a.preset.name)
	}
	s := &session{recorder: rec, agent: a, id: o.SessionID, policy: x.policy, trial: t}
	if s.rules, err = newRules(x.policy, dir, x.suite.Config.MCPServers); err != nil {
		return nil, err
	}
	a.setSession(s)
	if a.preset.modelEnv == "" && len(a.preset.modelArgs) == 0 && t.Model != "" {
		return s, s.chooseModel(ctx, x.startTime, &o, t)
	}
	return s, nil
}

// answer is how a prompt ended.
type answer struct {
	sdk.PromptResponse
	err error
}

// prompt does one turn; the preface, if there is one, goes before the text. When ctx ends the agent is asked to cancel, given the
// grace to do so, and killed.
func (s *session) prompt(ctx context.Context, x *acp, preface, text string) error {
	a := s.agent
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.begin(preface, text)
	s.watch(x.first, cancel)
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
		if ctx.Err() == nil {
			return s.finish(r)
		}
	case <-ctx.Done():
		s.cancel(x.grace, done)
	}
	cause := context.Cause(ctx)
	a.kill(cause) // its tools may still run
	return cause
}

// cancel asks the agent to stop, so that it may clean up, and waits no longer than the grace.
func (s *session) cancel(grace time.Duration, done <-chan answer) {
	ctx := context.Background()
	if s.agent.conn.SendNotification(ctx, sdk.AgentMethodSessionCancel, sdk.CancelNotification{SessionId: sdk.SessionId(s.id)}) != nil {
		return
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// finish judges how a turn ended: an agent that stopped of its own accord ended
// normally whatever its reason; a provider that failed is no fault of the agent.
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
		return fmt.Errorf("%s: the agent cancelled the turn, which nobody asked for", s.agent.preset.name)
	}
	s.agent.worked.Store(true)
	return nil
}

// gaveUp reports whether a turn ended in an error because a permission was
// refused, which some agents do not survive, and records it. That is what the
// suite's policy is for, and no fault: the trial is graded by what there was.
func (s *session) gaveUp(err error) bool {
	var re *sdk.RequestError
	known := s.agent.preset.refused
	return known != nil && errors.As(err, &re) && known().MatchString(re.Message) && s.refusalEndsTurn(re.Message)
}

// close gives the session up; the agent is free for the next then.
func (s *session) close() {
	a := s.agent
	if a.hello.AgentCapabilities.SessionCapabilities.Close != nil && !a.dead() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		_ = a.conn.SendRequestNoResult(ctx, sdk.AgentMethodSessionClose, sdk.CloseSessionRequest{SessionId: sdk.SessionId(s.id)})
	}
	a.setSession(nil)
}

// handle takes what the agent sends about this session.
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
		s.take(&n.Update, params)
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

// signs are the updates that show an agent at work; the others may come from a
// program whose model never answers.
var signs = map[string]bool{"agent_message_chunk": true, "agent_thought_chunk": true,
	"tool_call": true, "tool_call_update": true, "plan": true}

var blank = text.Pattern(`^\s*$`)
