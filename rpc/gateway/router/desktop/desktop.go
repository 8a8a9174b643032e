// Package desktop shows notifications to the user of this machine, with the desktop's program:
// notify-send on Linux, osascript on macOS. Call [New], which returns nil without a desktop, and
// then [Desktop.Show].
package desktop

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/time/rate"

	"waza/eval/text"
	"waza/runner/proc"
)

// Limits for notifications: people read them at a glance, and clients can send many.
const (
	maxTitle = 100 // characters
	maxBody  = 500 // characters
	waiting  = 8   // waiting notifications
	perFew   = 5   // notifications in a burst
	every    = 2 * time.Second
	patience = 5 * time.Second // time limit for the program
)

// Desktop shows notifications one after the other. Its goroutine ends with Close. It is safe for
// concurrent use.
type Desktop struct {
	program  string
	args     func(title, body, priority string) []string
	environ  []string
	log      *slog.Logger
	limit    *rate.Limiter
	queue    chan notification
	cancel   context.CancelFunc
	finished chan struct{}
}

type notification struct{ title, body, priority string }

// New finds the desktop's program. environ has the form of os.Environ. New returns nil when the
// machine has no desktop or no such program.
func New(environ []string, log *slog.Logger) *Desktop {
	name, args := programOf(runtime.GOOS, environ)
	if name == "" {
		return nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return nil
	}
	return start(path, args, environ, log)
}

func start(path string, args func(title, body, priority string) []string, environ []string, log *slog.Logger) *Desktop {
	ctx, cancel := context.WithCancel(context.Background())
	d := &Desktop{
		program: path, args: args, environ: needed(environ), log: log,
		limit: rate.NewLimiter(rate.Every(every), perFew), queue: make(chan notification, waiting), cancel: cancel, finished: make(chan struct{}),
	}
	go d.work(ctx)
	return d
}

// programOf returns the program of a desktop and a function for its arguments; "" without one.
func programOf(system string, environ []string) (name string, args func(title, body, priority string) []string) {
	set := func(name string) bool {
		return slices.ContainsFunc(environ, func(e string) bool { return strings.HasPrefix(e, name+"=") && len(e) > len(name)+1 })
	}
	switch {
	case system == "darwin":
		return "osascript", osascript
	case system == "linux" && (set("DBUS_SESSION_BUS_ADDRESS") || set("DISPLAY") || set("WAYLAND_DISPLAY")):
		return "notify-send", notifySend
	}
	return "", nil
}

// notifySend returns the arguments for notify-send. Desktops interpret markup in the body.
func notifySend(title, body, priority string) []string {
	urgency := map[string]string{"low": "low", "high": "critical"}[priority]
	if urgency == "" {
		urgency = "normal"
	}
	body = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(body)
	return []string{"--app-name=waza", "--urgency=" + urgency, "--", title, body}
}

// osascript returns the arguments for osascript. Title and body are arguments of the script, not
// parts of it.
func osascript(title, body, _ string) []string {
	return []string{
		"-e", "on run argv", "-e", "display notification (item 2 of argv) with title (item 1 of argv)", "-e", "end run",
		"--", title, body,
	}
}

// needed removes variables that the program does not need, such as keys.
func needed(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		switch name {
		case "PATH", "HOME", "USER", "LANG", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "TMPDIR":
			return false
		}
		return !strings.HasPrefix(name, "LC_")
	})
}

// Show shows a notification soon. It returns false when there are too many. Line breaks and
// other control characters become spaces, and long texts are cut.
func (d *Desktop) Show(title, body, priority string) bool {
	if !d.limit.Allow() {
		return false
	}
	select {
	case d.queue <- notification{plain(title, maxTitle), plain(body, maxBody), priority}:
		return true
	default:
		return false
	}
}

func plain(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return text.ClipRunes(strings.TrimSpace(s), most)
}

// work shows one notification after the other.
func (d *Desktop) work(ctx context.Context) {
	defer close(d.finished)
	for {
		select {
		case n := <-d.queue:
			d.run(ctx, n)
		case <-ctx.Done():
			return
		}
	}
}

func (d *Desktop) run(ctx context.Context, n notification) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, d.program, d.args(n.title, n.body, n.priority)...)
	cmd.Env, cmd.WaitDelay, cmd.Dir = d.environ, time.Second, os.TempDir()
	err := proc.StartApart(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		d.log.Warn("notification could not be shown on the desktop", "program", d.program, "error", err)
	}
}

// Close ends the goroutine and its running program. Waiting notifications are lost.
func (d *Desktop) Close() {
	d.cancel()
	<-d.finished
}
