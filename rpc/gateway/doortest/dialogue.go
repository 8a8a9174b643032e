package doortest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"waza/rpc/gateway/door"
)

// Patience is the time limit for each wait of a dialogue.
const Patience = 20 * time.Second

// Door adapts dialogues to a door. Only Start and Stop are required.
type Door struct {
	// Start creates a server with the stored state of the previous one, and returns its door,
	// which does not listen yet. It is called at the start and after each restart.
	Start func() *door.Door
	// Stop stops the server that Start created. It calls [Dialogue.Shut] to shut down the door.
	Stop func()
	// Steps are the door's own steps by their first word. They get the rest of the line, and
	// take precedence over the common steps.
	Steps map[string]func(rest string)
	// Target applies the words between a client's name and its header to the connection. Without
	// Target, no such words are allowed.
	Target func(a *Action, words []string)
	// Complete adds the parts of a message that the dialogue leaves out.
	Complete func(text string) string
	// CompareMessage compares a message with the expected one, instead of [Names.Compare].
	CompareMessage func(want string, data []byte)
	// Read is called with each message to a client, even with those that the dialogue skips.
	// Several goroutines call it.
	Read func(client, text string)
	// AwaitLeft waits until the server has noticed that a client is disconnected.
	AwaitLeft func(client string)
}

// Dialogue plays one section of a file of dialogues: a server, and the clients that connect to
// it. Only the goroutine of its test uses it.
type Dialogue struct {
	T      *testing.T
	At     string // the current line and its position
	Dir    string // directory for the state of servers
	Log    Log    // of all servers
	Names  Names  // values of $NAME
	Player Player // set before the first Start

	config   []byte
	door     Door
	current  *door.Door
	running  bool // Door.Start returned, and Door.Stop was not called since
	addr     net.Addr
	served   chan error // result of Serve; nil while the door does not serve
	secrets  []string
	expected []string // errors that ExpectError allows

	mu     sync.Mutex // guards events
	events map[string]chan Event
}

// Play plays testdata/dialogues/*.txtar. Each section is a parallel test with its own server,
// except sections named config: they configure the following sections of their file. The lines
// of a section are messages, NAME> TEXT and NAME< TEXT, or steps. open is called for each
// section.
func Play(t *testing.T, play func(t *testing.T, happens func(Event)) Player, open func(d *Dialogue) Door) {
	files, err := filepath.Glob("testdata/dialogues/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		require.NoError(t, err)
		var config []byte
		for _, section := range archive.Files {
			if section.Name == "config" {
				config = section.Data
				continue
			}
			config := config
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar")+"/"+section.Name, func(t *testing.T) {
				t.Parallel()
				d := &Dialogue{T: t, Dir: t.TempDir(), Names: Names{}, config: config, events: map[string]chan Event{}}
				d.door = open(d)
				d.Player = play(t, func(e Event) {
					if e.Event == "message" && d.door.Read != nil {
						d.door.Read(e.Name, e.Text)
					}
					d.eventsOf(e.Name) <- e
				})
				defer d.limit(d.end)
				d.limit(d.start)
				for i, line := range strings.Split(string(section.Data), "\n") {
					if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
						d.At = fmt.Sprintf("%s: %s: line %d: %s", filepath.Base(file), section.Name, i+1, line)
						d.limit(func() { d.step(line) })
					}
				}
			})
		}
	}
}

// Configure decodes the section config into a configuration that contains the defaults.
// newDecoder is the constructor of a YAML decoder. Unknown keys fail the test.
func Configure[D interface {
	KnownFields(strict bool)
	Decode(into any) error
}](d *Dialogue, newDecoder func(io.Reader) D, into any) {
	if len(bytes.TrimSpace(d.config)) == 0 {
		return
	}
	decoder := newDecoder(bytes.NewReader(d.config))
	decoder.KnownFields(true)
	require.NoError(d.T, decoder.Decode(into))
}

// Addr returns the address of the current or last server; nil before the first one listens.
func (d *Dialogue) Addr() net.Addr { return d.addr }

// Secret adds a text that must not appear in the log.
func (d *Dialogue) Secret(text string) { d.secrets = append(d.secrets, text) }

