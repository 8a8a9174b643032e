package rpc

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"waza/rpc/host"
	"waza/rpc/internal/dispatch"
	"waza/rpc/internal/doors"
	"waza/rpc/internal/language"
	"waza/rpc/internal/wire"
	"waza/runner"
	"waza/runner/catalog"
	"waza/runner/plan"
)

// A connection is one client: its requests, the runs it started and those it receives.
//
// Its goroutines, and how they end:
//   - the reader and the writer, which belong to the wire.Stream and end with it.
//     The reader calls the handlers of quick methods;
//   - one for each long request: it ends on its own, early when ctx is cancelled;
//   - those of the language.Editor;
//   - one follower for each run that the client receives: ends after eval.complete, or
//     when its ctx is cancelled;
//   - one for each watched suite: ends with eval.unwatch, and when the
//     client's input has ended;
//   - one that sends changes of agents, if the client subscribed: ends in the same way;
//   - for the owner, one that watches the output and one that watches the process of
//     initialize: serve ends both.
//
// The caller of serve owns all of them: when serve returns they have ended, except a reader that
// is stuck in a blocking descriptor.
type connection struct {
	server  *Server
	runner  *runner.Runner // the client's view of the runner
	owner   bool           // the client owns this process: its runs end with the client
	other   bool           // the client acts for a person who is not the user of this process
	counted bool           // counts among the server's clients; guarded by the clients' mu
	stream  *wire.Stream
	rpc     *jsonrpc2.Conn

	ctx      context.Context // of requests and followers
	cancel   context.CancelFunc
	requests *dispatch.Requests[*call]
	sending  dispatch.Group // goroutines that send notifications

	ready    chan struct{} // closed when rpc is set
	exits    chan struct{} // closed by the method exit
	exitOnce sync.Once
	ended    chan struct{} // closed when end has finished
	endOnce  sync.Once

	runs          ownedRuns
	subscriptions subscriptions
	watches       watches
	doors         *doors.Client
	editor        *language.Editor

	mu         sync.Mutex // guards the fields below
	authorised bool
	turnedAway bool     // the client sent a wrong token
	shutdown   bool     // the method shutdown was called
	folders    []string // workspace folders, absolute
	stopWatch  func()   // stops watching the process of initialize; may be nil
}

var (
	// ErrClientGone means that the client no longer reads or, for ServeStdio, that the process
	// it named has ended.
	ErrClientGone = errors.New("client disconnected")
	// ErrExit means that the client of ServeStdio called exit without shutdown.
	ErrExit = errors.New("the client called exit without shutdown")

	errTooManyClients = errors.New("too many connections")
)

// notifyQueued is the number of bytes of notifications that can wait before a reply. It is
// enough to keep the writer busy, and small so that status requests of a busy run are not
// delayed.
const notifyQueued = 32 << 10

