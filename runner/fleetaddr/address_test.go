package fleetaddr_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/fleetaddr"
)

func TestParse(t *testing.T) {
	t.Parallel()
	plain := fleetaddr.Address{Team: "waza", Lost: 15 * time.Second, Wait: 10 * time.Minute, Replicas: 1, Slots: -1}
	for given, change := range map[string]func(*fleetaddr.Address){
		"embedded":                  func(a *fleetaddr.Address) { a.Embedded = true },
		"embedded?":                 func(a *fleetaddr.Address) { a.Embedded = true },
		"embedded?team=x_1&slots=0": func(a *fleetaddr.Address) { a.Embedded, a.Team, a.Slots = true, "x_1", 0 },
		"nats://one":                func(a *fleetaddr.Address) { a.Servers = []string{"nats://one:4222"} },
		"nats://one:1":              func(a *fleetaddr.Address) { a.Servers = []string{"nats://one:1"} },
		"wss://one/":                func(a *fleetaddr.Address) { a.Servers = []string{"wss://one:443"} },
		"ws://one":                  func(a *fleetaddr.Address) { a.Servers = []string{"ws://one:80"} },
		"tls://[::1],[fe80::1]:7":   func(a *fleetaddr.Address) { a.Servers = []string{"tls://[::1]:4222", "tls://[fe80::1]:7"} },
		"nats://u:p%40%3a@a,nats://b:5": func(a *fleetaddr.Address) {
			a.Servers, a.User, a.Password = []string{"nats://a:4222", "nats://b:5"}, "u", "p@:"
		},
		"nats://u:p@a,nats://u:p@b": func(a *fleetaddr.Address) {
			a.Servers, a.User, a.Password = []string{"nats://a:4222", "nats://b:4222"}, "u", "p"
		},
		"nats://secret@a": func(a *fleetaddr.Address) { a.Servers, a.Token = []string{"nats://a:4222"}, "secret" },
		"nats://a?team=search&nkey=n&ca=c&cert=d&key=k&sign=s&labels=linux,gpu,gpu&lost=1s&wait=1h&replicas=3": func(a *fleetaddr.Address) {
			*a = fleetaddr.Address{
				Servers: []string{"nats://a:4222"}, Team: "search", NKey: "n", CA: "c", Cert: "d", Key: "k", Sign: "s",
				Labels: []string{"gpu", "linux"}, Lost: time.Second, Wait: time.Hour, Replicas: 3, Slots: -1,
			}
		},
		"nats://a?creds=/a+b%26c": func(a *fleetaddr.Address) { a.Servers, a.Creds = []string{"nats://a:4222"}, "/a+b&c" },
	} {
		want := plain
		change(&want)
		got, err := fleetaddr.Parse(" " + given + " ")
		require.NoError(t, err, given)
		require.Equal(t, want, got, given)
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"":                                     `is empty; expected nats://host:4222 or "embedded"`,
		"nats://a" + strings.Repeat("x", 5000): "has 5008 bytes; the limit is 4096",
		"nats://a\nb":                          "has a control character, such as a newline; write it as %XX if it belongs there",
		"Embeded":                              `"Embeded" is unknown; did you mean "embedded"?`,
		"host:4222":                            `"host:4222" has no scheme; expected nats://, tls://, ws:// or wss:// and a host, or "embedded"`,
		"u:hush@host:4222":                     `"host:4222" has no scheme; expected nats://, tls://, ws:// or wss:// and a host, or "embedded"`,
		"http://a":                             `server 1: scheme "http" is unknown; expected nats, tls, ws or wss`,
		"nats://a,wss://b":                     "server 2: nats:// and wss:// cannot be mixed",
		"nats://":                              `server 1: host "" is not valid; expected a name or an address`,
		"nats://a b":                           `server 1: host "a b" is not valid; expected a name or an address`,
		"nats://u:hush@a/b":                    `server 1: "a/b" must be a host and a port only`,
		"nats://a:0":                           `server 1: port "0" must be a number from 1 to 65535`,
		"nats://a:":                            `server 1: port "" must be a number from 1 to 65535`,
		"nats://a:99999":                       `server 1: port "99999" must be a number from 1 to 65535`,
		"nats://::1":                           `server 1: "::1" has several colons; write an IPv6 address in brackets`,
		"nats://[a]":                           `server 1: "[a]" has no IPv6 address in its brackets`,
		"nats://[::1]x":                        `server 1: "[::1]x" must be a host and a port only`,
		"nats://@a":                            "server 1: has an @ without a user before it",
		"nats://u:@a":                          `server 1: user "u" has an empty password`,
		"nats://u:hush%2@a":                    "server 1: password: has a % without two hexadecimal digits; write %25 for a %",
		"nats://u:hush%zz@a":                   "server 1: password: has a % without two hexadecimal digits; write %25 for a %",
		"nats://u:hush@a,nats://u:hash@b": "server 2: has a different user or password than an earlier server; " +
			"all servers must have the same",
		"nats://u:hu,hush@a":                  "server 1 has no valid host and port; in passwords, write , as %2C, ? as %3F and @ as %40",
		"nats://u:hush?s@a":                   "server 1 has no valid host and port; in passwords, write , as %2C, ? as %3F and @ as %40",
		"nats://u:1?hush@a":                   "has an @ after the question mark; in passwords, write ? as %3F",
		"nats://a" + strings.Repeat(",b", 16): "has 17 servers; the limit is 16",
		"nats://a?tem=x":                      `parameter "tem" is unknown; did you mean "team"?`,
		"nats://a?zzzzzz=x": `parameter "zzzzzz" is unknown; expected one of team, creds, nkey, ` +
			`ca, cert, key, sign, labels, lost, wait, replicas, slots`,
		"nats://a?team=A":         `parameter "team": team "A" must have 1 to 32 of a-z, 0-9, - and _`,
		"nats://a?team=a.b":       `parameter "team": team "a.b" must have 1 to 32 of a-z, 0-9, - and _`,
		"nats://a?team=*":         `parameter "team": team "*" must have 1 to 32 of a-z, 0-9, - and _`,
		"nats://a?team":           `parameter "team" has no value`,
		"nats://a?team=a&team=a":  `parameter "team" is given twice`,
		"nats://a?slots=1":        `parameter "slots" is allowed only for an embedded server`,
		"embedded?creds=x":        `parameter "creds" is not allowed for an embedded server`,
		"embedded?slots=1025":     `parameter "slots": "1025" must be a number from 0 to 1024`,
		"nats://a?labels=a,,b":    `parameter "labels": label "" must have 1 to 64 of a-z, A-Z, 0-9, ., - and _`,
		"nats://a?lost=5":         `parameter "lost": "5" must be a time from 1s to 1h0m0s, such as lost=30s`,
		"nats://a?lost=2h":        `parameter "lost": "2h" must be a time from 1s to 1h0m0s, such as lost=30s`,
		"nats://a?replicas=2":     `parameter "replicas": "2" must be 1, 3 or 5`,
		"nats://a?creds=%00":      `parameter "creds": has %00, a zero byte`,
		"nats://u:hush@a?creds=x": "has a user or token before the host and creds, but only one login is allowed",
		"nats://a?nkey=x&creds=x": "has creds and nkey, but only one login is allowed",
		"nats://a?cert=x":         "has cert without key; both are required",
		"nats://a?key=x":          "has key without cert; both are required",
		"ws://a?ca=x":             "has ca or cert, but ws:// is not encrypted; use wss://",
	} {
		_, err := fleetaddr.Parse(given)
		require.EqualError(t, err, "fleet address: "+want, given)
		require.NotContains(t, err.Error(), "hush")
	}
}

