package proxy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/sandbox/internal/proxy"
)

func TestRulesAllow(t *testing.T) {
	t.Parallel()
	rules, err := proxy.ParseRules([]string{
		"api.openai.com", "*.GitHubUserContent.com:443", "bücher.de", "10.1.0.0/16:22", "203.0.113.7", "[2001:db8::1]:443", "2001:db8:1::/48",
		"localhost:11434", "under_score.example", "*.localhost:80",
	})
	require.NoError(t, err)
	for destination, want := range map[string]bool{
		"api.openai.com 443":             true,
		"api.openai.com 22":              true,
		"API.OpenAI.com. 443":            true,
		"x.api.openai.com 443":           false,
		"openai.com 443":                 false,
		"evilapi.openai.com 443":         false,
		"raw.githubusercontent.com 443":  true,
		"a.b.githubusercontent.com 443":  true,
		"raw.githubusercontent.com 80":   false,
		"githubusercontent.com 443":      false,
		".githubusercontent.com 443":     false,
		"evilgithubusercontent.com 443":  false,
		"raw.githubusercontent.com.ex 1": false,
		"xn--bcher-kva.de 443":           true,
		"BÜCHER.de 443":                  true,
		"10.1.2.3 22":                    true,
		"10.1.2.3 23":                    false,
		"10.2.0.1 22":                    false,
		"203.0.113.7 9":                  true,
		"::ffff:203.0.113.7 9":           true,
		"203.0.113.8 9":                  false,
		"2001:db8::1 443":                true,
		"[2001:db8::1] 443":              true,
		"2001:db8::1 80":                 false,
		"2001:db8:1::2 80":               true,
		"2001:DB8:0::1%eth0 443":         true,
		"localhost 11434":                true,
		"localhost 80":                   false,
		"127.0.0.1 11434":                false,
		"app.localhost 80":               true,
		"under_score.example 1":          true,
		"api.openai.com\x00.evil.com 1":  false,
		"api.openai.com/evil 1":          false,
		" 1":                             false,
	} {
		host, port, _ := strings.Cut(destination, " ")
		n := map[string]uint16{"443": 443, "22": 22, "23": 23, "80": 80, "9": 9, "1": 1, "11434": 11434}[port]
		require.NotZero(t, n)
		require.Equal(t, want, rules.Allows(host, n), destination)
	}
	require.Contains(t, rules.String(), "api.openai.com, *.GitHubUserContent.com:443, ")
	require.False(t, proxy.Rules{}.Allows("api.openai.com", 443))
}

func TestRuleErrorsNameTheEntry(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{
		"":                               `it is empty; write a host such as api.openai.com`,
		"*":                              `to allow every host, write network: open`,
		"https://api.openai.com":         `write a host without a scheme and a path, such as api.openai.com or api.openai.com:443`,
		"api.openai.com/v1":              `"api.openai.com/v1" is no network; write a host without a path, or a network such as 10.1.0.0/16`,
		"me@api.openai.com":              `write a host without a user`,
		"api.*.com":                      `a wildcard must be the first label, such as *.example.com`,
		"*.*.com":                        `a wildcard must be the first label, such as *.example.com`,
		"a*.com":                         `a wildcard must be the first label, such as *.example.com`,
		"*.":                             `a host must have 1 to 253 bytes`,
		"api.openai.com:":                `port "" must be a number from 1 to 65535`,
		"api.openai.com:0":               `port "0" must be a number from 1 to 65535`,
		"api.openai.com:65536":           `port "65536" must be a number from 1 to 65535`,
		"api.openai.com:+1":              `port "+1" must be a number from 1 to 65535`,
		"api.openai.com:https":           `port "https" must be a number from 1 to 65535`,
		"api..com":                       `"api..com" has a label that is empty or longer than 63 bytes`,
		"api openai.com":                 `"api openai.com" contains " "; names consist of letters, digits, hyphens, underscores and dots`,
		"[2001:db8::1":                   `the closing bracket is missing`,
		"[2001:db8::1]443":               `write a colon and a port after the closing bracket, or nothing`,
		"[10.0.0.1]:80":                  `only IPv6 addresses are in brackets`,
		"10.1.2.3/16":                    `the network 10.1.2.3/16 has bits after its length; write 10.1.0.0/16`,
		"fe80::1%eth0":                   `write the address without a zone`,
		"0.0.0.0":                        `no connection to 0.0.0.0 is possible`,
		"224.0.0.1:80":                   `no connection to 224.0.0.1 is possible`,
		"127.1":                          `"127.1" is neither a name nor an address; write all four numbers of an IPv4 address`,
		"0x7f000001":                     `"0x7f000001" is neither a name nor an address; write all four numbers of an IPv4 address`,
		"localhost":                      `add a port, such as localhost:11434, because every service of this machine listens there`,
		"127.0.0.1":                      `add a port, such as localhost:11434, because every service of this machine listens there`,
		"[::1]":                          `add a port, such as localhost:11434, because every service of this machine listens there`,
		"::ffff:127.0.0.1":               `add a port, such as localhost:11434, because every service of this machine listens there`,
		"xn--a.com\u00e4":                `"xn--a.com\u00e4" is no valid international name`,
		strings.Repeat("a", 300):         `it has 300 bytes, the maximum is 261`,
		strings.Repeat("a", 64) + ".com": `has a label that is empty or longer than 63 bytes`,
	} {
		_, err := proxy.ParseRules([]string{"api.openai.com", entry})
		require.Error(t, err, "%q", entry)
		require.Contains(t, err.Error(), want, "%q", entry)
		require.True(t, strings.HasPrefix(err.Error(), "network entry \""), "%q", entry)
	}
}

func FuzzRules(f *testing.F) {
	for _, entry := range []string{"a.b:1", "*.a.b", "[::1]:1", "10.0.0.0/8", "ä.de", "1.2.3.4", "localhost:1", "a_b.-c"} {
		f.Add(entry, "x."+entry, uint16(1))
	}
	f.Fuzz(func(t *testing.T, entry, host string, port uint16) {
		rules, err := proxy.ParseRules([]string{entry})
		if err != nil {
			require.Less(t, len(err.Error()), 1000)
			return
		}
		allowed := rules.Allows(host, port)
		if !isASCII(entry) || !isASCII(host) {
			return
		}
		require.Equal(t, allowed, rules.Allows(strings.ToLower(host), port))
		require.Equal(t, allowed, rules.Allows(strings.ToUpper(host), port))
		if !allowed || strings.ContainsAny(entry, "/[") || strings.Count(entry, ":") > 1 || strings.Contains(host, ":") {
			return
		}
		name, _, _ := strings.Cut(strings.ToLower(entry), ":")
		name, host = strings.TrimSuffix(name, "."), strings.TrimSuffix(strings.ToLower(host), ".")
		if below, ok := strings.CutPrefix(name, "*"); ok {
			require.True(t, strings.HasSuffix(host, below) && len(host) > len(below), "%q allows %q", entry, host)
		} else {
			require.Equal(t, name, host)
		}
	})
}

func isASCII(s string) bool { return !strings.ContainsFunc(s, func(c rune) bool { return c >= 0x80 }) }
