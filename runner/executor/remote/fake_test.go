package remote_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner"
	"waza/runner/executor"
	"waza/runner/executor/remote"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// fakeHub is a server with the agents of the test.
type fakeHub struct {
	// answer answers an evaluation; nil means success with the tool's name.
	answer func(ctx context.Context, e *remote.Evaluation, status func(remote.Status)) (*remote.Answer, error)
	// closed makes Reserve wait until it is closed, unless it is nil.
	closed chan struct{}
	// came receives a value for each call of Reserve, unless it is nil.
	came chan struct{}
	// refuse is the error of Reserve.
	refuse error

	mu       sync.Mutex // guards the fields below
	agents   []*remote.Agent
	noServer bool
	wants    []*remote.Want
	asked    []*remote.Evaluation
	held     int // slots
}

func (h *fakeHub) Reserve(ctx context.Context, w *remote.Want) (remote.Slot, error) {
	h.mu.Lock()
	h.wants = append(h.wants, w)
	h.mu.Unlock()
	if h.came != nil {
		h.came <- struct{}{}
	}
	if h.closed != nil {
		select {
		case <-h.closed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if h.refuse != nil {
		return nil, h.refuse
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held++
	return &fakeSlot{h}, nil
}

func (h *fakeHub) Agents(context.Context) ([]*remote.Agent, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.noServer {
		return nil, executor.ErrNoServer
	}
	return slices.Clone(h.agents), nil
}

func (h *fakeHub) Watch(ctx context.Context, _ func(*remote.Agent)) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func (h *fakeHub) Kick(context.Context, string, string) error { return nil }

type fakeSlot struct{ *fakeHub }

func (s *fakeSlot) ClientID() string { return "c1" }

func (s *fakeSlot) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held--
}

func (s *fakeSlot) Evaluate(ctx context.Context, e *remote.Evaluation, status func(remote.Status)) (*remote.Answer, error) {
	s.mu.Lock()
	s.asked = append(s.asked, e)
	s.mu.Unlock()
	if s.answer != nil {
		return s.answer(ctx, e, status)
	}
	return &remote.Answer{ClientID: "c1", Result: json.RawMessage(`{"status":"success","output":"` + e.Tool + `"}`)}, nil
}

// answering returns a hub whose agent answers with a result or, if that is empty, with an error.
func answering(result, fault string) *fakeHub {
	return &fakeHub{answer: func(context.Context, *remote.Evaluation, func(remote.Status)) (*remote.Answer, error) {
		a := &remote.Answer{ClientID: "c1", Result: json.RawMessage(result)}
		if fault != "" {
			a.Error = &remote.Fault{}
			if err := json.Unmarshal([]byte(fault), a.Error); err != nil {
				return nil, err
			}
		}
		return a, nil
	}}
}

// newRunner returns a runner that uses the agents of the hub.
func newRunner(t *testing.T, hub remote.Hub) *runner.Runner {
	t.Helper()
	r, err := runner.New(runner.Options{StateDir: t.TempDir(), Executors: executor.NewRegistry(remote.New(hub))})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	return r
}

// run runs a suite to its end.
func run(t *testing.T, hub remote.Hub, suite string) (runnertest.Result, []*record.Event) {
	t.Helper()
	live := runnertest.Start(t, newRunner(t, hub), "-- eval.yaml --\n"+suite, record.Request{})
	events := runnertest.Follow(t, live, 1)
	<-live.Done()
	return runnertest.ResultOf(t, live), events
}

// findings returns the findings about a suite in a txtar archive.
func findings(t *testing.T, files, executorName string, kinds ...eval.Kind) (list []string) {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(files)).Files {
		path := filepath.Join(dir, f.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, f.Data, 0o644))
	}
	kinds = append(kinds, remote.New(nil).Kind)
	_, ds, err := eval.Load(filepath.Join(dir, "eval.yaml"),
		eval.Options{Vocabulary: &eval.Vocabulary{Executors: kinds}, Executor: executorName})
	require.NoError(t, err)
	for _, d := range ds {
		if d.Severity != decode.Info && d.Code != decode.CodeNothingChecked {
			list = append(list, string(d.Severity)+": "+d.Message)
		}
	}
	return list
}

// admission returns an attempt of a run whose reports go to logf.
func admission(n int, logf func(level, format string, args ...any), in eval.Inputs) *executor.Admission {
	return &executor.Admission{
		Order:   &record.Order{RunID: "r", TaskID: "a", Num: n, Task: &eval.Task{ID: "a", Inputs: in}, Timeout: time.Minute},
		Attempt: 1, Logf: logf,
	}
}
