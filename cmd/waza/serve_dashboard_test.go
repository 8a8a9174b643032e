//go:build unix

package main

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/cmd/waza/exit"
)

// signIn exchanges the code of a link, and returns the status and the cookie for reports.
func signIn(t *testing.T, link string) (status int, cookies []*http.Cookie) {
	t.Helper()
	u, err := url.Parse(link)
	require.NoError(t, err)
	fragment, err := url.ParseQuery(u.Fragment)
	require.NoError(t, err)
	body := strings.NewReader(`{"code":"` + fragment.Get("code") + `"}`)
	resp, err := http.Post(u.Scheme+"://"+u.Host+"/api/auth/exchange", "application/json", body)
	require.NoError(t, err)
	resp.Body.Close()
	return resp.StatusCode, resp.Cookies()
}

// serve --open passes a link to the browser. Without a terminal, no link is printed.
func TestServeOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe, program := filepath.Join(dir, "link"), filepath.Join(dir, "browser")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho \"$@\" >"+pipe+"\n"), 0o700))
	env := environment(t, "BROWSER="+program+" --new-window %s:firefox")
	server, _, jobs := startServer(t, env, "--open")
	given, err := os.ReadFile(pipe)
	require.NoError(t, err)
	link, ok := strings.CutPrefix(strings.TrimSpace(string(given)), "--new-window ")
	require.True(t, ok, "%s", given)
	require.Regexp(t, `^http://`+regexp.QuoteMeta(jobs)+`/#code=[A-Z2-7]{26}$`, link)
	status, cookies := signIn(t, link)
	require.Equal(t, http.StatusOK, status)
	require.Len(t, cookies, 2)
	status, _ = signIn(t, link)
	require.Equal(t, http.StatusUnauthorized, status, "a second time")
	require.NoError(t, server.Process.Signal(syscall.SIGTERM))
	require.Equal(t, exit.Passed, server.exitCode(t))
	require.Empty(t, server.out.String(), "a link is for terminals")
}

func TestServeOpenFails(t *testing.T) {
	t.Parallel()
	none := startWaza(t, environment(t, "BROWSER=/nowhere/browser"), "serve", "--agents", "off", "--jobs", "127.0.0.1:0", "--open")
	none.says(t, "waza: --open: /nowhere/browser could not open the dashboard: ")
	failing := startWaza(t, environment(t, "BROWSER=false"), "serve", "--agents", "off", "--jobs", "127.0.0.1:0", "--open")
	failing.says(t, "waza: --open: false could not open the dashboard: exit status 1")
	off := startWaza(t, environment(t), "serve", "--agents", "127.0.0.1:0", "--jobs", "off", "--open")
	off.says(t, "waza: --open: the jobs door is off, so there is no dashboard")
}

// run --dashboard prints a link to its run if a server is running, and otherwise runs with a
// warning.
func TestRunDashboard(t *testing.T) {
	t.Parallel()
	env := environment(t)
	const suite = "../../testdata/suites/hello"
	alone := startWaza(t, env, "run", suite, "--dashboard")
	alone.says(t, "waza: --dashboard: waza serve is not running; start it in another terminal")
	require.Equal(t, exit.Passed, alone.exitCode(t))

	_, _, jobs := startServer(t, env)
	run := startWaza(t, env, "run", suite, "--dashboard")
	link := strings.TrimSpace(strings.TrimPrefix(run.says(t, "Dashboard: "), "Dashboard: "))
	require.Equal(t, exit.Passed, run.exitCode(t))
	u, err := url.Parse(link)
	require.NoError(t, err)
	fragment, err := url.ParseQuery(u.Fragment)
	require.NoError(t, err)
	require.Equal(t, jobs, u.Host)
	require.Contains(t, run.out.String(), "Run "+fragment.Get("run")+", recorded in")
	status, cookies := signIn(t, link)
	require.Equal(t, http.StatusOK, status)

	report, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+jobs+"/runs/"+fragment.Get("run"), http.NoBody)
	require.NoError(t, err)
	for _, want := range []int{http.StatusUnauthorized, http.StatusOK} {
		resp, err := http.DefaultClient.Do(report)
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, want, resp.StatusCode)
		report.AddCookie(cookies[0])
	}

	off := environment(t)
	startWaza(t, off, "serve", "--agents", "127.0.0.1:0", "--jobs", "off").says(t, "msg=listening door=agents")
	without := startWaza(t, off, "run", suite, "--dashboard")
	without.says(t, "waza: --dashboard: the server has no dashboard")
	require.Equal(t, exit.Passed, without.exitCode(t))
}
