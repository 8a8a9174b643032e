package engine

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"waza/eval/files"
)

// The files of an embedded server, below the directory fleet of the state directory.
const (
	lockFile   = "lock"        // locked by the process that runs the server
	serverFile = "server.json" // contains a [place]
	storeDir   = "store"       // store of JetStream
)

// place is the content of server.json: the address of the embedded server, and the token for
// clients. Each start of a server has a new port and token. So a stranger who takes the port of
// a killed server only learns a token that is invalid.
type place struct {
	Address string `json:"address"`
	Token   string `json:"token"`
	PID     int    `json:"pid"`
}

// mostPlaceBytes is the maximum size of server.json.
const mostPlaceBytes = 4096

// errStarting means that a different process runs, or ran, the embedded server, and it cannot be
// reached yet.
var errStarting = errors.New("the embedded server is starting in another process")

// hostError is the reason why this process cannot run the embedded server although no other
// process does.
type hostError struct{ cause error }

func (e *hostError) Error() string { return e.cause.Error() }
func (e *hostError) Unwrap() error { return e.cause }

// home is the embedded server of a state directory, from the view of this process. The process
// that takes the lock runs the server. The server dies with the process:
//
//	process A   connects: takes the lock, starts the server     killed
//	process B   connects to A's server                          connects again: takes the lock, …
//	process C   connects to A's server                          connects again: to B's server
//
// All connections of a process to the same state directory share one home. It has no goroutines
// of its own, but the running server does.
type home struct {
	dir string
	log *slog.Logger

	mu     sync.Mutex // guards the fields below; held while a server starts or ends
	uses   int
	lock   *os.File // held while server is not nil
	server *host
}

var homes = struct {
	sync.Mutex // guards by and the uses of each; locked before the mutex of a home
	by         map[string]*home
}{by: map[string]*home{}}

// openHome returns the home of a state directory. The caller must call close.
func openHome(state string, log *slog.Logger) (*home, error) {
	if !filepath.IsAbs(state) {
		return nil, fmt.Errorf("fleet embedded: the state directory must be an absolute path, got %q", state)
	}
	dir := filepath.Join(state, "fleet")
	if err := os.MkdirAll(filepath.Join(dir, storeDir), 0o700); err != nil {
		return nil, fmt.Errorf("fleet embedded: make %s: %s", dir, files.Reason(err))
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("fleet embedded: make %s private: %s", dir, files.Reason(err))
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	homes.Lock()
	defer homes.Unlock()
	h := homes.by[dir]
	if h == nil {
		h = &home{dir: dir, log: log}
		homes.by[dir] = h
	}
	h.uses++
	return h, nil
}

// close releases the home. The last user in the process stops its server.
func (h *home) close() {
	if h == nil {
		return
	}
	homes.Lock()
	defer homes.Unlock()
	if h.uses--; h.uses > 0 {
		return
	}
	delete(homes.by, h.dir)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.server != nil {
		h.endLocked()
	}
}

func (h *home) hosting() bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.server != nil
}

// find returns the address of the server, and starts it if none runs. A [hostError] is
// permanent; other errors can be temporary.
func (h *home) find() (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.server != nil {
		return h.server.place.Address, nil
	}
	taken, err := h.takeLockLocked()
	if err != nil {
		return "", &hostError{err}
	}
	if taken {
		if err := h.startLocked(); err != nil {
			return "", &hostError{errors.Join(err, h.unlockLocked())}
		}
		return h.server.place.Address, nil
	}
	p, err := h.read()
	return p.Address, err
}

// explain describes why a client could not connect. An error caused by a different process
// counts as unreachable, because the next try can find a different server, or start one in this
// process.
func (h *home) explain(err error) error {
	if own, ok := errors.AsType[*hostError](err); ok {
		return fmt.Errorf("fleet embedded: %w", own)
	}
	why := "cannot reach the embedded server"
	if p, e := h.read(); e == nil {
		why = fmt.Sprintf("cannot reach the embedded server in process %d", p.PID)
	}
	return &unreachableError{"fleet embedded: " + why + ": " + err.Error(), err}
}

// token returns the token of the running server. Without a server it returns a token that no
// server accepts.
func (h *home) token() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.server != nil {
		return h.server.place.Token
	}
	p, err := h.read()
	if err != nil {
		h.log.Debug("no token for the embedded server", "error", err.Error())
	}
	return p.Token
}

// takeLockLocked takes the lock and reports whether this process can run the server now.
func (h *home) takeLockLocked() (bool, error) {
	path := filepath.Join(h.dir, lockFile)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return false, fmt.Errorf("open %s: %s", path, files.Reason(err))
	}
	if err := files.Lock(f); err != nil {
		f.Close()
		if errors.Is(err, files.ErrLocked) {
			return false, nil
		}
		return false, fmt.Errorf("lock %s: %w", path, err)
	}
	h.lock = f
	return true, nil
}

func (h *home) read() (place, error) {
	var p place
	path := filepath.Join(h.dir, serverFile)
	content, err := files.Read(path, mostPlaceBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p, errStarting
	case err != nil:
		return p, fmt.Errorf("read %s: %s", path, files.Reason(err))
	}
	if err := json.Unmarshal(content, &p); err != nil || p.Address == "" || p.Token == "" {
		return place{}, fmt.Errorf("%s is damaged; delete it while no waza process is running", path)
	}
	return p, nil
}

// startLocked starts the server and writes its address. The caller has the lock file.
func (h *home) startLocked() error {
	path := filepath.Join(h.dir, serverFile)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %s", path, files.Reason(err))
	}
	server, err := startHost(filepath.Join(h.dir, storeDir), rand.Text(), h.log)
	if err != nil {
		return err
	}
	content, err := json.Marshal(server.place)
	if err == nil {
		err = files.WriteWhole(path, func(w io.Writer) error {
			_, err := w.Write(content)
			return err
		}, nil)
	}
	if err != nil {
		server.end()
		return fmt.Errorf("write %s: %s", path, files.Reason(err))
	}
	h.server = server
	h.log.Info("embedded server of the fleet started", "address", server.place.Address)
	return nil
}

// endLocked stops the server. A different process can start it then.
func (h *home) endLocked() {
	os.Remove(filepath.Join(h.dir, serverFile))
	h.server.end()
	h.server = nil
	_ = h.unlockLocked()
}
