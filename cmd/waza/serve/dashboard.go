package serve

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"waza/cmd/waza/config"
	"waza/runner/proc"
)

// ErrNoDashboard is the error of [Server.Dashboard] when the jobs door is off.
var ErrNoDashboard = errors.New("the jobs door is off, so there is no dashboard")

// Dashboard returns a link that opens the dashboard in a browser. Its fragment contains a code
// for one use within ten minutes, which is not logged.
func (s *Server) Dashboard() (url string, err error) {
	if s.pages == nil {
		return "", ErrNoDashboard
	}
	return s.origin + "/#code=" + s.pages.NewCode(), nil
}

// originOf returns the origin of the jobs door for browsers on this machine. With TLS it uses
// the door's first name, because certificates contain no addresses; otherwise its address.
func originOf(d config.Door, hosts []string, at net.Addr) string {
	tcp, ok := at.(*net.TCPAddr)
	if !ok {
		return ""
	}
	scheme, host := "http", tcp.IP.String()
	if tcp.IP.IsUnspecified() {
		host = "localhost"
	}
	if d.TLS() {
		scheme = "https"
		if len(hosts) > 0 {
			host = hosts[0]
		}
	}
	return scheme + "://" + net.JoinHostPort(host, fmt.Sprint(tcp.Port))
}

// openBrowser opens a page with the first program of $BROWSER, or with the system's default. The
// program can have arguments and %s for the address. openBrowser does not wait, because a
// browser can run for days. It reports a failure of the program to stderr.
func openBrowser(url string, stderr io.Writer) {
	first, _, _ := strings.Cut(os.Getenv("BROWSER"), string(os.PathListSeparator))
	system := map[string]string{"darwin": "open"}[runtime.GOOS]
	args := strings.Fields(cmp.Or(strings.TrimSpace(first), system, "xdg-open"))
	given := false
	for i, a := range args {
		given = given || strings.Contains(a, "%s")
		args[i] = strings.ReplaceAll(a, "%s", url)
	}
	if !given {
		args = append(args, url)
	}
	warn := func(err error) {
		if err != nil {
			fmt.Fprintf(stderr, "waza: --open: %s could not open the dashboard: %v\n", args[0], err)
		}
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // so that Ctrl-C ends only the server
	if err := proc.StartApart(cmd); err != nil {
		warn(err)
		return
	}
	go func() { warn(cmd.Wait()) }() // ends with the browser, or this process
}
