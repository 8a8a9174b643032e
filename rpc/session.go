package rpc

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"waza/rpc/host"
	"waza/rpc/wire"
	"waza/runner"
)

// A session is one client: its connection, its requests, the runs it started
// and those it receives.
//
// Its goroutines, and who ends them:
//   - the reader and the writer, which belong to the wire.Stream and end with it.
//     The reader calls the handlers of quick methods;
//   - one for each long request: ends by itself, early when ctx is cancelled;
//   - one that reads the suites an editor has open, while there are some to read,
//     see checker;
//   - one follower for each run that is received: ends after eval.complete, or
//     when its ctx is cancelled;
//   - one for each run that goes on while an editor shows results, which has it
//     refresh them: ends when it has, or the client's input;
//   - one for each suite that is watched: ends with eval.unwatch, and when the
//     client's input has ended;
//   - on stdio, one that watches the output and one that watches the process of
//     initialize: serve ends both.
//
// Whoever calls serve owns all of them: when it returns they have ended, but for
// a reader that is stuck in a blocking descriptor.
type session struct {
	server  *Server
	stdio   bool
	counted bool // among the server's clients; guarded by the server's mu
	stream  *wire.Stream
	conn    *jsonrpc2.Conn

	ctx       context.Context // of requests and followers
	cancel    context.CancelFunc
	calls     group
	following group
	result    chan struct{} // holds a token while a run.result is made, see there

	ready    chan struct{} // closed when conn is set
	exits    chan struct{} // closed by the method exit
	exitOnce sync.Once
	ended    chan struct{} // closed when end has done its work
	endOnce  sync.Once

	watches  watches
	language language

	mu         sync.Mutex // guards the fields below
	authorised bool
	turnedAway bool     // the client has shown a wrong token
	shutdown   bool     // the method shutdown was called
	gone       bool     // runs of this client are cancelled as soon as they start
	folders    []string // workspace folders, absolute
	unanswered int      // long notifications being served
	inFlight   map[jsonrpc2.ID]context.CancelFunc
	runs       map[string]*runner.Run // started by this client and going on
	followers  map[string]*follower
	stopWatch  func() // ends the watch over the process of initialize; may be nil
}

var (
	// ErrClientGone says that the client of ServeStdio reads no more, or that
	// the process it named has ended. Its runs were cancelled.
	ErrClientGone = errors.New("the client is gone")
	// ErrExit says that the client of ServeStdio called exit without shutdown.
	ErrExit = errors.New("the client called exit without shutdown")

	errTooManyClients = errors.New("too many connections")
)

// notifyQueued is how many bytes of notifications may stand before a reply:
// enough to keep the writer busy, and not more, as whoever asks how a busy run
// stands waits for them.
const notifyQueued = 8 << 10

func (s *Server) newSession(r io.Reader, w io.Writer, stdio bool) (*session, error) {
	sess := &session{
		server: s, stdio: stdio,
		result: make(chan struct{}, 1),
		ready:  make(chan struct{}), exits: make(chan struct{}), ended: make(chan struct{}),
		authorised: stdio || s.o.Token == "",
		inFlight:   map[jsonrpc2.ID]context.CancelFunc{},
		runs:       map[string]*runner.Run{},
		followers:  map[string]*follower{},
	}
	sess.ctx, sess.cancel = context.WithCancel(context.Background())
	sess.language.check.s = sess
	sess.language.ctx, sess.language.end = context.WithCancel(sess.ctx)
	if err := s.enter(sess); err != nil {
		return nil, err
	}
	o := wire.Options{OnEOF: sess.finish, NotifyQueued: notifyQueued, NullParams: []string{"shutdown", "exit"}}
	if !stdio {
		o.RefuseForeign, o.WriteTimeout = true, s.o.WriteTimeout
	}
	if !sess.authorised {
		o.MaxLine = wire.MaxLineBeforeAuth
	}
	sess.stream = wire.NewStream(r, w, o)
	sess.conn = sess.stream.Connect(context.Background(), sess)
	close(sess.ready)
	return sess, nil
}

