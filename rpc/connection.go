package rpc

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"waza/rpc/dispatch"
	"waza/rpc/host"
	"waza/rpc/language"
	"waza/rpc/wire"
	"waza/runner"
	"waza/runner/catalog"
	"waza/runner/plan"
)

// A connection is one client: its requests, the runs it started and those it receives.
//
// Its goroutines, and who ends them:
//   - the reader and the writer, which belong to the wire.Stream and end with it.
//     The reader calls the handlers of quick methods;
//   - one for each long request: ends by itself, early when ctx is cancelled;
//   - those of the language.Editor;
//   - one follower for each run that is received: ends after eval.complete, or
//     when its ctx is cancelled;
//   - one for each suite that is watched: ends with eval.unwatch, and when the
//     client's input has ended;
//   - one that sends changes of agents, where the client wants them: ends like those;
//   - of the owner, one that watches the output and one that watches the process of
//     initialize: serve ends both.
//
// Whoever calls serve owns all of them: when it returns they have ended, but for
// a reader that is stuck in a blocking descriptor.
type connection struct {
	server  *Server
	runner  *runner.Runner // as the client sees it
	owner   bool           // the client owns this process, and its runs end with it
	counted bool           // among the server's clients; guarded by the clients' mu
	stream  *wire.Stream
	rpc     *jsonrpc2.Conn

	ctx      context.Context // of requests and followers
	cancel   context.CancelFunc
	requests *dispatch.Requests[*call]
	sending  dispatch.Group // goroutines that send what no reply is

	ready    chan struct{} // closed when rpc is set
	exits    chan struct{} // closed by the method exit
	exitOnce sync.Once
	ended    chan struct{} // closed when end has done its work
	endOnce  sync.Once

	runs          ownRuns
	subscriptions subscriptions
	watches       watches
	agents        agentWatch
	editor        *language.Editor

	mu         sync.Mutex // guards the fields below
	authorised bool
	turnedAway bool     // the client has shown a wrong token
	shutdown   bool     // the method shutdown was called
	folders    []string // workspace folders, absolute
	stopWatch  func()   // ends the watch over the process of initialize; may be nil
}

var (
	// ErrClientGone says that the client reads no more or, of ServeStdio, that
	// the process it named has ended.
	ErrClientGone = errors.New("the client is gone")
	// ErrExit says that the client of ServeStdio called exit without shutdown.
	ErrExit = errors.New("the client called exit without shutdown")

	errTooManyClients = errors.New("too many connections")
)

// notifyQueued is how many bytes of notifications may wait before a reply:
// enough to keep the writer busy, and not more, because whoever asks for the status
// of a busy run waits for them.
const notifyQueued = 8 << 10

// connect makes the connection of a client and starts to read. The owner of the
// process is authorised.
func (s *Server) connect(r io.Reader, w io.Writer, owner bool, who Client) (*connection, error) {
	c := &connection{
		server: s, runner: s.runner.View(who.View), owner: owner, authorised: who.Authorised,
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
	c.stream = wire.NewStream(r, w, o)
	c.subscriptions = subscriptions{ctx: c.ctx, stream: c.stream, sending: &c.sending, log: s.log, byRun: map[string]*follower{}}
	standings := &s.standings
	if who.View.Sees != nil {
		standings = &language.Standings{} // others see other runs
	}
	c.editor = language.New(c.ctx, language.Options{
		Client: c.stream, Suites: suites{c.runner.Catalog(), c.runner.Planner()}, Log: s.log, Standings: standings,
		Turn: s.dispatcher.Turn, Sent: c.subscriptions.ended, Failure: failure,
	})
	c.requests = s.dispatcher.Connect(dispatch.Connection[*call]{Context: c.ctx, Stream: c.stream, Admit: c.admit, Begin: c.begin})
	c.rpc = c.stream.Connect(context.Background(), c.requests)
	close(c.ready)
	return c, nil
}

// suites are what the language server knows of suites and their runs.
type suites struct {
	*catalog.Catalog
	*plan.Planner
}

// begin gives what the handler of a request gets.
func (c *connection) begin(d *dispatch.Call) *call {
	asked := &call{Call: d, server: c.server, conn: c, asked: c.editor.Request(d.Request.Method)}
	asked.asked.Execute = asked.execute
	return asked
}

// admit says whether this client may call a method now.
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

// finish waits, after the input has ended, for what the client is still to get:
// the notifications of its runs and, where the process ends with the client, the
// runs themselves. ctx ends when the client goes.
func (c *connection) finish(ctx context.Context) {
	c.requests.Wait(ctx)
	c.editor.Settle(ctx)
	c.watches.close()
	c.agents.close()
	c.editor.End()
	if c.owner {
		c.runs.wait(ctx)
	}
	c.sending.Wait(ctx)
	c.editor.Wait(ctx)
}

// ServeStdio serves one client, which is the owner of this process: until its
// input ends and all its runs have told their last, or until it goes. It is nil
// when the client ended well: by the end of its input, or by shutdown and exit.
// Otherwise its runs are cancelled, and ended or left after Options.CleanupTimeout;
// the error is [ErrClientGone], [ErrExit], [ErrServerClosed] or the cause of ctx.
//
// Both in and out are closed when they are io.Closers. An out that is an
// *os.File is watched, so that a client which goes is noticed without writing.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
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
		s.log.Info("client is gone", "cause", c.stream.Err())
	}
	return err
}