// connect makes the connection of a client and starts to read. The owner of the process is
// authorized.
func (s *Server) connect(r io.Reader, w io.Writer, owner bool, who Client) (*connection, error) {
	c := &connection{
		server: s, runner: s.runner.View(who.View), owner: owner, other: who.View.Sees != nil && who.View.User != "", authorised: who.Authorised,
		ready: make(chan struct{}), exits: make(chan struct{}), ended: make(chan struct{}),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if err := s.clients.enter(c); err != nil {
		return nil, err
	}
	o := wire.Options{OnEOF: c.finish, NotifyQueued: notifyQueued, NullParams: []string{"shutdown", "exit"}}
	if !owner {
		o.RefuseForeign, o.WriteTimeout = true, s.o.WriteTimeout
	}
	if !who.Authorised {
		o.MaxLine = wire.MaxLineBeforeAuth
	}
	if in, ok := r.(host.Input); ok && in.SetReadDeadline(time.Time{}) == nil { // a file such as /dev/null has no deadline
		r = host.Attentive(in, func() bool { return !s.runner.Idle() })
	}
	c.stream = wire.NewStream(r, w, o)
	c.subscriptions = subscriptions{ctx: c.ctx, stream: c.stream, sending: &c.sending, log: s.log, byRun: map[string]*follower{}}
	c.doors = doors.New(doors.Options{
		Context: c.ctx, Agents: s.o.Agents, Browsers: s.o.Browsers, Messenger: s.o.Messenger, Fleet: s.o.Fleet, Restricted: c.other,
		Notify: c.stream.Notify, Sending: &c.sending, Log: s.log,
	})
	standings := &s.standings
	if who.View.Sees != nil {
		standings = &language.Standings{} // other users see other runs
	}
	c.editor = language.New(c.ctx, language.Options{
		Client: c.stream, Suites: suites{c.runner.Catalog(), c.runner.Planner()}, Log: s.log, Standings: standings,
		Turn: s.dispatcher.Turn, Sent: c.subscriptions.ended, Failure: failure,
	})
	c.requests = s.dispatcher.Connect(dispatch.Connection[*call]{Context: c.ctx, Stream: c.stream, Admit: c.admit, NewCall: c.newCall})
	c.rpc = c.stream.Connect(context.Background(), c.requests)
	close(c.ready)
	return c, nil
}

// suites holds the language server's data about suites and their runs.
type suites struct {
	*catalog.Catalog
	*plan.Planner
}

// newCall returns the call for the handler of a request.
func (c *connection) newCall(d *dispatch.Call) *call {
	asked := &call{Call: d, server: c.server, conn: c, asked: c.editor.Request(d.Request.Method)}
	asked.asked.Execute = asked.execute
	return asked
}

// admit reports whether this client can call a method now.
func (c *connection) admit(method string, exists bool) error {
	c.mu.Lock()
	authorised, turnedAway, shutdown := c.authorised, c.turnedAway, c.shutdown
	c.mu.Unlock()
	switch {
	case turnedAway:
		return dispatch.ErrWrongToken
	case !authorised && method != "initialize":
		return dispatch.ErrUnauthorised
	case !exists || method == "exit" || method == "$/cancelRequest":
		return nil
	case shutdown || c.server.clients.isClosing():
		return dispatch.ErrShuttingDown
	}
	return nil
}

// finish waits, after the input has ended, for the output that the client still expects: the
// notifications of its runs. If the process ends with the client, it also waits for the runs
// themselves. ctx ends when the client is gone.
func (c *connection) finish(ctx context.Context) {
	c.requests.Wait(ctx)
	c.editor.Settle(ctx)
	c.watches.close()
	c.doors.Close()
	c.editor.End()
	if c.owner {
		c.runs.wait(ctx)
	}
	c.sending.Wait(ctx)
	c.editor.Wait(ctx)
}

// ServeStdio serves one client, which owns this process, until the client is gone, or until its
// input has ended and all its runs have sent their last event. It returns nil if the client
// ended properly: by closing its input, or by shutdown and exit. Otherwise it cancels the
// client's runs and waits at most Options.CleanupTimeout for them; the error is [ErrClientGone],
// [ErrExit], [ErrServerClosed] or the cause of ctx.
//
// ServeStdio closes in and out if they are io.Closers. If out is an *os.File, ServeStdio notices
// that the client is gone without writing to it.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	if f, ok := in.(*os.File); ok {
		in = host.Pollable(f)
	}
	c, err := s.connect(in, out, true, Client{Authorised: true})
	if err != nil {
		return err
	}
	if f, ok := out.(*os.File); ok {
		defer host.WatchOutput(f, func() { c.stream.Fail(ErrClientGone) })()
	}
	defer c.watchProcess(0)
	err = c.serve(ctx)
	if errors.Is(err, ErrClientGone) {
		s.log.Info("client disconnected", "cause", c.stream.Err())
	}
	return err
}

// A Client describes the client of a stream. The zero value must send Options.Token, and sees
// all runs.
type Client struct {
	// Authorized means that the client need not send Options.Token, because it has proved its
	// identity in another way.
	Authorised bool
	// View restricts the runs that the client sees, and names the owner of runs it starts.
	View runner.View
}

