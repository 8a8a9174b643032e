package engine_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waza/runner/fleet/engine"
	"waza/runner/fleet/fleettest"
	"waza/runner/proc/proctest"
)

// processState passes the state directory to the processes that tests start.
const processState = "WAZA_TEST_ENGINE_STATE"

// process is the main function of such a process. It uses the embedded server, and executes the
// lines of standard input as commands until its end.
func process(state string) int {
	ctx := context.Background()
	conn, err := engine.Connect(ctx, engine.Address{Embedded: true, Team: "waza"}, engine.Options{State: state})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer conn.Close()
	js := conn.JetStream()
	fmt.Println("connected")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		word, argument, _ := strings.Cut(in.Text(), " ")
		switch word {
		case "hosting":
			fmt.Println(conn.Hosting())
		case "publish":
			for i := range 100 {
				publish(ctx, js, argument+strconv.Itoa(i))
				fmt.Println("published")
			}
		case "count":
			fmt.Println(count(ctx, js))
		}
	}
	return 0
}

// publish stores a message once, however often the server is lost meanwhile.
func publish(ctx context.Context, js jetstream.JetStream, id string) {
	for {
		once, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err := js.CreateOrUpdateStream(once, jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}})
		if err == nil {
			_, err = js.Publish(once, "s", []byte(id), jetstream.WithMsgID(id))
		}
		cancel()
		if err == nil {
			return
		}
	}
}

func count(ctx context.Context, js jetstream.JetStream) uint64 {
	for {
		once, cancel := context.WithTimeout(ctx, 2*time.Second)
		stream, err := js.Stream(once, "S")
		cancel()
		if err == nil {
			return stream.CachedInfo().State.Msgs
		}
	}
}

// user is a process that uses the embedded server.
type user struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
}

func startUser(t *testing.T, state string) *user {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	u := &user{command: exec.Command(exe)}
	u.command.Env = append(os.Environ(), processState+"="+state)
	u.in, err = u.command.StdinPipe() // closing it ends the process
	require.NoError(t, err)
	out, err := u.command.StdoutPipe()
	require.NoError(t, err)
	u.out = bufio.NewScanner(out)
	require.NoError(t, u.command.Start())
	t.Cleanup(func() { u.kill() })
	require.Equal(t, "connected", u.line(t))
	return u
}

func (u *user) line(t *testing.T) string {
	t.Helper()
	require.True(t, u.out.Scan(), "the process ended")
	return u.out.Text()
}

func (u *user) ask(t *testing.T, question string) string {
	t.Helper()
	fmt.Fprintln(u.in, question)
	return u.line(t)
}

func (u *user) kill() {
	_ = u.command.Process.Kill()
	_ = u.command.Wait()
}

// quit ends the process like a user would.
func (u *user) quit(t *testing.T) {
	t.Helper()
	require.NoError(t, u.in.Close())
	require.NoError(t, u.command.Wait())
}

// The server survives each process that runs it.
func TestEmbeddedServerMoves(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	a := startUser(t, state)
	b, c := startUser(t, state), startUser(t, state)
	require.Equal(t, "true", a.ask(t, "hosting"))
	require.Equal(t, "false", b.ask(t, "hosting"))
	require.Equal(t, "false", c.ask(t, "hosting"))

	require.Equal(t, "published", b.ask(t, "publish b"))
	for range 49 {
		require.Equal(t, "published", b.line(t))
	}
	a.kill()
	for range 50 {
		require.Equal(t, "published", b.line(t))
	}
	require.Equal(t, "100", c.ask(t, "count"))
	host, client := b, c
	if c.ask(t, "hosting") == "true" {
		host, client = c, b
	}
	require.Equal(t, "true", host.ask(t, "hosting"))

	host.kill()
	require.Equal(t, "100", client.ask(t, "count"))
	require.Equal(t, "true", client.ask(t, "hosting"))

	other := startUser(t, state)
	require.Equal(t, "false", other.ask(t, "hosting"))
	client.quit(t)
	require.Equal(t, "100", other.ask(t, "count"))
	require.Equal(t, "true", other.ask(t, "hosting"))
	other.quit(t)
	require.Equal(t, "100", startUser(t, state).ask(t, "count"))
}

