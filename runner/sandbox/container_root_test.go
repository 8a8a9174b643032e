package sandbox_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/surroundings"
	"waza/runner/record"
	"waza/runner/sandbox"
	"waza/runner/sandbox/internal/pids"
	"waza/runner/sandbox/sandboxtest"
)

// rootPolicy returns the policy of a suite whose image is a root file system.
func rootPolicy(t *testing.T, root, more string) sandbox.Policy {
	t.Helper()
	var s surroundings.Sandbox
	s.SetDefaults()
	require.NoError(t, s.Override("{mode: container, image: "+root+", "+more+"}"))
	p, err := sandbox.PolicyOf(&s, "/suite")
	require.NoError(t, err)
	return p
}

// inRoot runs a script in a container with a root file system. It returns the output and the
// refused connections.
func inRoot(t *testing.T, p sandbox.Policy, v sandbox.View, env []string, script string) (out string, refused []string) {
	t.Helper()
	s, err := sandbox.Open(record.TierContainer, p)
	require.NoError(t, err)
	defer s.Close()
	dir := t.TempDir()
	var mu sync.Mutex // guards refused
	v.Env, v.Write = slices.Concat(env, []string{"HOME=/house/me"}), []string{dir}
	v.OnRefused = func(text string) {
		mu.Lock()
		defer mu.Unlock()
		refused = append(refused, text)
	}
	out, err = run(t, s, v, dir, "sh", "-c", script)
	require.NoError(t, err, out)
	mu.Lock()
	defer mu.Unlock()
	return out, refused
}

// A container without a network reaches the hosts of the list by the proxy, by DNS and directly. Others
// are refused, and reported.
func TestContainerNetworkByName(t *testing.T) {
	root := sandboxtest.Root(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "hello from", r.URL.Path) }))
	defer server.Close()
	u, err := url.Parse(server.URL)
	require.NoError(t, err)
	out, refused := inRoot(t, rootPolicy(t, root, `network: ["localhost:`+u.Port()+`", api.example.com]`), sandbox.View{}, nil, `
		wget -q -O - http://localhost:`+u.Port()+`/proxy
		http_proxy= wget -q -O - http://127.0.0.1:`+u.Port()+`/direct
		wget -q -O - http://example.com/ 2>&1
		nslookup -type=a localhost 127.0.0.1 | awk '/^Name:.*localhost/ { print "found" }'
		nslookup -type=a other.example.com 127.0.0.1 2>&1 | awk '/NXDOMAIN/ { print "none"; exit }'
		exit 0`)
	require.Equal(t, "hello from /proxy\nhello from /direct\nwget: server returned error: HTTP/1.1 403 Forbidden\nfound\nnone\n", out)
	require.NotEmpty(t, refused)
	require.Contains(t, strings.Join(refused, "\n"), "example.com:80")
}

// With keys: proxy, the program has no key, and the service gets it, in an open network and in a list of
// hosts.
func TestContainerKeys(t *testing.T) {
	root := sandboxtest.Root(t)
	got := make(chan string, 1)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.URL.Path + " " + r.Header.Get("Authorization")
		fmt.Fprintln(w, "answer")
	}))
	defer service.Close()
	for _, network := range []string{"open", "[api.example.com]"} {
		out, _ := inRoot(t, rootPolicy(t, root, "keys: proxy, network: "+network), sandbox.View{},
			[]string{"OPENAI_API_KEY=sk-real-0123456789", "OPENAI_BASE_URL=" + service.URL + "/v1"}, `
			echo "$OPENAI_API_KEY" | awk '/real/ { print "has the key" }'
			http_proxy= wget -q -O - --header "Authorization: Bearer $OPENAI_API_KEY" "$OPENAI_BASE_URL/models"`)
		require.Equal(t, "answer\n", out, network)
		require.Equal(t, "/v1/models Bearer sk-real-0123456789", <-got)
	}
}

