package agents_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// action is what a player has a client do.
type action struct {
	Do     string            `json:"do"`
	Name   string            `json:"name"`
	URL    string            `json:"url,omitempty"`
	Header map[string]string `json:"header,omitempty"`
	Text   string            `json:"text,omitempty"`
	Code   int               `json:"code,omitempty"`
	Reason string            `json:"reason,omitempty"`
}

// event is what happens to a client: open, refused, message or closed.
type event struct {
	Name   string `json:"name"`
	Event  string `json:"event"`
	Text   string `json:"text"`
	Code   int    `json:"code"`
	Reason string `json:"reason"`
}

// player plays all clients of a dialogue.
type player interface {
	play(action)
	// end ends all clients. No event comes after.
	end()
}

// ours plays clients with coder/websocket.
type ours struct {
	t       *testing.T
	happens func(event)
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

func playOurs(t *testing.T, happens func(event)) player {
	p := &ours{t: t, happens: happens, conns: map[string]*ourConn{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

func (p *ours) end() {
	p.cancel()
	p.mu.Lock()
	for _, c := range p.conns {
		c.pause(false)
		c.CloseNow()
	}
	p.mu.Unlock()
	p.all.Wait()
}

func (p *ours) play(a action) {
	switch a.Do {
	case "connect":
		p.connect(a)
		return
	case "crowd":
		for range a.Code {
			p.all.Go(func() {
				ws, _, err := websocket.Dial(p.ctx, a.URL, nil)
				if err != nil {
					return
				}
				<-p.ctx.Done()
				ws.CloseNow()
			})
		}
		return
	}
	p.mu.Lock()
	c := p.conns[a.Name]
	p.mu.Unlock()
	require.NotNil(p.t, c, "%s is not connected", a.Name)
	switch a.Do {
	case "say":
		_ = c.Write(p.ctx, websocket.MessageText, []byte(a.Text))
	case "binary":
		_ = c.Write(p.ctx, websocket.MessageBinary, []byte(a.Text))
	case "drop":
		c.CloseNow()
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

func (p *ours) connect(a action) {
	header := http.Header{}
	for name, value := range a.Header {
		header.Set(name, value)
	}
	ws, response, err := websocket.Dial(p.ctx, a.URL, &websocket.DialOptions{HTTPHeader: header, Host: header.Get("Host")})
	if err != nil {
		e := event{Name: a.Name, Event: "refused"}
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
	p.happens(event{Name: a.Name, Event: "open"})
	p.all.Go(func() {
		for {
			c.reading.Lock()
			c.reading.Unlock() //nolint:staticcheck // it waits while the client is paused
			_, msg, err := ws.Read(p.ctx)
			if err == nil {
				p.happens(event{Name: a.Name, Event: "message", Text: string(msg)})
				continue
			}
			e := event{Name: a.Name, Event: "closed", Code: 1006}
			var ce websocket.CloseError
			if errors.As(err, &ce) {
				e.Code, e.Reason = int(ce.Code), ce.Reason
			}
			p.happens(e)
			return
		}
	})
}

// nodes plays clients with the package ws of npm.
type nodes struct {
	t    *testing.T
	in   io.WriteCloser
	cmd  *exec.Cmd
	done chan struct{}
}

// nodeModules is where ws is installed; the test is skipped where it is not.
func nodeModules(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("WAZA_NODE")
	if dir == "" {
		t.Skip("skipped: WAZA_NODE does not say where ws is; make test-doors does")
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "ws")); err != nil {
		t.Skipf("skipped: ws is not installed in %s; make tools installs it", dir)
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("skipped: node is missing (apt-get install nodejs)")
	}
	return dir
}

func playNode(dir string) func(t *testing.T, happens func(event)) player {
	return func(t *testing.T, happens func(event)) player {
		p := &nodes{t: t, done: make(chan struct{}), cmd: exec.Command("node", filepath.Join("testdata", "player.mjs"), dir)}
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
				var e event
				if json.Unmarshal(line, &e) == nil {
					happens(e)
				}
			}
		}()
		return p
	}
}

func (p *nodes) play(a action) {
	line, err := json.Marshal(a)
	require.NoError(p.t, err)
	_, err = p.in.Write(append(line, '\n'))
	require.NoError(p.t, err)
}

func (p *nodes) end() {
	p.in.Close()
	<-p.done
	_ = p.cmd.Wait()
}