// finish waits, after the input has ended, for what the client is still to get:
// the notifications of its runs and, where the process ends with the client, the
// runs themselves. ctx ends when the client goes.
func (s *session) finish(ctx context.Context) {
	s.calls.Wait(ctx)
	s.endWatches()
	s.language.end()
	if s.stdio {
		for _, r := range s.ownRuns() {
			select {
			case <-r.Done():
			case <-ctx.Done():
			}
		}
	}
	s.following.Wait(ctx)
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
	sess, err := s.newSession(in, out, true)
	if err != nil {
		return err
	}
	if f, ok := out.(*os.File); ok {
		defer host.WatchOutput(f, func() { sess.stream.Fail(ErrClientGone) })()
	}
	defer sess.watchProcess(0)
	select {
	case <-sess.stream.Done():
		err = sess.whyDone()
	case <-sess.exits:
		if !sess.isShutdown() {
			err = ErrExit
		}
		sess.cancelRuns()
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		sess.cancelRuns()
	}
	limit, cancel := context.WithTimeout(context.Background(), s.o.CleanupTimeout)
	defer cancel()
	sess.end(limit)
	return err
}

// whyDone says why the stream is done: nil when the input had ended.
func (s *session) whyDone() error {
	err := s.stream.Err()
	if errors.Is(err, wire.ErrClosed) {
		if s.server.isClosing() {
			return ErrServerClosed
		}
		return nil
	}
	s.server.log.Info("client is gone", "cause", err)
	return ErrClientGone
}

// serve serves a client of a listener until its connection ends. Its runs go on.
func (s *session) serve() {
	var late <-chan time.Time
	if !s.isAuthorised() {
		timer := time.NewTimer(s.server.o.AuthTimeout)
		defer timer.Stop()
		late = timer.C
	}
	for open := true; open; {
		select {
		case <-s.stream.Done():
			open = false
		case <-s.exits:
			open = false
		case <-late:
			open, late = s.isAuthorised(), nil
		}
	}
	limit, cancel := context.WithTimeout(context.Background(), s.server.o.CleanupTimeout)
	defer cancel()
	if s.stream.Err() == nil {
		s.conn.Close()
	}
	s.end(limit)
}

// end lets the session's runs that were cancelled tell their end, as far as
// ctx allows, and takes the session down. Every call returns when that is done.
func (s *session) end(ctx context.Context) {
	s.endOnce.Do(func() {
		defer close(s.ended)
		defer s.server.leave(s)
		<-s.ready
		s.cancelCalls()
		s.calls.Wait(ctx)
		s.endWatches()
		s.waitRuns(ctx)
		s.conn.Close()
		s.cancel()
		limit, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		s.calls.Wait(limit)
		s.following.Wait(limit)
	})
	<-s.ended
}

// waitRuns waits for the runs that were cancelled to end, and for the session
// to have told so.
func (s *session) waitRuns(ctx context.Context) {
	s.mu.Lock()
	wait := s.gone
	var followers []*follower
	for _, f := range s.followers {
		if f.live {
			followers = append(followers, f)
		}
	}
	s.mu.Unlock()
	if !wait && !s.server.isClosing() {
		return
	}
	for _, r := range s.ownRuns() {
		select {
		case <-r.Done():
		case <-ctx.Done():
		}
	}
	told, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for _, f := range followers {
		select {
		case <-f.done:
		case <-s.stream.Done():
		case <-told.Done():
		}
	}
}

// own remembers a run as this client's. It is cancelled at once when the client
// is gone already.
func (s *session) own(run *runner.Run) {
	s.mu.Lock()
	for id, r := range s.runs {
		if isClosed(r.Done()) {
			delete(s.runs, id)
		}
	}
	s.runs[run.ID()] = run
	gone := s.gone
	s.mu.Unlock()
	if gone {
		run.Cancel()
	}
}

// ownRuns lists the runs that this client started and that may go on.
func (s *session) ownRuns() []*runner.Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.runs))
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// cancelRuns cancels the client's runs, also those that are about to start.
func (s *session) cancelRuns() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	for _, r := range s.runs {
		r.Cancel()
	}
}

func (s *session) cancelCalls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cancel := range s.inFlight {
		cancel()
	}
}

func (s *session) isAuthorised() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.authorised
}

func (s *session) isShutdown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shutdown
}

// watchProcess lets the client be gone when the process pid is; it replaces an
// earlier watch, and only does that when pid is 0.
func (s *session) watchProcess(pid int) {
	stop := func() {}
	if pid > 0 {
		stop = host.WatchProcess(pid, func() { s.stream.Fail(ErrClientGone) })
	}
	s.mu.Lock()
	stop, s.stopWatch = s.stopWatch, stop
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
}