// ExpectError allows log lines of level ERROR that contain a text. Other lines of that level
// fail the test.
func (d *Dialogue) ExpectError(text string) { d.expected = append(d.expected, text) }

// start starts a server. If its door cannot listen, the test fails, and end stops the server.
func (d *Dialogue) start() {
	current := d.door.Start()
	d.current, d.running = current, true
	addr, err := current.Listen()
	require.NoError(d.T, err, d.At)
	d.addr = addr
	served := make(chan error, 1)
	d.served = served
	go func() { served <- current.Serve(context.Background()) }()
}

// stop stops the server unless it is stopped.
func (d *Dialogue) stop() {
	if d.running {
		d.running = false
		d.door.Stop()
	}
}

// Shut shuts down the server's door, as SIGTERM does, and waits until Serve has returned.
func (d *Dialogue) Shut() {
	d.shutdown()
	if served := d.served; served != nil {
		d.served = nil
		require.NoError(d.T, Await(d, "end of Serve", served), d.At)
	}
}

func (d *Dialogue) shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	require.NoError(d.T, d.current.Shutdown(ctx))
}

// end stops the server, ends the clients and checks the log. When the dialogue failed, it
// prints its last line and the log.
func (d *Dialogue) end() {
	defer func() {
		if d.T.Failed() {
			d.T.Logf("%s\n%s", d.At, &d.Log)
		}
	}()
	func() {
		defer d.Player.End()
		d.stop()
	}()
	for _, secret := range d.secrets {
		require.NotContains(d.T, d.Log.String(), secret, "the log must not contain secrets")
	}
	require.Empty(d.T, d.Log.errors(d.expected), d.At)
}

// limit calls f and ends the test binary when f blocks although all its waits are limited.
// Without it, a dialogue that hangs hides its failure until the tests time out.
func (d *Dialogue) limit(f func()) {
	at := d.At
	stuck := time.AfterFunc(6*Patience, func() {
		debug.SetTraceback("all")
		panic(fmt.Sprintf("%s: blocked at %s\n%s", d.T.Name(), at, &d.Log))
	})
	defer stuck.Stop()
	f()
}

func (d *Dialogue) eventsOf(name string) chan Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.events[name] == nil {
		d.events[name] = make(chan Event, 100_000)
	}
	return d.events[name]
}

// Next returns the next event of a client.
func (d *Dialogue) Next(client string) Event { return Await(d, "event of "+client, d.eventsOf(client)) }

// Await returns the next value of c. The test fails when none arrives in time.
func Await[T any](d *Dialogue, what string, c <-chan T) T {
	d.T.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(Patience):
		require.FailNow(d.T, "no "+what, "%s\n%s", d.At, d.Log.String())
		panic("unreachable")
	}
}

// Wait calls a function that blocks, such as [sync.WaitGroup.Wait]. When it does not return
// in time, the test prints all goroutines and fails.
func (d *Dialogue) Wait(what string, wait func()) {
	d.T.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait()
	}()
	select {
	case <-done:
	case <-time.After(Patience):
		_ = pprof.Lookup("goroutine").WriteTo(d.T.Output(), 1)
		require.FailNow(d.T, what+": did not end in time", "%s\n%s", d.At, &d.Log)
	}
}

// Until waits until holds returns true. The test fails when that takes too long.
func (d *Dialogue) Until(what string, holds func() bool) {
	d.T.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(Patience); !holds(); <-tick.C {
		require.True(d.T, time.Now().Before(deadline), "not in time: %s: %s\n%s", what, d.At, &d.Log)
	}
}

// Connect connects a client: [NAME] [WORD…] [HEADER: VALUE]. The default name is a. In VALUE,
// $address is the address of the server.
func (d *Dialogue) Connect(rest string) {
	require.True(d.T, d.TryConnect(rest), "%s: the connection was lost before its handshake\n%s", d.At, &d.Log)
}

