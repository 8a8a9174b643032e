package container

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"waza/runner/sandbox/internal/handover"
	"waza/runner/sandbox/internal/proxy"
)

// An entrance is a directory of this machine that a container has from its start. Through the sockets
// in it, a program in the container reaches this process:
//
//	container                                       this process
//	waza sandbox-start PROGRAM ─── start ────────►  asks for listeners, and serves them
//	PROGRAM, started by that   ─── a socket each ─► copies to the sockets of Program.Sockets
//
// The listeners belong to the network of the container, so that a program in it needs no other
// process to reach a proxy. Only the directory above keeps other users of this machine away, because a
// container can have any user.
type entrance struct {
	dir string

	work sync.WaitGroup // the goroutines below

	// started is closed when the program starts, or cannot be started.
	started chan struct{}

	mu     sync.Mutex // guards the fields below
	open   map[io.Closer]bool
	closed bool
	fault  error // of the start
	pid    int   // of the started program; 0 if it is not visible
}

// entrances is the directory of the entrances of a run, which is made when the first one is needed.
type entrances struct {
	once sync.Once
	dir  string
	err  error
}

// entrancesName is the start of the names of directories of entrances. The ID of the run follows.
const entrancesName = "waza-containers-"

// prepare returns the directory.
func (e *entrances) prepare(id string) (string, error) {
	e.once.Do(func() {
		if e.dir, e.err = os.MkdirTemp("", entrancesName+id+"-"); e.err == nil {
			e.err = os.WriteFile(e.resolver(), []byte(proxy.ResolverFile), 0o644)
		}
	})
	return e.dir, e.err
}

// resolver is the file with the name server of an isolated network with a proxy.
func (e *entrances) resolver() string { return filepath.Join(e.dir, "resolv.conf") }

// remove removes the directory. No entrance may be in use.
func (e *entrances) remove() {
	if e.dir != "" {
		_ = os.RemoveAll(e.dir) // the next run tries it again
	}
}

// removeEntrances removes the directories of processes that were killed.
func removeEntrances() error {
	list, err := filepath.Glob(filepath.Join(os.TempDir(), entrancesName+"*"))
	if err != nil {
		return err
	}
	for _, dir := range list {
		rest := strings.TrimPrefix(filepath.Base(dir), entrancesName)
		if i := strings.LastIndexByte(rest, '-'); i > 0 && !runs(rest[:i]) {
			_ = os.RemoveAll(dir) // it can be that of another user
		}
	}
	return nil
}

// newEntrance makes an entrance for a container.
func (e *entrances) newEntrance(id, name string) (*entrance, error) {
	above, err := e.prepare(id)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(above, name[strings.LastIndexByte(name, '-')+1:])
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // regardless of the umask
		return nil, err
	}
	return &entrance{dir: dir, started: make(chan struct{}), open: map[io.Closer]bool{}}, nil
}

// mount is the entrance in its container.
func (e *entrance) mount() Mount { return Mount{Target: entranceDir, Source: e.dir} }

// startSocket is the name of the socket of the start.
const startSocket = "start"

// SocketInside returns the path at which a program in a container finds a socket of
// [Program.Sockets].
func SocketInside(socket string) string { return path.Join(entranceDir, socketName(socket)) }

func socketName(socket string) string {
	sum := sha256.Sum256([]byte(socket))
	return hex.EncodeToString(sum[:8])
}

// serve prepares the entrance for a program, which starts then.
func (e *entrance) serve(p *Program) error {
	start, err := e.listen(startSocket)
	if err != nil {
		return err
	}
	e.work.Go(func() {
		defer e.release(start)
		defer close(e.started)
		pid, err := e.start(start, p)
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.pid = pid; !e.closed {
			e.fault = err
		}
	})
	for _, socket := range p.Sockets {
		l, err := e.listen(socketName(socket))
		if err != nil {
			return err
		}
		e.work.Go(func() { e.relay(l, socket) })
	}
	return nil
}

