package serving

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
)

// ErrNoDashboard is the error of [Server.Dashboard] when the jobs door is off.
var ErrNoDashboard = errors.New("the jobs door is off, so there is no dashboard")

// Dashboard returns a link that opens the dashboard in a browser. Its fragment has a code,
// which is good for one use within ten minutes and is not logged.
func (s *Server) Dashboard() (url string, err error) {
	if s.pages == nil {
		return "", ErrNoDashboard
	}
	return s.origin + "/#code=" + s.pages.NewCode(), nil
}

// originOf is where browsers of this machine reach the jobs door: by the first of its
// names with TLS, because a certificate names no addresses, and else by its address.
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

// openBrowser opens a page with the first program of $BROWSER, which may have arguments
// and %s for the address, or with what the system has for it. It does not wait for the
// program: a browser may run for days. One that ends with an error is reported to stderr.
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
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C ends the server only
	if err := cmd.Start(); err != nil {
		warn(err)
		return
	}
	go func() { warn(cmd.Wait()) }() // ends with the browser, or this process
}
