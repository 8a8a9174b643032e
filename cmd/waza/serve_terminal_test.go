//go:build linux

package main

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// On a terminal, a server prints a link, which admits one browser.
func TestServeOnATerminal(t *testing.T) {
	t.Parallel()
	term := onTerminal(t, environment(t), 200, 24, "serve", "--agents", "off", "--jobs", "127.0.0.1:0")
	link := regexp.MustCompile(`Dashboard: (http://127\.0\.0\.1:\d+/#code=[A-Z2-7]{26})\r\n`)
	seen := term.shows(t, "\r\nDashboard: ")
	for !link.MatchString(seen) {
		seen = term.shows(t, "#code=")
	}
	at := link.FindStringSubmatch(seen)[1]
	status, _ := signIn(t, at)
	require.Equal(t, http.StatusOK, status)
	term.types(t, "\x03")
	_, code := term.end(t)
	require.Zero(t, code)
}