// TryConnect is like [Dialogue.Connect]. It reports false if the connection was lost before the
// server answered its handshake.
func (d *Dialogue) TryConnect(rest string) bool {
	d.T.Helper()
	a := d.target(rest)
	d.Player.Play(a)
	e := d.Next(a.Name)
	if e.Event == "refused" && e.Code == 0 {
		return false
	}
	require.Equal(d.T, "open", e.Event, "%s: %d", d.At, e.Code)
	return true
}

func (d *Dialogue) target(rest string) Action {
	a := Action{Do: "connect", Name: "a", URL: "ws://" + d.addr.String() + "/", Header: map[string]string{}}
	words := strings.Fields(rest)
	for i, word := range words {
		if name, ok := strings.CutSuffix(word, ":"); ok {
			a.Header[name] = strings.ReplaceAll(strings.Join(words[i+1:], " "), "$address", d.addr.String())
			words = words[:i]
			break
		}
	}
	if len(words) > 0 {
		a.Name, words = words[0], words[1:]
	}
	if d.door.Target != nil {
		d.door.Target(&a, words)
	} else {
		require.Empty(d.T, words, d.At)
	}
	return a
}

// Say sends a message of a client after replacing names and applying Complete.
func (d *Dialogue) Say(client, text string) {
	text = d.Fill(text)
	if d.door.Complete != nil {
		text = d.door.Complete(text)
	}
	d.send(client, text)
}

// send sends a text of a client unchanged.
func (d *Dialogue) send(client, text string) {
	d.Player.Play(Action{Do: "say", Name: client, Text: text})
}

// Fill replaces each quoted "$NAME" by the JSON of its value.
func (d *Dialogue) Fill(text string) string {
	for name, value := range d.Names {
		data, err := json.Marshal(value)
		require.NoError(d.T, err)
		text = strings.ReplaceAll(text, `"`+name+`"`, string(data))
	}
	return text
}

// Expect compares a client's next event with the expected one: a message, "close CODE REASON",
// "cut" for a connection that ends without a close frame, or "ping". Only clients that ask for
// pings get them as events. Pings are skipped unless one is expected.
func (d *Dialogue) Expect(client, want string) {
	e := d.Next(client)
	for want != "ping" && e.Event == "ping" {
		e = d.Next(client)
	}
	switch code, isClose := strings.CutPrefix(want, "close "); {
	case isClose:
		require.Equal(d.T, code, strings.TrimSpace(fmt.Sprint(e.Code, " ", e.Reason)), "%s: %s", d.At, e.Text)
	case want == "cut":
		require.Equal(d.T, "closed 1006", fmt.Sprint(e.Event, " ", e.Code), "%s: %s", d.At, e.Text)
	case want == "ping":
		require.Equal(d.T, "ping", e.Event, "%s: %s", d.At, e.Text)
	default:
		require.Equal(d.T, "message", e.Event, "%s: closed with %d %s\n%s", d.At, e.Code, e.Reason, &d.Log)
		if d.door.CompareMessage != nil {
			d.door.CompareMessage(want, []byte(e.Text))
		} else {
			d.Names.Compare(d.T, d.At, want, []byte(e.Text))
		}
	}
}

// Compare compares the JSON of a value with the expected JSON.
func (d *Dialogue) Compare(want string, v any) {
	data, err := json.Marshal(v)
	require.NoError(d.T, err)
	d.Names.Compare(d.T, d.At, want, data)
}

// step plays a line. NAME> TEXT sends a message, NAME=> TEXT sends a text unchanged, and NAME<
// TEXT expects a message. All other lines are steps.
func (d *Dialogue) step(line string) {
	if i := strings.IndexAny(line, "<> "); i >= 0 && line[i] != ' ' {
		name, asIs := strings.CutSuffix(line[:i], "=")
		name, text := cmp.Or(name, "a"), strings.TrimSpace(line[i+1:])
		switch {
		case line[i] == '<':
			d.Expect(name, text)
		case asIs:
			d.send(name, d.Fill(text))
		default:
			d.Say(name, text)
		}
		return
	}
	word, rest, _ := strings.Cut(line, " ")
	if do, ok := d.door.Steps[word]; ok {
		do(rest)
		return
	}
	do, ok := steps()[word]
	require.True(d.T, ok, "%s: unknown step %q", d.At, word)
	do(d, rest)
}
