package fleetaddr_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/fleetaddr"
)

// A suite contains the fleet as an address or as its parts.
func TestFleetOfSuite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ yaml, address, fault string }{
		{"embedded", "embedded", ""},
		{"nats://h?team=t", "nats://h:4222?team=t", ""},
		{"{url: embedded, slots: 0}", "embedded?slots=0", ""},
		{
			"{url: 'nats://a,b', team: t, creds: 'dir/a&b.creds', nkey: n, ca: ca.pem, cert: c.pem, key: k.pem, sign: s, " +
				"labels: [gpu, big], lost: 5s, wait: 1h, replicas: 3}",
			"", `has creds and nkey, but only one login is allowed`,
		},
		{
			"{url: 'nats://a,b', team: t, creds: 'dir/a&b.creds', ca: ca.pem, cert: c.pem, key: k.pem, sign: s, labels: " +
				"[gpu, big], lost: 5s, wait: 1h, replicas: 3}",
			"nats://a:4222,nats://b:4222?team=t&creds=dir/a%26b.creds&ca=ca.pem&cert=c.pem&key=k.pem&sign=s&labels=big,gpu&lost=5s&wait=1h0m0s&replicas=3",
			"",
		},
		{"{url: 'nats://h?team=t', lost: 5s}", "nats://h:4222?team=t&lost=5s", ""},
		{"{url: 'nats://h?team=t', team: u}", "", `parameter "team" is given twice`},
		{"{url: nats://h, team: Search!}", "", `config.fleet: parameter "team": team "Search!" must have 1 to 32 of a-z, 0-9, - and _`},
		{"{url: nats://h, replicas: 2}", "", "replicas"},
		{"{url: nats://h, slots: 2}", "", `parameter "slots" is allowed only for an embedded server`},
		{"nats://me:sekret@h", "", "fleet contains a password or token"},
		{"nats://token@h", "", "fleet contains a password or token"},
		{"[a]", "", "fleet must be a fleet address or a map, got a list"},
		{"{team: t}", "", "url"},
		{"''", "", "fleet: is empty; expected nats://host:4222"},
		{"natz://h", "", `fleet: server 1: scheme "natz" is unknown`},
	} {
		file := filepath.Join(t.TempDir(), "eval.yaml")
		content := "name: n\nconfig:\n  fleet: " + c.yaml + "\ntasks: [{id: a, prompt: x, expected: {output_contains: [y]}}]\n"
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		suite, found, err := eval.Load(file, eval.Options{Vocabulary: &eval.Vocabulary{
			Executors: []eval.Kind{{Name: "mock"}}, CheckFleet: fleetaddr.CheckOfSuite,
		}})
		require.NoError(t, err)
		if c.fault != "" {
			require.NotEmpty(t, found.Errors(), c.yaml)
			require.Contains(t, found.Errors()[0].Message, c.fault, c.yaml)
			require.NotContains(t, found.Errors()[0].Message, "sekret")
			continue
		}
		require.Empty(t, found, c.yaml)
		a, err := fleetaddr.Parse(suite.Config.Fleet.Address())
		require.NoError(t, err)
		require.Equal(t, c.address, a.String())
	}
}

func TestSame(t *testing.T) {
	t.Parallel()
	parse := func(given string) fleetaddr.Address {
		a, err := fleetaddr.Parse(given)
		require.NoError(t, err)
		return a
	}
	require.True(t, parse("nats://a,b?lost=5s").Same(parse("nats://me:pw@b:4222,me:pw@a")))
	require.True(t, parse("embedded").Same(parse("embedded?slots=3")))
	for _, other := range []string{"nats://a", "nats://a,b,c", "nats://a,b?team=t", "tls://a,b", "nats://a,b:4223", "embedded"} {
		require.False(t, parse("nats://a,b").Same(parse(other)), other)
	}
	require.True(t, parse("nats://me:xxxxx@a").Hidden())
	require.True(t, parse("nats://xxxxx@a").Hidden())
	require.False(t, parse("nats://a").Hidden())
	with := parse("nats://a?labels=gpu").WithLogin(parse("nats://me:pw@b?labels=x"))
	require.Equal(t, "pw", with.Password)
	require.Equal(t, "nats://me:xxxxx@a:4222?labels=gpu", with.String())
	require.True(t, with.HasLogin())
	require.False(t, parse("nats://a").HasLogin())
}
