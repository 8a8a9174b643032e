package mcptools

import (
	"bufio"
	"context"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waza/runner/executor"
)

// TestMain makes this binary the program that agents start.
func TestMain(m *testing.M) {
	Main()
	// net/http closes the connection of a client that sent too much after 500 ms, longer than
	// goleak waits.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

type said struct {
	Text string `json:"text"`
}

// serve offers a tool that counts its calls and repeats a text.
func serve(t *testing.T, dir string) (executor.Server, func(), *atomic.Int64) {
	t.Helper()
	calls := &atomic.Int64{}
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{
		Name: "say", Description: "Says a text.",
	}, func(_ context.Context, _ *mcp.CallToolRequest, in said) (*mcp.CallToolResult, any, error) {
		calls.Add(1)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "said " + in.Text}}}, nil, nil
	})
	command, stop, err := Serve(t.Context(), dir, "test", []string{"say"}, server)
	require.NoError(t, err)
	t.Cleanup(stop)
	return command, stop, calls
}

// connect starts the program like an agent does.
func connect(t *testing.T, c executor.Server) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: exec.Command(c.Command, c.Args...)}, nil)
	require.NoError(t, err)
	return session
}

func say(session *mcp.ClientSession, text string) (string, error) {
	r, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: "say", Arguments: said{text}})
	if err != nil {
		return "", err
	}
	return r.Content[0].(*mcp.TextContent).Text, nil
}

func TestAgentsCallToolsOfThisProcess(t *testing.T) {
	t.Parallel()
	command, stop, calls := serve(t, t.TempDir())
	first, second := connect(t, command), connect(t, command)
	tools, err := first.ListTools(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, "say", tools.Tools[0].Name)
	for _, session := range []*mcp.ClientSession{first, second, first} {
		got, err := say(session, "hello")
		require.NoError(t, err)
		require.Equal(t, "said hello", got)
	}
	require.EqualValues(t, 3, calls.Load())
	require.NoError(t, first.Close())
	_, err = say(second, strings.Repeat("x", 500<<10))
	require.NoError(t, err)

	// The processes end with the server, and nothing is left.
	stop()
	require.NoError(t, second.Close())
	_, err = os.Stat(filepath.Dir(command.Args[1]))
	require.ErrorIs(t, err, fs.ErrNotExist)
	out, err := exec.Command(command.Command, command.Args...).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "waza mcp-tools: the server has ended")
}

func TestOnlyThisUserCanConnect(t *testing.T) {
	t.Parallel()
	command, _, _ := serve(t, "")
	socket := command.Args[1]
	for path, mode := range map[string]fs.FileMode{socket: 0o600, filepath.Dir(socket): 0o700} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), path)
	}
}

func TestLongDirectoriesDoNotPreventSockets(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 120))
	require.NoError(t, os.Mkdir(dir, 0o700))
	command, _, _ := serve(t, dir)
	session := connect(t, command)
	_, err := say(session, "hello")
	require.NoError(t, err)
	require.NoError(t, session.Close())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestContextEndsTheServer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	command, stop, err := Serve(ctx, "", "test", nil, server)
	require.NoError(t, err)
	defer stop()
	session := connect(t, command)
	cancel()
	require.NoError(t, session.Wait())
	_ = session.Close()
}

// An endless message must not fill the memory of waza.
func TestAttackLongMessage(t *testing.T) {
	t.Parallel()
	command, _, calls := serve(t, "")
	conn, err := net.Dial("unix", command.Args[1])
	require.NoError(t, err)
	defer conn.Close()
	w := bufio.NewWriter(conn)
	for range 64 {
		if _, err = w.WriteString(strings.Repeat("[", MaxMessage/16)); err != nil {
			break
		}
	}
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	require.Error(t, err, "the connection is still open")

	session := connect(t, command) // other connections still work
	_, err = say(session, "hello")
	require.NoError(t, err)
	require.EqualValues(t, 1, calls.Load())
	require.NoError(t, session.Close())
}

// Connections beyond the limit are closed at once.
func TestAttackManyConnections(t *testing.T) {
	t.Parallel()
	command, _, _ := serve(t, "")
	var refused int
	for range maxConnections {
		conn, err := net.Dial("unix", command.Args[1])
		require.NoError(t, err)
		defer conn.Close()
	}
	last, err := net.Dial("unix", command.Args[1])
	require.NoError(t, err)
	defer last.Close()
	if _, err := last.Read(make([]byte, 1)); err != nil {
		refused++
	}
	require.Equal(t, 1, refused)
}

// bearer adds a token to requests.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func TestAgentsCallToolsOverHTTP(t *testing.T) {
	t.Parallel()
	command, stop, calls := serve(t, "")
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	connect := func(token string) (*mcp.ClientSession, error) {
		return client.Connect(t.Context(), &mcp.StreamableClientTransport{
			Endpoint: command.URL, HTTPClient: &http.Client{Transport: bearer(token)}, MaxRetries: -1,
		}, nil)
	}
	session, err := connect(command.Token)
	require.NoError(t, err)
	got, err := say(session, "hello")
	require.NoError(t, err)
	require.Equal(t, "said hello", got)
	_, err = say(session, strings.Repeat("x", MaxMessage))
	require.Error(t, err, "a message beyond the limit")
	_ = session.Close()
	_, err = connect("guess")
	require.Error(t, err, "the token is wrong")
	require.EqualValues(t, 1, calls.Load())
	stop()
	_, err = connect(command.Token)
	require.Error(t, err, "the server has ended")
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}
