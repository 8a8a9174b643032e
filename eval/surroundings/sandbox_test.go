package surroundings_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/surroundings"
)

func defaults() surroundings.Sandbox {
	var s surroundings.Sandbox
	s.SetDefaults()
	return s
}

func TestOverride(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]func(*surroundings.Sandbox){
		"strict":                 func(s *surroundings.Sandbox) { s.Mode = surroundings.SandboxStrict },
		`"off"`:                  func(s *surroundings.Sandbox) { s.Mode = surroundings.SandboxOff },
		"{network: none}":        func(s *surroundings.Sandbox) { s.Network = surroundings.Network{} },
		`{"network": ["a.org"]}`: func(s *surroundings.Sandbox) { s.Network = surroundings.Network{Hosts: []string{"a.org"}} },
		"{read: [/opt/./x, ~/y, z/], write: [/w/]}": func(s *surroundings.Sandbox) {
			s.Read, s.Write = []string{"/opt/x", "~/y", "z"}, []string{"/w"}
		},
		"{limits: {memory: 2GiB, processes: none, disk: none, files: 64}}": func(s *surroundings.Sandbox) {
			s.Limits = surroundings.SandboxLimits{Memory: 2 << 30, Files: 64}
		},
		`{"mode":"container","keys":"proxy","home":"shared","image":"alpine"}`: func(s *surroundings.Sandbox) {
			s.Mode, s.Keys, s.Home = surroundings.SandboxContainer, surroundings.KeysProxy, surroundings.HomeShared
			s.Image = "alpine"
		},
	} {
		got, wanted := defaults(), defaults()
		require.NoError(t, got.Override(change), change)
		want(&wanted)
		require.Equal(t, wanted, got, change)

		data, err := json.Marshal(got)
		require.NoError(t, err)
		var back surroundings.Sandbox
		require.NoError(t, json.Unmarshal(data, &back))
		require.Equal(t, got, back, "%s", data)
		require.NoError(t, got.Override(string(data)), "JSON is a change, too")
		require.Equal(t, wanted, got, "%s", data)
	}
}

// An image replaces a Dockerfile from before, and the reverse.
func TestOverrideTheImage(t *testing.T) {
	t.Parallel()
	s := defaults()
	require.NoError(t, s.Override("{image: alpine}"))
	require.NoError(t, s.Override("{dockerfile: image/Dockerfile}"))
	require.Equal(t, surroundings.SandboxImage{Dockerfile: "image/Dockerfile"}, s.SandboxImage)
	require.NoError(t, s.Override("{image: debian, network: none}"))
	require.Equal(t, surroundings.SandboxImage{Image: "debian"}, s.SandboxImage)
	require.Equal(t, "alpine", s.Of(surroundings.SandboxImage{Image: "alpine"}).Image)
	require.Equal(t, "debian", s.Of(surroundings.SandboxImage{}).Image)
}

func TestOverrideRefuses(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]string{
		"":                              "got nothing",
		"strct":                         `sandbox must be one of off, auto, strict, container, or a map, got "strct"; did you mean "strict"?`,
		"[strict]":                      "sandbox must be off, auto, strict, container or a map, got a list",
		"{netwrk: none}":                `unknown key "netwrk" in sandbox; did you mean "network"?`,
		"{colour: red}":                 `unknown key "colour" in sandbox`,
		"{network: []}":                 "none means no network",
		"{network: {a: b}}":             "must be open, none or a list of hosts, got a map",
		"{limits: {disk: 1.5.2GB}}":     "sandbox.limits.disk must be a size such as 2GiB or 512MB, or none",
		"{limits: {disk: 99999999TiB}}": "which is too large",
		"{limits: {processes: 1.5}}":    "sandbox.limits.processes must be a whole number, or none, got 1.5",
		"{":                             "did not find",
		strings.Repeat(" ", 70_000):     "more than 65536 bytes, got 70000",
	} {
		s := defaults()
		require.ErrorContains(t, s.Override(change), want)
		require.Equal(t, defaults(), s, want)
	}
}

func TestBytes(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]surroundings.Bytes{
		"none": 0, "1048576": 1 << 20, "2GiB": 2 << 30, "2 gib": 2 << 30, "512MB": 512e6, "1.5GiB": 3 << 29, "0.5TB": 5e11,
		"4096KiB": 4 << 20, "10000kB": 1e7, "2097152B": 2 << 20,
	} {
		got, err := surroundings.ParseBytes(given)
		require.NoError(t, err, given)
		require.Equal(t, want, got, given)
	}
	for given, want := range map[surroundings.Bytes]string{
		0: "none", 2 << 30: "2 GiB", 512e6: "512 MB", 3 << 29: "1536 MiB", 1<<20 + 1: "1048577 bytes", 1e12: "1 TB",
	} {
		require.Equal(t, want, given.String())
	}
	for _, given := range []string{"", "GiB", "-1GiB", "1e9", "0", "2", "1023kB", "0x10MiB", "2GiBs", "NaN", "Inf", ".", "9223372036854775808"} {
		_, err := surroundings.ParseBytes(given)
		require.Error(t, err, given)
	}
}

// A parsed limit is at least 1 MiB, and its text means the same limit.
func FuzzParseBytes(f *testing.F) {
	for _, given := range []string{"2GiB", "1.5 tb", "none", "9223372036854775807", "8388608TiB", "1048576.9"} {
		f.Add(given)
	}
	f.Fuzz(func(t *testing.T, given string) {
		b, err := surroundings.ParseBytes(given)
		if err != nil {
			return
		}
		if b != 0 && b < 1<<20 {
			t.Fatalf("%q is %d bytes", given, b)
		}
		text := strings.TrimSuffix(b.String(), "ytes")
		if again, err := surroundings.ParseBytes(text); err != nil || again != b {
			t.Fatalf("%q is %d, but %q is %d: %v", given, b, text, again, err)
		}
	})
}

// A change that is accepted survives its encoding, and has no faulty paths or hosts.
func FuzzOverride(f *testing.F) {
	for _, change := range []string{
		"strict", "{network: [a, 'b:443'], read: [~/x]}", "{limits: {memory: 2GiB}}", "{dockerfile: a, image: b}", "&a {read: [*a]}",
	} {
		f.Add(change)
	}
	f.Fuzz(func(t *testing.T, change string) {
		s := defaults()
		if s.Override(change) != nil {
			return
		}
		for _, path := range append(s.Read, s.Write...) {
			if path == "" || path == "/" || strings.ContainsRune(path, 0) {
				t.Fatalf("%q has the path %q", change, path)
			}
		}
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back surroundings.Sandbox
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatalf("%s: %s", data, err)
		}
		again, err := json.Marshal(back)
		if err != nil || string(again) != string(data) {
			t.Fatalf("%s became %s: %v", data, again, err)
		}
	})
}

func TestAbsolute(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{"/a/../b": "/b", "~": "/users/ada", "~/x": "/users/ada/x", "x": "/suite/x", "../x": "/x"} {
		require.Equal(t, want, surroundings.Absolute(entry, "/suite", "/users/ada"), entry)
		require.Equal(t, entry[0] != 'x' && entry[0] != '.', surroundings.IsFixed(entry), entry)
	}
}
