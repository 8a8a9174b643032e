// Package doortest tests the doors of waza serve by playing dialogues with clients. [Play] needs
// a [Player] of the clients, from [PlayOurs] or [PlayNode], and a [Door].
package doortest

import (
	"bufio"
	"context"
	_ "embed" // the program for Node
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// Action is an action of a client.
type Action struct {
	Do     string            `json:"do"`
	Name   string            `json:"name"`
	URL    string            `json:"url,omitempty"`
	Header map[string]string `json:"header,omitempty"`
	Text   string            `json:"text,omitempty"`
	Code   int               `json:"code,omitempty"`
	Reason string            `json:"reason,omitempty"`
	Pings  bool              `json:"pings,omitempty"` // for connect: report pings as events, too
}

// Event is an event of a client: open, refused, message, ping or closed.
type Event struct {
	Name   string `json:"name"`
	Event  string `json:"event"`
	Text   string `json:"text"`
	Code   int    `json:"code"`
	Reason string `json:"reason"`
}

// Player plays all clients of a dialogue.
type Player interface {
	Play(Action)
	// End disconnects all clients. No event follows.
	End()
}

// ours plays clients with coder/websocket.
type ours struct {
	t       *testing.T
	happens func(Event)
	ctx     context.Context
	cancel  context.CancelFunc
	all     sync.WaitGroup

	mu    sync.Mutex
	conns map[string]*ourConn
}

type ourConn struct {
	*websocket.Conn
	reading sync.Mutex // held while paused
	paused  bool
}

// PlayOurs plays clients with coder/websocket. Several goroutines call happens.
func PlayOurs(t *testing.T, happens func(Event)) Player {
	p := &ours{t: t, happens: happens, conns: map[string]*ourConn{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

func (p *ours) End() {
	p.cancel()
	p.mu.Lock()
	for _, c := range p.conns {
		c.pause(false)
		_ = c.CloseNow()
	}
	p.mu.Unlock()
	p.all.Wait()
}

func (p *ours) Play(a Action) {
	switch a.Do {
	case "connect":
		p.connect(a)
		return
	case "crowd":
		for range a.Code {
			p.all.Go(func() {
				ctx, cancel := context.WithTimeout(p.ctx, Patience)
				defer cancel()
				ws, _, err := websocket.Dial(ctx, a.URL, nil) //nolint:bodyclose // the connection owns the body
				if err != nil {
					return
				}
				<-p.ctx.Done()
				_ = ws.CloseNow()
			})
		}
		return
	}
	p.mu.Lock()
	c := p.conns[a.Name]
	p.mu.Unlock()
	require.NotNil(p.t, c, "%s is not connected", a.Name)
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	switch a.Do {
	case "say":
		_ = c.Write(ctx, websocket.MessageText, []byte(a.Text))
	case "binary":
		_ = c.Write(ctx, websocket.MessageBinary, []byte(a.Text))
	case "drop":
		_ = c.CloseNow()
	case "close":
		p.all.Go(func() { _ = c.Close(websocket.StatusCode(a.Code), a.Reason) })
	case "pause":
		c.pause(true)
	case "resume":
		c.pause(false)
	}
}

func (c *ourConn) pause(pause bool) {
	switch {
	case pause && !c.paused:
		c.reading.Lock()
	case !pause && c.paused:
		c.reading.Unlock()
	}
	c.paused = pause
}

func (p *ours) connect(a Action) {
	header := http.Header{}
	for name, value := range a.Header {
		header.Set(name, value)
	}
	o := &websocket.DialOptions{HTTPHeader: header, Host: header.Get("Host")}
	if a.Pings {
		o.OnPingReceived = func(context.Context, []byte) bool {
			p.happens(Event{Name: a.Name, Event: "ping"})
			return true
		}
	}
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	ws, response, err := websocket.Dial(ctx, a.URL, o) //nolint:bodyclose // the connection owns the body
	if err != nil {
		e := Event{Name: a.Name, Event: "refused"}
		if response != nil {
			e.Code = response.StatusCode
		}
		p.happens(e)
		return
	}
	ws.SetReadLimit(-1)
	c := &ourConn{Conn: ws}
	p.mu.Lock()
	p.conns[a.Name] = c
	p.mu.Unlock()
	p.happens(Event{Name: a.Name, Event: "open"})
	p.all.Go(func() {
		for {
			c.reading.Lock()
			c.reading.Unlock() //nolint:staticcheck // Lock waits while the client is paused
			_, msg, err := ws.Read(p.ctx)
			if err == nil {
				p.happens(Event{Name: a.Name, Event: "message", Text: string(msg)})
				continue
			}
			e := Event{Name: a.Name, Event: "closed", Code: 1006}
			if ce, ok := errors.AsType[websocket.CloseError](err); ok {
				e.Code, e.Reason = int(ce.Code), ce.Reason
			}
			p.happens(e)
			return
		}
	})
}

// nodePlayer is a program that plays clients with the npm package ws.
//
//go:embed player.mjs
var nodePlayer []byte

// nodes plays clients with the npm package ws.
type nodes struct {
	t    *testing.T
	in   io.WriteCloser
	cmd  *exec.Cmd
	done chan struct{}
}

// NodeModules returns the directory of the npm package ws. It skips the test when ws is missing.
func NodeModules(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("WAZA_NODE")
	if dir == "" {
		t.Skip("skipped: WAZA_NODE is not set to the directory of ws; run make test-doors")
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "ws")); err != nil {
		t.Skipf("skipped: ws is not installed in %s; run make tools", dir)
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("skipped: node is missing (apt-get install nodejs)")
	}
	return dir
}

// PlayNode plays clients with the npm package ws in dir, see [NodeModules].
func PlayNode(dir string) func(t *testing.T, happens func(Event)) Player {
	return func(t *testing.T, happens func(Event)) Player {
		script := filepath.Join(t.TempDir(), "player.mjs")
		require.NoError(t, os.WriteFile(script, nodePlayer, 0o600))
		p := &nodes{t: t, done: make(chan struct{}), cmd: exec.Command("node", script, dir)}
		p.cmd.Stderr = t.Output()
		var err error
		p.in, err = p.cmd.StdinPipe()
		require.NoError(t, err)
		out, err := p.cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, p.cmd.Start())
		go func() {
			defer close(p.done)
			lines := bufio.NewReader(out)
			for {
				line, err := lines.ReadBytes('\n')
				if err != nil {
					return
				}
				var e Event
				if json.Unmarshal(line, &e) == nil {
					happens(e)
				}
			}
		}()
		return p
	}
}

func (p *nodes) Play(a Action) {
	line, err := json.Marshal(a)
	require.NoError(p.t, err)
	defer p.killLate().Stop()
	_, err = p.in.Write(append(line, '\n'))
	require.NoError(p.t, err)
}

func (p *nodes) End() {
	defer p.killLate().Stop()
	p.in.Close()
	<-p.done
	_ = p.cmd.Wait()
}

// killLate kills the program unless the timer is stopped in time. That ends the program's output
// and fails writes to it.
func (p *nodes) killLate() *time.Timer {
	return time.AfterFunc(Patience, func() {
		p.t.Error("the Node program did not respond in time")
		_ = p.cmd.Process.Kill()
	})
}
