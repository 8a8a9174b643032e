// Package chromium lets a program use pages of Chromium with the ten tools of browser
// assistants. Call [Start], and then [Browser.Do] for each tool.
package chromium

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"

	"waza/runner/proc"
)

// Options configure a browser.
type Options struct {
	// Path is the path of the program, see [Find].
	Path string
	// Dir is the directory for the profile, which is removed when the browser ends. Profiles of
	// killed processes are removed, too.
	Dir string
	// Headful shows a window.
	Headful bool
	// AllowHosts are the hosts that pages can load resources from, such as example.org or
	// *.example.org; none means all hosts.
	AllowHosts []string
	// Log gets structured records; nil discards them.
	Log *slog.Logger
}

// programs are the usual names of Chromium.
var programs = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// Find returns the path of a Chromium: given, if it is not empty, or else $CHROME, or else the
// first installed program with one of the usual names.
func Find(given string) (string, error) {
	for _, name := range []string{given, os.Getenv("CHROME")} {
		if name == "" {
			continue
		}
		path, err := proc.LookPath(name, os.Environ())
		if err == nil {
			err = proc.Executable(path)
		}
		return path, err
	}
	for _, name := range programs {
		if path, err := proc.LookPath(name, os.Environ()); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("Chromium is not installed: none of %s is on PATH", strings.Join(programs, ", "))
}

const (
	// startTime is the time limit for starting Chromium, which is slow on a busy machine.
	startTime = 60 * time.Second
	// maxOutput is the maximum size of Chromium's output that is kept, in bytes.
	maxOutput = 16 << 10
	// profilePrefix is the prefix of profile names: profile-PID-RANDOM.
	profilePrefix = "profile-"
	// idleTime is how long a session is kept after its last tool. The end of a session is not
	// reported, and its pages keep working until then.
	idleTime = 10 * time.Minute
)

// Browser is a Chromium with the pages of one session. When it crashes, the next tool restarts
// it. It is safe for concurrent use; it executes tools one after the other.
type Browser struct {
	o Options

	busy sync.Mutex  // held while a tool runs; guards the fields below
	live *instance   // nil when it is not running
	at   *session    // nil before the first tool, and when idle
	idle *time.Timer // closes the session; nil without a session
}

// Start starts Chromium. The caller must call [Browser.Close].
func Start(ctx context.Context, o Options) (*Browser, error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if withoutSandbox() {
		o.Log.Warn("Chromium runs without its sandbox, which does not work as root")
	}
	removeProfiles(o.Dir)
	b := &Browser{o: o}
	var err error
	if b.live, err = launch(ctx, o); err != nil {
		return nil, err
	}
	return b, nil
}

// Close ends Chromium and all its processes, and removes its profile.
func (b *Browser) Close() {
	b.busy.Lock()
	defer b.busy.Unlock()
	b.leaveLocked()
	if b.live != nil {
		b.live.close()
		b.live = nil
	}
}

// leaveLocked closes the session if one exists.
func (b *Browser) leaveLocked() {
	if b.idle != nil {
		b.idle.Stop()
		b.idle = nil
	}
	if b.at != nil {
		b.at.close()
		b.at = nil
	}
}

// leaveWhenIdleLocked schedules the end of the session after a while without tools.
func (b *Browser) leaveWhenIdleLocked() {
	if b.idle != nil {
		b.idle.Reset(idleTime)
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(idleTime, func() {
		b.busy.Lock()
		defer b.busy.Unlock()
		if b.idle == timer {
			b.leaveLocked()
		}
	})
	b.idle = timer
}

// Version returns the version of the running Chromium, such as Chrome/140.0.7339.80; empty when
// it is not running.
func (b *Browser) Version() string {
	b.busy.Lock()
	defer b.busy.Unlock()
	if b.live == nil {
		return ""
	}
	return b.live.version
}

// Do executes a tool in the page of a session and returns its result, a JSON object. A different
// session than before starts with a new page and without cookies; those of the previous session
// are lost. The error is plain English for a model. When ctx has ended, it is the cause of ctx.
func (b *Browser) Do(ctx context.Context, sessionID, tool string, params json.RawMessage) (json.RawMessage, error) {
	b.busy.Lock()
	defer b.busy.Unlock()
	do := tools[tool]
	if do == nil {
		return nil, fmt.Errorf("unknown tool %q", tool)
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	s, err := b.session(ctx, sessionID)
	if err != nil {
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	defer b.leaveWhenIdleLocked()
	result, err := do(ctx, s, params)
	if err == nil {
		return s.finish(result)
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case b.live.gone():
		return nil, errors.New("Chromium has crashed; its pages are lost")
	}
	return nil, err
}

// session returns the session with an id, and opens it unless it is the current one.
func (b *Browser) session(ctx context.Context, id string) (*session, error) {
	if b.live != nil && b.live.gone() {
		b.o.Log.Warn("Chromium ended unexpectedly; restarting")
		b.leaveLocked()
		b.live.close()
		b.live = nil
	}
	if b.live == nil {
		live, err := launch(ctx, b.o)
		if err != nil {
			return nil, err
		}
		b.live = live
	}
	if b.at != nil && b.at.id == id {
		return b.at, nil
	}
	b.leaveLocked()
	s, err := open(ctx, b.live, id)
	if err != nil {
		return nil, fmt.Errorf("Chromium could not open a page: %w", err)
	}
	b.at = s
	return s, nil
}

// instance is a running Chromium. It has goroutines for its process and the connection, which
// close ends.
type instance struct {
	cancel  context.CancelFunc
	process *proc.Process
	scope   *proc.Scope
	browser *chromedp.Browser
	pages   context.Context // chromedp creates pages from this context
	profile string
	version string
	hosts   []string // allowed hosts; none means all
}

// launch starts Chromium.
func launch(ctx context.Context, o Options) (*instance, error) {
	profile, err := os.MkdirTemp(o.Dir, profilePrefix+strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return nil, fmt.Errorf("profile of Chromium: %w", err)
	}
	in := &instance{profile: profile, hosts: o.AllowHosts}
	if err := in.start(ctx, o); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

// start starts the program and connects to it by two pipes, which no other process can use.
func (in *instance) start(ctx context.Context, o Options) error {
	var running context.Context
	running, in.cancel = context.WithCancel(context.WithoutCancel(ctx))
	running, in.scope = proc.WithScope(running)
	pipes, err := newPipes()
	if err != nil {
		return err
	}
	output := &proc.Limited{Max: maxOutput}
	in.process, err = proc.Start(running, proc.Command{
		Args: append([]string{o.Path}, arguments(o, in.profile)...), Stdout: output, Stderr: output, ExtraFiles: pipes.theirs,
	})
	closeAll(pipes.theirs)
	if err != nil {
		closeAll(pipes.ours)
		return err
	}
	debug := func(format string, args ...any) { o.Log.Debug("chromedp: " + fmt.Sprintf(format, args...)) }
	in.browser, err = chromedp.NewBrowserTransport(running, chromedp.NewPipeConn(&messages{File: pipes.ours[0]}, pipes.ours[1]),
		chromedp.WithBrowserLogf(debug), chromedp.WithBrowserErrorf(debug))
	if err != nil {
		closeAll(pipes.ours)
		return err
	}
	starting, stop := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("Chromium did not start within %v", startTime))
	defer stop()
	version, err := cdp.Call(starting, in.browser, browser.GetVersion, cdp.Empty{})
	if err != nil {
		select {
		case <-in.process.Done():
			return failure(in.process.Wait(), output.String())
		case <-starting.Done():
			return context.Cause(starting)
		}
	}
	in.version = version.Product
	allocator, _ := chromedp.NewAllocatorContext(running, (*shared)(in))
	in.pages, _ = chromedp.NewContext(allocator)
	return chromedp.ListenBrowser(in.pages, func(any) {}) // adds the browser to the context
}

// failure returns why Chromium did not start.
func failure(ended error, output string) error {
	lines := strings.FieldsFunc(output, func(r rune) bool { return r == '\n' })
	what := strings.Join(lines[max(0, len(lines)-3):], "; ")
	if i := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "sandbox") }); i >= 0 {
		what = lines[i]
	}
	how := "it ended"
	if ended != nil {
		how = ended.Error()
	}
	return fmt.Errorf("Chromium did not start (%s): %s", how, cmp.Or(what, "no output"))
}

// gone reports whether the browser has ended.
func (in *instance) gone() bool {
	select {
	case <-in.browser.LostConnection:
		return true
	case <-in.process.Done():
		return true
	default:
		return false
	}
}

// close ends the browser and all its processes. It can be called more than once.
func (in *instance) close() {
	in.cancel()
	if in.process != nil {
		_ = in.process.Wait() // it was killed
	}
	if in.browser != nil {
		<-in.browser.LostConnection
	}
	in.scope.End()
	os.RemoveAll(in.profile)
}

// shared makes all pages use the same browser.
type shared instance

func (s *shared) Allocate(context.Context, ...chromedp.BrowserOption) (*chromedp.Browser, error) {
	return s.browser, nil
}

func (*shared) Wait() {}

// Attaches returns true, so that chromedp does not end the browser with a page.
func (*shared) Attaches() bool { return true }

// pipes connect Chromium and this process.
type pipes struct {
	theirs []*os.File // Chromium reads and writes them as file descriptors 3 and 4
	ours   []*os.File // this process reads and writes them
}

func newPipes() (*pipes, error) {
	commandsR, commandsW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	answersR, answersW, err := os.Pipe()
	if err != nil {
		commandsR.Close()
		commandsW.Close()
		return nil, err
	}
	return &pipes{theirs: []*os.File{commandsR, answersW}, ours: []*os.File{answersR, commandsW}}, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// maxMessage is the maximum size of a message from Chromium, in bytes. Pages control some
// messages, such as console logs.
const maxMessage = 64 << 20

// messages reads messages that each end with a zero byte. A message that is too large ends the
// connection.
type messages struct {
	*os.File
	length int // of the current message
}

func (m *messages) Read(p []byte) (int, error) {
	n, err := m.File.Read(p)
	if end := bytes.LastIndexByte(p[:n], 0); end >= 0 {
		m.length = n - end - 1
	} else {
		m.length += n
	}
	if m.length > maxMessage {
		return 0, errors.New("message from Chromium is too large")
	}
	return n, err
}

// arguments returns the arguments for Chromium.
func arguments(o Options, profile string) []string {
	args := []string{
		"--remote-debugging-pipe", "--user-data-dir=" + profile, "--window-size=1280,900",
		"--no-first-run", "--no-default-browser-check", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--disable-extensions", "--disable-default-apps", "--disable-breakpad", "--disable-crash-reporter",
		"--disable-dev-shm-usage", "--disable-client-side-phishing-detection", "--disable-domain-reliability",
		"--disable-features=Translate,OptimizationHints,MediaRouter,AutofillServerCommunication,HttpsUpgrades",
		"--disable-renderer-backgrounding", "--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows",
		"--disable-popup-blocking", "--disable-prompt-on-repost", "--metrics-recording-only", "--no-pings",
		"--password-store=basic", "--use-mock-keychain", "--mute-audio", "--force-color-profile=srgb",
	}
	if !o.Headful {
		args = append(args, "--headless=new", "--hide-scrollbars", "--disable-gpu")
	}
	if withoutSandbox() {
		args = append(args, "--no-sandbox") // otherwise it refuses to start
	}
	if len(o.AllowHosts) > 0 {
		rules := []string{"MAP * ~NOTFOUND"}
		for _, host := range o.AllowHosts {
			rules = append(rules, "EXCLUDE "+host)
		}
		// The rules apply to names that Chromium resolves. A proxy would resolve names itself.
		args = append(args, "--host-resolver-rules="+strings.Join(rules, ", "), "--no-proxy-server")
	}
	return append(args, "about:blank")
}

// withoutSandbox reports whether Chromium must run without its sandbox.
func withoutSandbox() bool { return os.Getuid() == 0 }

// removeProfiles removes the profiles of killed processes.
func removeProfiles(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, profilePrefix+"*")) // the pattern is valid
	for _, path := range left {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), profilePrefix), "-")
		if n, err := strconv.Atoi(pid); err == nil && !proc.Exists(n) {
			os.RemoveAll(path)
		}
	}
}