// listen opens a socket that every user can connect to who reaches it.
func (e *entrance) listen(name string) (*net.UnixListener, error) {
	file := filepath.Join(e.dir, name)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: file, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("the socket of a container, %d bytes long, cannot be opened; a short TMPDIR can help: %w", len(file), err)
	}
	if err := os.Chmod(file, 0o666); err != nil {
		l.Close()
		return nil, err
	}
	if !e.hold(l) {
		return nil, errClosed
	}
	return l, nil
}

// hold makes close close c. It returns false, and closes c itself, if the entrance is closed.
func (e *entrance) hold(c io.Closer) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		c.Close()
		return false
	}
	e.open[c] = true
	return true
}

func (e *entrance) release(c io.Closer) {
	e.mu.Lock()
	delete(e.open, c)
	e.mu.Unlock()
	c.Close()
}

// start lets the first process that connects, which is waza, start the program. It returns the id of
// that process, which becomes the program.
func (e *entrance) start(l *net.UnixListener, p *Program) (pid int, err error) {
	conn, err := l.AcceptUnix()
	if err != nil {
		return 0, err
	}
	e.release(l) // nobody else can connect
	if !e.hold(conn) {
		return 0, errClosed
	}
	defer e.release(conn)
	if err := handover.Send(conn, &startOrder{Listen: p.Listen}); err != nil {
		return 0, err
	}
	var answer startAnswer
	sockets, _, err := handover.Receive(conn, &answer)
	defer handover.CloseAll(sockets)
	if err != nil {
		return 0, fmt.Errorf("waza in the container ended: %w", err)
	}
	if answer.Fault != "" {
		return 0, errors.New(answer.Fault)
	}
	if p.Serve != nil {
		if err := p.Serve(sockets); err != nil {
			return 0, err
		}
	}
	return peerOf(conn), handover.Send(conn, &startOrder{Go: true}, handover.Numbers(p.Cmd.ExtraFiles)...)
}

// startTimeout limits the time in which waza in a container starts the program.
const startTimeout = time.Minute

// await waits until the program starts. It returns the id of its process, and an error if it cannot be
// started or if ended is closed before.
func (e *entrance) await(ended <-chan struct{}) (pid int, err error) {
	timer := time.NewTimer(startTimeout)
	defer timer.Stop()
	select {
	case <-e.started:
	case <-ended:
		return 0, errors.New("waza in the container ended")
	case <-timer.C:
		return 0, fmt.Errorf("waza in the container did not answer within %s", startTimeout)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.pid, e.fault
}

// maxRelayed limits the connections to a socket at the same time.
const maxRelayed = 64

// relay connects the connections of a listener to a socket.
func (e *entrance) relay(l net.Listener, socket string) {
	defer e.release(l)
	slots := make(chan struct{}, maxRelayed)
	for {
		conn, err := l.Accept()
		if err != nil {
			return // closed
		}
		if !e.hold(conn) {
			return
		}
		select {
		case slots <- struct{}{}:
			e.work.Go(func() {
				defer e.release(conn)
				e.connect(conn, socket)
				<-slots
			})
		default:
			e.release(conn)
		}
	}
}

// connect copies between a connection and a socket until both directions have ended.
func (e *entrance) connect(conn net.Conn, socket string) {
	to, err := net.Dial("unix", socket)
	if err != nil || !e.hold(to) {
		return
	}
	defer e.release(to)
	var both sync.WaitGroup
	both.Go(func() { copyHalf(to, conn) })
	both.Go(func() { copyHalf(conn, to) })
	both.Wait()
}

// copyHalf copies one direction, and ends it.
func copyHalf(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	if c, ok := to.(*net.UnixConn); ok {
		_ = c.CloseWrite()
	}
}

// close ends the entrance, whose program has ended, and removes its directory. It returns the reason
// why the program did not start.
func (e *entrance) close() error {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	e.closed = true
	for c := range e.open {
		c.Close()
	}
	e.mu.Unlock()
	e.work.Wait()
	_ = os.RemoveAll(e.dir) // with the run, at the latest
	return e.fault
}