// Client is who speaks at the other end of a stream. The zero value must show
// Options.Token, and sees all runs.
type Client struct {
	// Authorised says that the client need not show Options.Token, because it has proved
	// who it is in another way.
	Authorised bool
	// View is what the client sees of the runs, and who those belong to that it starts.
	View runner.View
}

// ServeStream serves one client over a stream of bytes, such as a socket, until it
// leaves, ctx ends, or Shutdown is called; it closes the stream. Its runs continue when it
// has left.
//
// It is nil when the client ended well. Otherwise the error is [ErrClientGone], the
// cause of ctx, or [ErrServerClosed], which is also the answer to a client that comes
// after Shutdown; or it says that there are too many clients, which the client is
// told, too.
func (s *Server) ServeStream(ctx context.Context, stream io.ReadWriteCloser, who Client) error {
	who.Authorised = who.Authorised || s.o.Token == ""
	c, err := s.connect(stream, stream, false, who)
	if err != nil {
		s.refuse(stream, err)
		return err
	}
	return c.serve(ctx)
}

// serve serves the client until it leaves or has gone, is late with its token, or ctx
// ends, and takes the connection down. An owner that does not end well takes its runs
// with it.
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
			err = c.whyDone()
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

// whyDone says why the stream is done: nil when the input had ended.
func (c *connection) whyDone() error {
	switch {
	case !errors.Is(c.stream.Err(), wire.ErrClosed):
		return ErrClientGone
	case c.server.clients.isClosing():
		return ErrServerClosed
	}
	return nil
}

// end lets the connection's runs that were cancelled tell their end, as far as
// ctx allows, and takes the connection down. Every call returns when that is done.
func (c *connection) end(ctx context.Context) {
	c.endOnce.Do(func() {
		defer close(c.ended)
		defer c.server.clients.leave(c)
		<-c.ready
		c.requests.CancelAll()
		c.requests.Wait(ctx)
		c.editor.Settle(ctx)
		c.watches.close()
		c.agents.close()
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

// waitRuns waits for the runs that were cancelled to end, and for the client to have
// been sent that.
func (c *connection) waitRuns(ctx context.Context) {
	followers := c.subscriptions.live()
	c.runs.wait(ctx)
	limit, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for _, f := range followers {
		select {
		case <-f.done:
		case <-c.stream.Done():
		case <-limit.Done():
		}
	}
}

// leave lets serve end the connection.
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

// setFolders notes the folders of the client. None leaves those it has.
func (c *connection) setFolders(paths []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(paths) > 0 {
		c.folders = paths
	}
}

// resolve gives the absolute path that a parameter means: from the client's
// workspace folder or, where it has none, from the process's directory.
func (c *connection) resolve(parameter, given string) (string, error) {
	c.mu.Lock()
	folder := ""
	if len(c.folders) > 0 {
		folder = c.folders[0]
	}
	c.mu.Unlock()
	return absolute(parameter, given, folder)
}

// watchProcess lets the client be gone when the process pid is; it replaces an
// earlier watch, and only does that when pid is 0.
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
