package desktop

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// New finds a desktop if the environment describes one.
func TestProgram(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		system  string
		environ []string
		want    string
	}{
		{"linux", []string{"DISPLAY=:0"}, "notify-send"},
		{"linux", []string{"WAYLAND_DISPLAY=wayland-0"}, "notify-send"},
		{"linux", []string{"DBUS_SESSION_BUS_ADDRESS=unix:path=/run/bus"}, "notify-send"},
		{"linux", []string{"DISPLAY=", "HOME=/"}, ""},
		{"linux", nil, ""},
		{"darwin", nil, "osascript"},
		{"windows", []string{"DISPLAY=:0"}, ""},
	} {
		name, _ := programOf(c.system, c.environ)
		require.Equal(t, c.want, name, c)
	}
	require.Nil(t, New(nil, slog.New(slog.DiscardHandler)))
}

// Texts of clients are arguments, never options, scripts or markup.
func TestArguments(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"--app-name=waza", "--urgency=critical", "--", "--help", "&lt;b&gt;&amp;"}, notifySend("--help", "<b>&", "high"))
	require.Equal(t, []string{"--app-name=waza", "--urgency=normal", "--", "a", "b"}, notifySend("a", "b", "--x"))
	script := osascript(`"; do shell script "x`, "-e", "low")
	require.Equal(t, []string{"--", `"; do shell script "x`, "-e"}, script[len(script)-3:])
	require.NotContains(t, strings.Join(script[:len(script)-3], ""), "shell")
	require.Equal(t, "a b", plain("a\nb\x00", 10))
	require.Equal(t, "aa…", plain("aaaa", 3))
	require.Equal(t, []string{"PATH=/bin", "LC_ALL=C"}, needed([]string{"PATH=/bin", "OPENAI_API_KEY=x", "LC_ALL=C"}))
}

// Notifications are shown one after the other. After a burst, further ones are refused.
func TestShow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program, out := filepath.Join(dir, "notify-send"), filepath.Join(dir, "out")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\nprintf '%s|' \"$@\" >"+out+".$$.new; mv "+out+".$$.new "+out+".$$\n"), 0o700))
	d := start(program, notifySend, []string{"PATH=" + os.Getenv("PATH")}, slog.New(slog.DiscardHandler))
	defer d.Close()
	require.True(t, d.Show("Note\nSaved", "$(touch x) `touch y`", "low"))
	require.Eventually(t, func() bool {
		files, err := filepath.Glob(out + ".*[0-9]")
		if err != nil || len(files) == 0 {
			return false
		}
		data, err := os.ReadFile(files[0])
		require.NoError(t, err)
		require.Equal(t, "--app-name=waza|--urgency=low|--|Note Saved|$(touch x) `touch y`|", string(data))
		return true
	}, patience*4, patience/1000)
	refused := 0
	for range 20 {
		if !d.Show("a", "b", "normal") {
			refused++
		}
	}
	require.GreaterOrEqual(t, refused, 15)
}