// ServeStream serves one client over a stream of bytes, such as a socket, until the client
// leaves, ctx ends, or Shutdown is called. It closes the stream. The client's runs continue
// after it has left.
//
// ServeStream returns nil if the client ended properly. Otherwise the error is [ErrClientGone]
// or the cause of ctx. It is [ErrServerClosed] during and after Shutdown. If there are too many
// clients, ServeStream sends the client an error and returns it.
func (s *Server) ServeStream(ctx context.Context, stream io.ReadWriteCloser, who Client) error {
	who.Authorised = who.Authorised || s.o.Token == ""
	c, err := s.connect(stream, stream, false, who)
	if err != nil {
		s.refuse(stream, err)
		return err
	}
	return c.serve(ctx)
}

// serve serves the client until it leaves, is gone or is late with its token, or until ctx ends.
// Then it closes the connection. It cancels the runs of an owner that does not end properly.
func (c *connection) serve(ctx context.Context) error {
	var late <-chan time.Time
	if !c.isAuthorised() {
		timer := time.NewTimer(c.server.o.AuthTimeout)
		defer timer.Stop()
		late = timer.C
	}
	var err error
	exited := false
	for open := true; open; {
		open = false
		select {
		case <-c.stream.Done():
			err = c.doneReason()
		case <-c.exits:
			exited = true
			if c.owner && !c.isShutdown() {
				err = ErrExit
			}
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-late:
			open, late = c.isAuthorised(), nil
		}
	}
	switch {
	case c.owner && (exited || err != nil):
		c.runs.cancel()
	case !c.owner && c.stream.Err() == nil:
		c.rpc.Close()
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.server.o.CleanupTimeout)
	defer cancel()
	c.end(limit)
	return err
}

// doneReason returns the reason why the stream is done: nil when the input has ended.
func (c *connection) doneReason() error {
	switch {
	case !errors.Is(c.stream.Err(), wire.ErrClosed):
		return ErrClientGone
	case c.server.clients.isClosing():
		return ErrServerClosed
	}
	return nil
}

// end waits, until ctx ends, for the notifications of the connection's cancelled runs, and
// closes the connection. Every call returns after that.
func (c *connection) end(ctx context.Context) {
	c.endOnce.Do(func() {
		defer close(c.ended)
		defer c.server.clients.leave(c)
		<-c.ready
		c.requests.CancelAll()
		c.requests.Wait(ctx)
		c.editor.Settle(ctx)
		c.watches.close()
		c.doors.Close()
		if c.runs.cancelled() || c.server.clients.isClosing() {
			c.waitRuns(ctx)
		}
		c.rpc.Close()
		c.cancel()
		limit, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		c.requests.Wait(limit)
		c.sending.Wait(limit)
		c.editor.Wait(limit)
	})
	<-c.ended
}

// waitRuns waits until the cancelled runs have ended and their notifications are sent to the
// client.
func (c *connection) waitRuns(ctx context.Context) {
	followers := c.subscriptions.live()
	c.runs.wait(ctx)
	limit, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for _, f := range followers {
		select {
		case <-f.Done():
		case <-c.stream.Done():
		case <-limit.Done():
		}
	}
}

// leave makes serve end the connection.
func (c *connection) leave() { c.exitOnce.Do(func() { close(c.exits) }) }

func (c *connection) isAuthorised() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.authorised
}

func (c *connection) isShutdown() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shutdown
}

// setFolders sets the folders of the client. An empty list changes nothing.
func (c *connection) setFolders(paths []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(paths) > 0 {
		c.folders = paths
	}
}

// resolve returns the absolute path for a parameter, relative to the client's first workspace
// folder or, without one, to the process's directory.
func (c *connection) resolve(parameter, given string) (string, error) {
	return absolute(parameter, given, c.projectDir())
}

// projectDir returns the first folder of the client, which is in its project; empty without one.
func (c *connection) projectDir() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.folders) > 0 {
		return c.folders[0]
	}
	return ""
}

// watchProcess treats the client as gone when the process pid ends. It replaces an earlier
// watch; a pid of 0 only ends that.
func (c *connection) watchProcess(pid int) {
	stop := func() {}
	if pid > 0 {
		stop = host.WatchProcess(pid, func() { c.stream.Fail(ErrClientGone) })
	}
	c.mu.Lock()
	stop, c.stopWatch = c.stopWatch, stop
	c.mu.Unlock()
	if stop != nil {
		stop()
	}
}