// A program reaches the services of its view although its network is closed.
func TestContainerReach(t *testing.T) {
	root := sandboxtest.Root(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "tools") }))
	defer server.Close()
	for _, network := range []string{"none", "open"} {
		out, _ := inRoot(t, rootPolicy(t, root, "network: "+network), sandbox.View{Reach: []string{strings.TrimPrefix(server.URL, "http://")}}, nil,
			"http_proxy= wget -q -O - "+server.URL)
		require.Equal(t, "tools\n", out, network)
	}
	out, _ := inRoot(t, rootPolicy(t, root, "network: none"), sandbox.View{}, nil, "wget -q -O - "+server.URL+" 2>&1; exit 0")
	require.NotContains(t, out, "tools")
}

// Containers of docker have a network of their own also if it is open. There, programs reach the proxy of
// keys and services of this machine at the addresses that they have here.
func TestContainerOwnLoopback(t *testing.T) {
	for _, name := range []string{"unshare", "busybox"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("skipped: %s is not installed", name)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("skipped: a network of its own needs the root user")
	}
	state := engine(t)
	require.NoError(t, os.WriteFile(filepath.Join(state, "own-network"), nil, 0o600))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, r.URL.Path, r.Header.Get("Authorization") == "Bearer sk-real-0123456789")
	}))
	defer server.Close()
	out, _ := inRoot(t, asks(t, "keys: proxy"), sandbox.View{Reach: []string{strings.TrimPrefix(server.URL, "http://")}},
		[]string{"OPENAI_API_KEY=sk-real-0123456789", "OPENAI_BASE_URL=" + server.URL + "/v1"}, `
		echo "$OPENAI_BASE_URL"
		busybox wget -q -O - --header "Authorization: Bearer $OPENAI_API_KEY" "$OPENAI_BASE_URL/models"
		busybox wget -q -O - `+server.URL+`/tools`)
	require.Equal(t, "http://127.0.0.1:3128/openai/v1\n/v1/models true\n/tools false\n", out)
}

// A program with an OCI runtime cannot make the system calls that no program in a sandbox can make, and
// carries the mark of sandboxes.
func TestContainerCalls(t *testing.T) {
	s, err := sandbox.Open(record.TierContainer, rootPolicy(t, sandboxtest.Root(t), "network: [api.example.com]"))
	require.NoError(t, err)
	defer s.Close()
	own, err := s.Own(os.Args[0], []string{probeArgument, "calls"})
	require.NoError(t, err)
	dir := t.TempDir()
	out, err := run(t, s, sandbox.View{Write: []string{dir}}, dir, own...)
	require.NoError(t, err, out)
	for line := range strings.Lines(out) {
		want := "EPERM"
		if strings.HasPrefix(line, "clone3: ") {
			want = "ENOSYS"
		}
		require.True(t, strings.HasSuffix(line, ": "+want+"\n"), line)
	}
	require.Greater(t, strings.Count(out, "\n"), 20)
	limits, err := run(t, s, sandbox.View{Write: []string{dir}}, dir, "cat", "/proc/self/limits")
	require.NoError(t, err, limits)
	require.Regexp(t, `Max file locks +[4-9]\d{18} +unlimited`, limits)
}

// The record names what the engine does not limit.
func TestContainerLimits(t *testing.T) {
	root := sandboxtest.Root(t)
	s := settings(t, "network: [api.example.com], limits: {memory: 1GiB, processes: 64, disk: 1GiB}")
	s.Image = root
	found, err := sandbox.Of(s)
	require.NoError(t, err)
	want := "1 GiB memory, 64 processes, 1 GiB disk; crun limits the memory of each process, not of all together; "
	if !pids.OfNamespace() {
		want = "1 GiB memory, 1 GiB disk; crun limits the memory of each process, not of all together; crun does not limit processes before Linux 6.14; "
	}
	require.Equal(t, "container, image "+root+", network to api.example.com, "+want+"the disk is limited by file and by copied directory only", found.String())
}
