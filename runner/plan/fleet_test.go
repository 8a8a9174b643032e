package plan_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// planned returns the plan of a suite for a request.
func planned(t *testing.T, files string, req record.Request) (*plan.Plan, error) {
	t.Helper()
	r := runnertest.NewRunner(t)
	p, err := r.Planner().Plan(t.Context(), runnertest.Load(t, r, files), req)
	if p != nil {
		t.Cleanup(p.Close)
	}
	return p, err
}

const oneTask = "-- eval.yaml --\nname: n\nconfig: {executor: mock}\ntasks: [{id: a, prompt: x}]\n"

// A plan contains the fleet with its password; records do not.
func TestFleetOfRequest(t *testing.T) {
	t.Parallel()
	p, err := planned(t, oneTask, record.Request{Fleet: "nats://me:sekret@host?team=search"})
	require.NoError(t, err)
	require.Equal(t, "sekret", p.Fleet.Password)
	require.Equal(t, "nats://me:xxxxx@host:4222?team=search", p.Asked.Fleet)
	require.Equal(t, p.Asked.Fleet, p.Record("id", time.Time{}, 1).Fleet)

	for _, fleet := range []string{"", record.FleetNone} {
		p, err = planned(t, oneTask, record.Request{Fleet: fleet})
		require.NoError(t, err)
		require.Nil(t, p.Fleet)
		require.Equal(t, fleet, p.Asked.Fleet)
	}
}

func TestFleetErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		req  record.Request
		want string
	}{
		"address":   {record.Request{Fleet: "natz://host"}, `scheme "natz" is unknown`},
		"file":      {record.Request{Fleet: "nats://host?creds=absent.creds"}, "absent.creds does not exist"},
		"snapshots": {record.Request{Fleet: "nats://host", UpdateSnapshots: true}, "omit --fleet or --update-snapshots"},
		"recorded": {
			record.Request{Fleet: "nats://me:xxxxx@host"},
			"the password of nats://me:xxxxx@host:4222 is not recorded: pass --fleet again, or set WAZA_FLEET",
		},
	} {
		_, err := planned(t, oneTask, c.req)
		fault := new(record.FleetError)
		require.ErrorAs(t, err, &fault, name)
		require.ErrorContains(t, err, c.want, name)
	}
}

// The password of a resumed run comes from the variable, if that names the same fleet.
func TestFleetPasswordFromVariable(t *testing.T) {
	t.Setenv(plan.FleetVariable, "nats://me:sekret@host?labels=gpu")
	p, err := planned(t, oneTask, record.Request{Fleet: "nats://me:xxxxx@host?lost=5s"})
	require.NoError(t, err)
	require.Equal(t, "sekret", p.Fleet.Password)
	require.Empty(t, p.Fleet.Labels)
	require.Equal(t, "nats://me:xxxxx@host:4222?lost=5s", p.Asked.Fleet)
	_, err = planned(t, oneTask, record.Request{Fleet: "nats://me:xxxxx@other"})
	require.ErrorContains(t, err, "pass --fleet again")
}

// The fleet of a suite, which a stranger may have written, is used only where the user permits
// it.
func TestFleetOfSuite(t *testing.T) {
	suite := func(fleet string) string {
		return strings.Replace(oneTask, "executor: mock", "executor: mock, fleet: "+fleet, 1)
	}
	const strange = "'nats://strange?team=t'"
	for _, c := range []struct{ own, fleet, asked, want string }{
		{"", "embedded", "", "embedded"},
		{"", "{url: embedded, slots: 3}", "", "embedded?slots=3"},
		{"", strange, "", ""},
		{"", strange, "none", "none"},
		{"", strange, "suite", "nats://strange:4222?team=t"},
		{"", strange, "nats://mine", "nats://mine:4222"},
		{"nats://mine", strange, "", ""},
		{"nats://strange", strange, "", ""}, // another team
		{"nats://me:sekret@strange?team=t&labels=gpu", strange, "", "nats://me:xxxxx@strange:4222?team=t"},
		{"nats://me:sekret@strange?team=t", strange, "suite", "nats://me:xxxxx@strange:4222?team=t"},
		{"nats://me:sekret@mine", strange, "suite", "nats://strange:4222?team=t"},
		{"nats://me:sekret@mine", "embedded", "none", "none"},
	} {
		t.Setenv(plan.FleetVariable, c.own)
		p, err := planned(t, suite(c.fleet), record.Request{Fleet: c.asked})
		if c.want == "" {
			require.EqualError(t, err, "config.fleet would send files of this machine to nats://strange:4222, which is not permitted: "+
				"pass --fleet suite, or set WAZA_FLEET to the same servers and team; --fleet none executes the trials here")
			continue
		}
		require.NoError(t, err)
		ds := p.Preflight(t.Context())
		switch c.want {
		case record.FleetNone:
			require.Nil(t, p.Fleet)
			require.Empty(t, ds)
		default:
			require.Empty(t, ds)
			require.Equal(t, c.want, p.Fleet.String())
			require.Equal(t, c.want, p.Record("id", time.Time{}, 1).Fleet)
			if c.asked != "" { // a changed suite must not send a resumed run elsewhere
				require.Equal(t, c.want, p.Asked.Fleet)
			}
		}
	}
	t.Setenv(plan.FleetVariable, "natz://mine")
	_, err := planned(t, suite(strange), record.Request{})
	require.ErrorContains(t, err, "WAZA_FLEET: fleet address")

	t.Setenv(plan.FleetVariable, "nats://mine")
	p, err := planned(t, suite("{url: 'nats://mine', creds: keys/mine.creds}"), record.Request{})
	require.NoError(t, err)
	require.Equal(t, filepath.Join(p.Suite.Dir, "keys", "mine.creds"), p.Fleet.Creds)
	require.Contains(t, p.Preflight(t.Context())[0].Message, "mine.creds does not exist")
}

