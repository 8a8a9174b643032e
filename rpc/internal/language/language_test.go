package language_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waza/eval"
	"waza/rpc/internal/dispatch"
	"waza/rpc/internal/language"
	"waza/rpc/internal/lsp"
	"waza/runner/catalog"
	"waza/runner/plan"
	"waza/runner/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client records what it is sent.
type client struct {
	mu   sync.Mutex // guards sent
	sent []string   // "method params"
}

func (c *client) Notify(_ context.Context, method string, params any) error {
	raw, err := json.Marshal(params)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = append(c.sent, method+" "+string(raw))
	return err
}

func (c *client) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	return json.RawMessage("null"), c.Notify(ctx, method, params)
}

// take returns what the client was sent since the last call, when no suite is being read.
func (c *client) take(t *testing.T, e *language.Editor) []string {
	t.Helper()
	e.Settle(t.Context())
	c.mu.Lock()
	defer c.mu.Unlock()
	sent := c.sent
	c.sent = nil
	return sent
}

// suites provides a vocabulary and no runs.
type suites struct{}

func (suites) Vocabulary() *eval.Vocabulary {
	return &eval.Vocabulary{Executors: plan.Executors.Kinds()}
}

func (suites) ListBy(catalog.Filter) ([]catalog.Info, error) { return nil, nil }

func (suites) Standing(context.Context, []catalog.Info) (*catalog.SuiteStanding, error) {
	return &catalog.SuiteStanding{}, nil
}

// call calls a method of the table, which must succeed.
func call(t *testing.T, e *language.Editor, name, params string) string {
	t.Helper()
	result, err := serve(t.Context(), t, e, name, params)
	require.NoError(t, err)
	return result
}

// serve calls a method of the table. A result of null is the empty text.
func serve(ctx context.Context, t *testing.T, e *language.Editor, name, params string) (string, error) {
	t.Helper()
	methods := language.Methods()
	i := slices.IndexFunc(methods, func(m *dispatch.Method[*language.Request]) bool { return m.Name == name })
	require.GreaterOrEqual(t, i, 0, name)
	result, err := methods[i].Serve(ctx, e.Request(name), json.RawMessage(params))
	if raw, ok := result.(json.RawMessage); ok {
		return string(raw), err
	}
	require.Nil(t, result)
	return "", err
}

// start returns an editor for a client, which ends with the test. Options can be changed.
func start(t *testing.T, c *client, change func(*language.Options)) *language.Editor {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	o := language.Options{
		Client: c, Suites: suites{}, Log: slog.New(slog.DiscardHandler), Standings: &language.Standings{},
		Turn:    func(context.Context) (func(), error) { return func() {}, nil },
		Sent:    func(string) <-chan struct{} { return nil },
		Failure: func(record.Status, string) string { return "failed" },
	}
	if change != nil {
		change(&o)
	}
	e := language.New(ctx, o)
	t.Cleanup(func() {
		cancel()
		e.Wait(context.Background())
	})
	return e
}

// An editor works without a daemon: it publishes the findings of an open document and answers
// requests about it.
func TestEditor(t *testing.T) {
	t.Parallel()
	c := &client{}
	e := start(t, c, nil)
	e.SetClient(lsp.Client{})
	path := filepath.Join(t.TempDir(), "eval.yaml")
	text := "name: x\nconfig: {executor: mok}\ntasks: [{id: a, prompt: p}]\n"
	write(t, path, text)
	open(t, e, path, text)
	sent := c.take(t, e)
	require.Len(t, sent, 1)
	require.Contains(t, sent[0], "textDocument/publishDiagnostics")
	require.Contains(t, sent[0], "mok")
	at := `{"textDocument":{"uri":"file://` + path + `"},"position":{"line":1,"character":10}}`
	require.Contains(t, call(t, e, "textDocument/hover", at), "executor")
	require.Contains(t, call(t, e, "textDocument/codeLens", at), `"command":"waza.run"`)
}
