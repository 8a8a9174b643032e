package proxy_test

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"waza/runner/sandbox/internal/proxy"
)

// isolate moves the thread of this goroutine to a network namespace with a loopback interface, and to
// a mount namespace with a name server at 127.0.0.1. Programs that the goroutine starts, and sockets that
// it opens, belong to them. The thread ends with the goroutine.
func isolate(dir string) error {
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS); err != nil {
		return err
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo); err != nil {
		return err
	}
	file := filepath.Join(dir, "resolv.conf")
	return errors.Join(
		os.WriteFile(file, []byte("nameserver 127.0.0.1\n"), 0o600),
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount(file, "/etc/resolv.conf", "", unix.MS_BIND, ""),
	)
}

// Programs in a network namespace reach allowed hosts only, whether they know proxies or not.
func TestProgramsInANetworkNamespace(t *testing.T) {
	t.Parallel()
	const script = "import socket, sys\n" +
		"s = socket.create_connection(('example.com', 80))\n" +
		"s.sendall(b'GET /socket HTTP/1.0\\r\\nHost: example.com\\r\\n\\r\\n')\n" +
		"print(s.makefile().read().splitlines()[-1], end='')\n"
	programs := []struct {
		name    string
		args    []string
		proxied bool
		want    string // empty if the program must fail
	}{
		{"curl with a proxy", []string{"curl", "-sSf", "http://example.com/x"}, true, "GET example.com/x "},
		{"curl without a proxy", []string{"curl", "-sSf", "http://example.com/x"}, false, "GET example.com/x "},
		{"socket", []string{"python3", "-c", script}, false, "GET example.com/socket "},
		{"refused name", []string{"curl", "-sSf", "http://evil.example/"}, false, ""},
		{"refused name with a proxy", []string{"curl", "-sSf", "http://evil2.example/"}, true, ""},
		{"address", []string{"curl", "-sSf", "--connect-timeout", "5", "http://93.184.216.34/"}, false, ""},
		{"refused port", []string{"curl", "-sSf", "http://example.com:22/"}, false, ""},
	}
	for _, program := range programs {
		if _, err := exec.LookPath(program.args[0]); err != nil {
			t.Skipf("skipped: %s is not installed", program.args[0])
		}
	}
	names, internet := example(t)
	p := start(t, proxy.Config{Allow: rules(t, "example.com:80"), Resolver: names, Dial: internet.dial})

	var listeners []net.Listener
	var questions net.PacketConn
	results := make([]string, len(programs))
	dir, ready, proceed := t.TempDir(), make(chan error), make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := isolate(dir)
		for _, address := range []string{"127.0.0.1:3128", "127.0.0.1:53", "0.0.0.0:22", "0.0.0.0:80", "0.0.0.0:443"} {
			if err == nil {
				var l net.Listener
				l, err = net.Listen("tcp4", address)
				listeners = append(listeners, l)
			}
		}
		if err == nil {
			questions, err = net.ListenPacket("udp4", "127.0.0.1:53")
		}
		ready <- err
		if err != nil {
			return
		}
		<-proceed
		for i, program := range programs {
			cmd := exec.Command(program.args[0], program.args[1:]...)
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
			if program.proxied {
				cmd.Env = append(cmd.Env, proxy.Environment(netip.MustParseAddrPort("127.0.0.1:3128"))...)
			}
			if out, err := cmd.Output(); err == nil {
				results[i] = string(out)
			}
		}
	}()
	if err := <-ready; err != nil {
		<-done
		t.Skipf("skipped: this machine allows no network namespace: %v", err)
	}
	p.serve(t, func() error { return p.Serve(listeners[0]) })
	p.serve(t, func() error { return p.ServeDNSStream(listeners[1]) })
	for _, l := range listeners[2:] {
		p.serve(t, func() error { return p.ServeDirect(l) })
	}
	p.serve(t, func() error { return p.ServeDNS(questions) })
	close(proceed)
	<-done
	for i, program := range programs {
		require.Equal(t, program.want, results[i], program.name)
	}
	require.ElementsMatch(t, []proxy.Event{
		{Protocol: proxy.DNS, Host: "evil.example", Reason: proxy.NotAllowed},
		{Protocol: proxy.HTTP, Host: "evil2.example", Port: 80, Reason: proxy.NotAllowed},
		{Protocol: proxy.Direct, Host: "example.com", Port: 22, Reason: proxy.NotAllowed},
	}, p.events.all())
}