// Many trials wait for the workers of a fleet, unless the number is set.
func TestFleetTakesMany(t *testing.T) {
	t.Parallel()
	many := strings.Replace(oneTask, "executor: mock", "executor: mock, trials_per_task: 3000", 1)
	for _, c := range []struct {
		files string
		req   record.Request
		want  int
	}{
		{many, record.Request{Fleet: "embedded"}, plan.MaxWaiting},
		{many, record.Request{Fleet: "embedded", Trials: 7}, 7},
		{many, record.Request{Fleet: "embedded", Workers: 2000}, 2000},
		{strings.Replace(many, "mock,", "mock, parallel: true, workers: 5,", 1), record.Request{Fleet: "embedded"}, 5},
		{strings.Replace(many, "mock,", "mock, parallel: false,", 1), record.Request{Fleet: "embedded"}, 1},
		{many, record.Request{}, 1},
	} {
		p, err := planned(t, c.files, c.req)
		require.NoError(t, err)
		require.Equal(t, c.want, p.Workers(), c.req)
	}
}

// With a fleet, missing local programs and keys are not reported. Parts of the suite that
// workers cannot use are.
func TestFleetPreflight(t *testing.T) {
	t.Parallel()
	findings := func(config, rest, fleet string) []string {
		p, err := planned(t, "-- eval.yaml --\nname: n\nconfig: {"+config+"}\n"+rest+"\ntasks: [{id: a, prompt: x}]\n",
			record.Request{Fleet: fleet})
		require.NoError(t, err)
		var found []string
		for _, d := range p.Preflight(t.Context()) {
			found = append(found, strings.TrimPrefix(d.String(), filepath.Dir(d.File)+string(os.PathSeparator)))
		}
		return found
	}
	lacking := "graders: [{type: program, config: {command: absent-program}}, {type: prompt, config: {prompt: good, judge: {agent: absent}}}]"
	require.Len(t, findings("executor: command, command: [absent-program]", lacking, ""), 3)
	require.Empty(t, findings("executor: command, command: [absent-program]", lacking, "embedded"))
	require.Empty(t, findings("executor: openai, model: m, api_key_env: ABSENT_KEY", "", "embedded"))
	require.Equal(t, []string{"eval.yaml:2:20: error: config.model is missing; set it to the model to ask [missing-field]"},
		findings("executor: openai", "", "embedded")[:1])
	require.Equal(t, []string{
		"eval.yaml:2:20: error: executor remote does not work with a fleet: its agents connect to the waza serve of " +
			"this machine; --fleet none executes the trials here [fleet]",
	}, findings("executor: remote", "", "embedded"))
	require.Equal(t, []string{
		"eval.yaml:2:20: error: executor router does not work with a fleet: router.live sends messages to clients of " +
			"the waza serve of this machine; --fleet none executes the trials here [fleet]",
	}, findings("executor: router, router: {live: true}", "", "embedded"))
	require.Equal(t, []string{
		"eval.yaml:3:8: warning: hooks run on this machine, but trials run on the workers of the fleet: they do not " +
			"see what hooks start or write [fleet]",
	}, findings("executor: mock", "hooks: {before_run: ['true']}", "embedded"))
	require.Empty(t, findings("executor: mock", "hooks: {before_run: ['true']}", ""))
	for _, local := range []string{"http://localhost:11434/v1", "http://127.0.0.1:1", "http://[::1]:1"} {
		const here = "executor: openai, model: m, base_url: "
		require.Len(t, findings(here+"'"+local+"'", "", "nats://host"), 1)
		require.Contains(t, findings(here+"'"+local+"'", "", "nats://host")[0],
			"warning: config.base_url is "+local+", which means a different machine on each worker [fleet]")
		require.Empty(t, findings(here+"'"+local+"'", "", "embedded"))
	}
	require.Empty(t, findings("executor: openai, model: m, base_url: 'http://models.example/v1'", "", "nats://host"))
}
