package fleettest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waza/runner/proc/proctest"
)

// catchUpTime is how long a restarted server can take until its replicas are up to date. After
// that it counts as ready anyway, because it never catches up if too few other servers run.
const catchUpTime = 15 * time.Second

// clusterSize is the number of servers of a cluster.
const clusterSize = 3

// memberVariable makes a process of a test binary a server. Its value is the server's
// configuration as JSON.
const memberVariable = "WAZA_TEST_NATS_SERVER"

// member is a server of a cluster.
type member struct {
	Name      string
	Port      int
	RoutePort int
	Routes    []string
	Store     string
}

// init turns the processes that Cluster starts into servers. They are processes of the test
// binary, so that nothing has to be built or installed, and tests need no TestMain for them.
func init() {
	if config := os.Getenv(memberVariable); config != "" {
		os.Exit(serve(config))
	}
}

// serve runs a server until standard input ends, which happens when the test ends or is killed.
// It prints "ready" when the server has joined the cluster.
func serve(config string) int {
	var m member
	if err := json.Unmarshal([]byte(config), &m); err != nil {
		fmt.Println(err)
		return 2
	}
	var routes []*url.URL
	for _, route := range m.Routes {
		routes = append(routes, &url.URL{Scheme: "nats", Host: route})
	}
	s, err := server.NewServer(&server.Options{
		ServerName: m.Name,
		Host:       "127.0.0.1",
		Port:       m.Port,
		Cluster:    server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: m.RoutePort},
		Routes:     routes,
		JetStream:  true,
		StoreDir:   m.Store,
		NoLog:      true,
		NoSigs:     true,
	})
	if err != nil {
		fmt.Println(err)
		return 2
	}
	s.Start()
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	late := time.After(catchUpTime)
	current := func() bool {
		select {
		case <-late:
			return true
		default:
			return s.Healthz(&server.HealthzOptions{}).Status == "ok"
		}
	}
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		select {
		case <-tick.C:
			if s.ReadyForConnections(time.Millisecond) && s.JetStreamIsCurrent() && current() {
				fmt.Println("ready")
				tick.Stop()
			}
		case <-ended:
			s.Shutdown()
			s.WaitForShutdown()
			return 0
		}
	}
}

// Servers are three nats-server processes that form a cluster. It is safe for concurrent use.
type Servers struct {
	t       testing.TB
	members []member

	mu      sync.Mutex // guards running
	running []*running // nil for stopped servers
}

// running is the process of a server.
type running struct {
	command *exec.Cmd
	stdin   io.Closer
	stdout  *bufio.Scanner
}

// Cluster starts three servers as processes, and returns when streams can have three replicas.
// They end with the test, even if its process is killed.
func Cluster(t testing.TB) *Servers {
	t.Helper()
	require.Empty(t, os.Getenv(memberVariable), "a server cannot start a cluster")
	s := &Servers{t: t, running: make([]*running, clusterSize)}
	var ports []int // known to all servers, and kept across restarts
	for range 2 * clusterSize {
		ports = append(ports, proctest.FreePort(t))
	}
	store := t.TempDir()
	for i := range clusterSize {
		m := member{Name: fmt.Sprintf("server-%d", i), Port: ports[i], RoutePort: ports[clusterSize+i]}
		m.Store = filepath.Join(store, m.Name)
		for _, port := range ports[clusterSize:] {
			m.Routes = append(m.Routes, fmt.Sprintf("127.0.0.1:%d", port))
		}
		s.members = append(s.members, m)
	}
	t.Cleanup(func() {
		for i := range s.members {
			s.Kill(i)
		}
	})
	for i := range s.members {
		s.launch(i)
	}
	for i := range s.members {
		s.await(i)
	}
	s.replicate()
	return s
}

// URL returns the URLs of all servers, separated by commas: the first part of a fleet address.
func (s *Servers) URL() string {
	var urls []string
	for _, m := range s.members {
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", m.Port))
	}
	return strings.Join(urls, ",")
}

// Len returns the number of servers, including stopped ones.
func (s *Servers) Len() int { return len(s.members) }

// Start restarts a server that was killed or stopped, with its store, and returns when it has
// joined the cluster. It does nothing if the server is running.
func (s *Servers) Start(i int) {
	s.t.Helper()
	if s.launch(i) {
		s.await(i)
	}
}

// launch starts the process of a server. It returns false if the server is already running.
func (s *Servers) launch(i int) bool {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[i] != nil {
		return false
	}
	config, err := json.Marshal(s.members[i])
	require.NoError(s.t, err)
	exe, err := os.Executable()
	require.NoError(s.t, err)
	r := &running{command: exec.Command(exe)}
	r.command.Env = append(os.Environ(), memberVariable+"="+string(config))
	r.stdin, err = r.command.StdinPipe()
	require.NoError(s.t, err)
	stdout, err := r.command.StdoutPipe()
	require.NoError(s.t, err)
	r.stdout = bufio.NewScanner(stdout)
	require.NoError(s.t, r.command.Start())
	s.running[i] = r
	return true
}

// await returns when a server has joined the cluster, or is killed again.
func (s *Servers) await(i int) {
	s.t.Helper()
	s.mu.Lock()
	r := s.running[i]
	s.mu.Unlock()
	if r == nil {
		return
	}
	late := time.AfterFunc(startTime, func() { _ = r.command.Process.Kill() })
	defer late.Stop()
	if r.stdout.Scan() && r.stdout.Text() == "ready" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	require.NotSame(s.t, r, s.running[i], "%s is not ready: %q", s.members[i].Name, r.stdout.Text())
}

// Kill kills a server with SIGKILL and waits for its end. It does nothing if the server is not
// running.
func (s *Servers) Kill(i int) {
	if r := s.take(i); r != nil {
		_ = r.command.Process.Kill()
		_ = r.command.Wait()
	}
}

// Stop shuts a server down in an orderly way, so that it hands over its leaderships, and waits
// for its end.
func (s *Servers) Stop(i int) {
	if r := s.take(i); r != nil {
		_ = r.stdin.Close()
		_ = r.command.Wait()
	}
}

func (s *Servers) take(i int) *running {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.running[i]
	s.running[i] = nil
	return r
}

// replicate creates a stream with three replicas and deletes it, which works once all servers
// are connected to each other.
func (s *Servers) replicate() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), startTime)
	defer cancel()
	conn, err := nats.Connect(s.URL())
	require.NoError(s.t, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	require.NoError(s.t, err)
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
		once, cancel := context.WithTimeout(ctx, startTime/10)
		_, err := js.CreateStream(once, jetstream.StreamConfig{Name: "READY", Replicas: clusterSize, Storage: jetstream.MemoryStorage})
		if err == nil {
			err = js.DeleteStream(once, "READY")
		}
		cancel()
		if err == nil {
			tick.Stop()
			return
		}
		require.NoError(s.t, ctx.Err(), "the cluster cannot create a stream: %v", err)
	}
}