// Of several processes that start at the same time, exactly one runs the server.
func TestEmbeddedServerOnce(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	users := make([]*user, 4)
	var all sync.WaitGroup
	for i := range users {
		all.Go(func() { users[i] = startUser(t, state) })
	}
	all.Wait()
	hosts := 0
	for _, u := range users {
		if u.ask(t, "hosting") == "true" {
			hosts++
		}
	}
	require.Equal(t, 1, hosts)
}

func embedded(t *testing.T, state string) *engine.Conn {
	t.Helper()
	return connect(t, "embedded", engine.Options{State: state})
}

// A process that ended its server could not start it again while it was starting a child.
func TestEmbeddedServerStartsAgain(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	first := embedded(t, state)
	proctest.Inherit(t, filepath.Join(state, "fleet", "lock"))
	first.Close()
	embedded(t, state)
}

// The embedded server logged its banner, and a line per connection and request.
func TestEmbeddedServerIsQuiet(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))
	conn, err := engine.Connect(t.Context(), engine.Address{Embedded: true, Team: "waza"}, engine.Options{State: t.TempDir(), Log: log})
	require.NoError(t, err)
	for range 10 {
		_, err := conn.JetStream().AccountInfo(t.Context())
		require.NoError(t, err)
	}
	conn.Close()
	require.Equal(t, 1, strings.Count(text.String(), "embedded server"), text.String())
	require.Contains(t, text.String(), "embedded server of the fleet started")
}

func TestStateDirectoriesAreApart(t *testing.T) {
	t.Parallel()
	one, two := embedded(t, t.TempDir()), embedded(t, t.TempDir())
	require.True(t, one.Hosting())
	require.True(t, two.Hosting())
	publish(t.Context(), one.JetStream(), "x")
	_, err := two.JetStream().Stream(t.Context(), "S")
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound)
}

// The server of a process runs until the last connection of the process is closed.
func TestConnectionsShareTheServer(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	one, two := embedded(t, state), embedded(t, state)
	require.True(t, one.Hosting())
	require.True(t, two.Hosting())
	require.EqualValues(t, engine.MaxPayload, one.MaxPayload())
	one.Close()
	talk(t, two)
	require.FileExists(t, filepath.Join(state, "fleet", "server.json"))
	started := time.Now()
	two.Close()
	require.Less(t, time.Since(started), 3*time.Second)
	require.NoFileExists(t, filepath.Join(state, "fleet", "server.json"))
}

// Only this user can connect.
func TestEmbeddedServerIsPrivate(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	conn := embedded(t, state)
	for name, want := range map[string]os.FileMode{"": 0o700, "server.json": 0o600, "lock": 0o600, "store": 0o700} {
		info, err := os.Stat(filepath.Join(state, "fleet", name))
		require.NoError(t, err)
		require.Equal(t, want, info.Mode().Perm(), name)
	}
	address := conn.NATS().ConnectedAddr()
	require.Contains(t, refuse(t, "nats://"+address), "the server rejects the login")
	require.Contains(t, refuse(t, "nats://guess@"+address), "the server rejects the login")
}

func TestEmbeddedServerErrors(t *testing.T) {
	t.Parallel()
	address := parse(t, "embedded")
	_, err := engine.Connect(t.Context(), address, engine.Options{State: "state"})
	require.EqualError(t, err, `fleet embedded: the state directory must be an absolute path, got "state"`)

	file := fleettest.SecretFile(t, nil)
	_, err = engine.Connect(t.Context(), address, engine.Options{State: file})
	require.EqualError(t, err, "fleet embedded: make "+filepath.Join(file, "fleet")+": not a directory")

	state := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(state, "fleet", "store"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(state, "fleet", "store", "jetstream"), nil, 0o600))
	_, err = engine.Connect(t.Context(), address, engine.Options{State: state})
	require.ErrorContains(t, err, "fleet embedded: start the embedded server: Can't start JetStream: ")
}

// A stale server.json of a killed process is ignored.
func TestStalePlace(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	address := proctest.FreeAddress(t)
	require.NoError(t, os.MkdirAll(filepath.Join(state, "fleet"), 0o700))
	for _, content := range []string{`{"address":"` + address + `","token":"x","pid":1}`, "{", ""} {
		require.NoError(t, os.WriteFile(filepath.Join(state, "fleet", "server.json"), []byte(content), 0o600))
		conn := embedded(t, state)
		require.True(t, conn.Hosting())
		conn.Close()
	}
}