func TestStringHidesSecrets(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"nats://u:hush@a,b?team=waza&lost=15s":  "nats://u:xxxxx@a:4222,nats://u:xxxxx@b:4222",
		"nats://hush@a?replicas=3&labels=b,a":   "nats://xxxxx@a:4222?labels=a,b&replicas=3",
		"embedded?slots=2&sign=/a%20b":          "embedded?sign=/a%20b&slots=2",
		"embedded?wait=90s&team=t&lost=2s":      "embedded?team=t&lost=2s&wait=1m30s",
		"wss://a:1?creds=~/c&ca=%2e%2e/x%3f%23": "wss://a:1?creds=~/c&ca=../x%3F%23",
	} {
		a, err := fleetaddr.Parse(given)
		require.NoError(t, err)
		require.Equal(t, want, a.String())
	}
}

// The text form of any valid address parses to the same address, except for its secrets, which
// it does not contain.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"embedded?slots=1&labels=a,b", "nats://u:p@a:1,b?team=t&creds=%20", "wss://tok@[::1]/?cert=a&key=b&lost=1.5s&wait=10m",
		"nats://a?sign=%25%26%3d&replicas=5", "nats://a,nats://b,,", "tls://%zz@x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, given string) {
		a, err := fleetaddr.Parse(given)
		if err != nil {
			require.Less(t, len(err.Error()), 600)
			return
		}
		shown := a.String()
		if a.Password != "" {
			a.Password = "xxxxx"
		}
		if a.Token != "" {
			a.Token = "xxxxx"
		}
		again, err := fleetaddr.Parse(shown)
		if len(shown) > 4096 {
			return // the text form can exceed the maximum length of an address
		}
		require.NoError(t, err, shown)
		require.Equal(t, a, again)
	})
}

