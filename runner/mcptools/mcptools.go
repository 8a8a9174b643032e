// Package mcptools gives the agents that waza starts tools whose functions run in this process.
// Call [Serve] with a Model Context Protocol server; programs call [Main] first.
//
//	agent ─ stdio ─► waza mcp-tools SOCKET ─ unix socket ─► the server, in this process
//
// Agents start MCP servers themselves and use their standard streams. Here they start waza
// again, which only copies bytes. Agents that accept only running servers reach the same server
// over HTTP, on this machine.
package mcptools

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"waza/runner/executor"
)

// Limits on what an agent can send to a server.
const (
	MaxMessage     = 1 << 20 // bytes of a message to the server; a longer one ends its connection
	maxConnections = 16      // concurrent connections; further ones are closed
)

// maxSocketPath is the maximum length of a socket path that all systems support, in bytes.
const maxSocketPath = 100

// Serve offers a server with the given tools to agents until the context ends or stop is called.
// Each process that an agent starts is a session of the server. Only this user can connect. stop
// ends all sessions, waits until their handlers have returned and removes the socket. It can be
// called more than once. Handlers run concurrently.
//
// The socket is created in a subdirectory of dir. An empty dir means the temporary directory of
// the system, which is also used if the path of the socket would be too long.
func Serve(ctx context.Context, dir, name string, tools []string, server *mcp.Server) (_ executor.Server, stop func(), err error) {
	program, err := os.Executable()
	if err != nil {
		return executor.Server{}, nil, fmt.Errorf("mcp server %s: %w", name, err)
	}
	s, err := listen(dir, server)
	if err != nil {
		return executor.Server{}, nil, fmt.Errorf("mcp server %s: %w", name, err)
	}
	d, err := newHTTPServer(server)
	if err != nil {
		s.close()
		os.RemoveAll(s.dir)
		return executor.Server{}, nil, fmt.Errorf("mcp server %s: %w", name, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	s.work.Go(func() { s.accept(ctx) })
	unhook := context.AfterFunc(ctx, s.close)
	stop = sync.OnceFunc(func() {
		if unhook() {
			s.close()
		}
		cancel()
		d.close()
		s.work.Wait()
		os.RemoveAll(s.dir)
	})
	return executor.Server{
		Name: name, Command: program, Args: []string{argument, s.listener.Addr().String()}, URL: d.url(), Token: d.token, Tools: tools,
	}, stop, nil
}

// service is a listening server. One of its goroutines accepts connections, and each connection
// has its own; work counts them.
type service struct {
	server   *mcp.Server
	listener net.Listener
	dir      string // contains only the socket
	work     sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	open   map[net.Conn]bool
	closed bool
}

func listen(dir string, server *mcp.Server) (*service, error) {
	own, err := os.MkdirTemp(dir, "waza-mcp-") // 0700
	if err == nil && len(filepath.Join(own, socketName)) > maxSocketPath {
		os.Remove(own)
		own, err = os.MkdirTemp("", "waza-mcp-")
	}
	if err != nil {
		return nil, err
	}
	path := filepath.Join(own, socketName)
	listener, err := net.Listen("unix", path)
	if err == nil {
		if err = os.Chmod(path, 0o600); err != nil {
			listener.Close()
		}
	}
	if err != nil {
		os.RemoveAll(own)
		return nil, err
	}
	return &service{server: server, listener: listener, dir: own, open: map[net.Conn]bool{}}, nil
}

const socketName = "tools"

func (s *service) accept(ctx context.Context) {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return // closed
		}
		if !s.add(conn) {
			conn.Close()
			continue
		}
		s.work.Go(func() {
			defer s.remove(conn)
			session, err := s.server.Connect(ctx, &mcp.IOTransport{Reader: conn, Writer: conn, MaxLineLength: MaxMessage}, nil)
			if err == nil {
				_ = session.Wait() // the agent reports errors itself
			}
		})
	}
}

func (s *service) add(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.open) >= maxConnections {
		return false
	}
	s.open[conn] = true
	return true
}

func (s *service) remove(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, conn)
	conn.Close()
}

func (s *service) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.listener.Close()
	for conn := range s.open {
		conn.Close()
	}
}