func TestIn(t *testing.T) {
	t.Parallel()
	home, err := os.UserHomeDir()
	require.NoError(t, err)
	dir := t.TempDir()
	a, err := fleetaddr.Parse("nats://a?creds=~/c&ca=certs/ca.pem&sign=" + filepath.ToSlash(filepath.Join(dir, "s")))
	require.NoError(t, err)
	before := a
	in := a.In(dir)
	require.Equal(t, filepath.Join(home, "c"), in.Creds)
	require.Equal(t, filepath.Join(dir, "certs", "ca.pem"), in.CA)
	require.Equal(t, filepath.Join(dir, "s"), in.Sign)
	require.Empty(t, in.Key)
	require.Equal(t, before, a)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, mode os.FileMode, size int) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), make([]byte, size), mode))
		require.NoError(t, os.Chmod(filepath.Join(dir, name), mode))
	}
	write("secret", 0o600, 10)
	write("mounted", 0o440, 10)
	write("open", 0o644, 10)
	write("large", 0o600, 1<<20+1)
	for query, want := range map[string]string{
		"creds=secret&ca=open": "",
		"nkey=mounted":         "",
		"creds=none":           `parameter "creds": file ` + filepath.Join(dir, "none") + " does not exist",
		"ca=.":                 `parameter "ca": ` + dir + " is not a regular file",
		"ca=large":             `parameter "ca": file ` + filepath.Join(dir, "large") + " has 1048577 bytes; the limit is 1048576",
		"sign=open": `parameter "sign": file ` + filepath.Join(dir, "open") +
			" contains a secret, but its mode 0644 lets others read or change it; run chmod 600 on it",
		"cert=open&key=open": `parameter "key": file ` + filepath.Join(dir, "open") +
			" contains a secret, but its mode 0644 lets others read or change it; run chmod 600 on it",
	} {
		a, err := fleetaddr.Parse("nats://a?" + query)
		require.NoError(t, err)
		err = a.In(dir).Check()
		if want == "" || runtime.GOOS == "windows" && strings.Contains(want, "mode") {
			require.NoError(t, err, query)
		} else {
			require.EqualError(t, err, "fleet address: "+want)
		}
	}
}

func TestRemoteAndEncrypted(t *testing.T) {
	t.Parallel()
	for given, want := range map[string][2]bool{
		"embedded":                         {false, true},
		"nats://localhost,127.0.0.2,[::1]": {false, false},
		"nats://localhost,example":         {true, false},
		"tls://10.0.0.1":                   {true, true},
		"nats://10.0.0.1?ca=x":             {true, true},
		"wss://a,ws://b":                   {true, false},
	} {
		a, err := fleetaddr.Parse(given)
		require.NoError(t, err)
		require.Equal(t, want, [2]bool{a.Remote(), a.Encrypted()}, given)
	}
}
