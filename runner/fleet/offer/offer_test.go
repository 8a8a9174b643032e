package offer_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/fleet/offer"
	"waza/runner/record"
)

// machine returns an environment whose PATH contains these programs, and additional variables.
func machine(t *testing.T, programs []string, variables ...string) []string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range programs {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o700))
	}
	return append([]string{"PATH=" + dir}, variables...)
}

func TestLacks(t *testing.T) {
	t.Parallel()
	tool := filepath.Join(t.TempDir(), "tool")
	require.NoError(t, os.WriteFile(tool, []byte("#!/bin/sh\n"), 0o700))
	o := offer.Of([]string{"gpu"}, machine(t, []string{"copilot", "python3", "jq"}, "OPENAI_API_KEY=k", "OWN_KEY=k", "EMPTY="))
	require.Equal(t, []string{"copilot"}, o.Agents)
	require.Equal(t, []string{"python3"}, o.Programs)
	require.Equal(t, []string{"OPENAI_API_KEY"}, o.Keys)
	o.Sandboxes = []record.Tier{record.TierLandlock, record.TierNone}
	require.Contains(t, o.Executors, "mock")
	require.Contains(t, o.Graders, "text")
	for _, c := range []struct {
		need record.Need
		why  string
	}{
		{record.Need{Kind: record.NeedAgent, Name: "copilot"}, ""},
		{record.Need{Kind: record.NeedAgent, Name: "codex"}, "the agent codex is not installed"},
		{record.Need{Kind: record.NeedProgram, Name: "jq"}, ""},
		{record.Need{Kind: record.NeedProgram, Name: "node"}, "the program node is not installed"},
		{record.Need{Kind: record.NeedProgram, Name: tool}, ""},
		{record.Need{Kind: record.NeedProgram, Name: tool + "2"}, "the program " + tool + "2 is not installed"},
		{record.Need{Kind: record.NeedKey, Name: "OPENAI_API_KEY"}, ""},
		{record.Need{Kind: record.NeedKey, Name: "OWN_KEY"}, ""},
		{record.Need{Kind: record.NeedKey, Name: "EMPTY"}, "the variable EMPTY is not set"},
		{record.Need{Kind: record.NeedLabel, Name: "gpu"}, ""},
		{record.Need{Kind: record.NeedLabel, Name: o.OS}, ""},
		{record.Need{Kind: record.NeedLabel, Name: o.Arch}, ""},
		{record.Need{Kind: record.NeedLabel, Name: "tpu"}, "the label tpu is not given"},
		{record.Need{Kind: record.NeedExecutor, Name: "mock"}, ""},
		{record.Need{Kind: record.NeedExecutor, Name: "own"}, "the executor own is not part of this waza"},
		{record.Need{Kind: record.NeedGrader, Name: "own"}, "the grader own is not part of this waza"},
		{record.Need{Kind: record.NeedSandbox, Name: "landlock"}, ""},
		{record.Need{Kind: record.NeedSandbox, Name: "namespaces"}, "the sandbox namespaces is not available"},
		{record.Need{Kind: record.NeedSandbox, Name: "container"}, "the sandbox container is not available"},
		{record.Need{Kind: "moon", Name: "full"}, "the moon full is not installed"},
	} {
		lacking := o.Lacks([]record.Need{c.need})
		require.Equal(t, c.why, offer.Explain(lacking), c.need)
		if c.why == "" {
			require.Nil(t, lacking)
		}
	}
	require.Equal(t, "the agent codex is not installed, the label tpu is not given, and the variable "+
		"EMPTY is not set", offer.Explain([]record.Need{
		{Kind: record.NeedAgent, Name: "codex"}, {Kind: record.NeedLabel, Name: "tpu"}, {Kind: record.NeedKey, Name: "EMPTY"},
	}))
	require.Equal(t, "agent copilot; key OPENAI_API_KEY; label gpu; sandbox landlock; "+o.OS+"/"+o.Arch, o.Line())
}

// A provider at an address of the machine's own might require no key, like in runs on that
// machine.
func TestKeyOfServedProvider(t *testing.T) {
	t.Parallel()
	need := []record.Need{{Kind: record.NeedKey, Name: "ANTHROPIC_API_KEY"}, {Kind: record.NeedKey, Name: "OPENAI_API_KEY"}}
	require.Equal(t, need, offer.Of(nil, machine(t, nil)).Lacks(need))
	require.Equal(t, need[:1], offer.Of(nil, machine(t, nil, "OPENAI_BASE_URL=http://127.0.0.1:11434/v1")).Lacks(need))
	require.Equal(t, need, offer.Of(nil, machine(t, nil, "OPENAI_BASE_URL=https://api.openai.com/v1/")).Lacks(need))
}

func TestPythonByVariable(t *testing.T) {
	t.Parallel()
	need := []record.Need{{Kind: record.NeedProgram, Name: "python3"}}
	require.NotEmpty(t, offer.Of(nil, nil).Lacks(need))
	require.Empty(t, offer.Of(nil, machine(t, nil, "WAZA_PYTHON=/opt/python")).Lacks(need))
}

// For a decoded offer only its lists count: files and variables of the reader do not, and values
// of variables are not sent.
func TestDecodedOffer(t *testing.T) {
	t.Parallel()
	needs := record.JoinNeeds([]record.Need{
		{Kind: record.NeedProgram, Name: "jq"}, {Kind: record.NeedKey, Name: "OWN_KEY"}, {Kind: record.NeedProgram, Name: "absent"},
	})
	here := offer.Of([]string{"b", "a", "b"}, machine(t, []string{"jq"}, "OWN_KEY=sekret", "OPENAI_API_KEY=sekret"))
	require.Equal(t, []string{"a", "b"}, here.Labels)
	decode := func(o *offer.Offer) *offer.Offer {
		b, err := json.Marshal(o)
		require.NoError(t, err)
		require.NotContains(t, string(b), "sekret")
		there := new(offer.Offer)
		require.NoError(t, json.Unmarshal(b, there))
		return there
	}
	require.Len(t, decode(here).Lacks(needs), 3)
	asked := here.With(needs)
	require.Equal(t, here.Lacks(needs), decode(asked).Lacks(needs))
	require.Len(t, decode(here).Lacks(needs), 3, "With changed its receiver")
}

func TestClass(t *testing.T) {
	t.Parallel()
	need := func(kind record.NeedKind, name string) record.Need { return record.Need{Kind: kind, Name: name} }
	for _, c := range []struct {
		needs []record.Need
		want  string
	}{
		{nil, "any"},
		{[]record.Need{need("agent", "copilot")}, "agent-copilot"},
		{[]record.Need{need("label", "gpu"), need("key", "OPENAI_API_KEY"), need("label", "gpu")}, "key-OPENAI_API_KEY_label-gpu"},
		{[]record.Need{need("program", "/opt/a b")}, "program-_opt_a_b_"},
		{[]record.Need{need("label", "a_label-b")}, "label-a_label-b_"},
		{[]record.Need{need("label", "a_0123abcd")}, "label-a_0123abcd_"},
		{[]record.Need{need("program", strings.Repeat("x", 80))}, "program-" + strings.Repeat("x", 47) + "_"},
	} {
		got := offer.Class(c.needs)
		require.Regexp(t, `^[A-Za-z0-9_-]{1,64}$`, got)
		if strings.HasSuffix(c.want, "_") {
			require.Regexp(t, `^[0-9a-f]{8}$`, strings.TrimPrefix(got, c.want))
		} else {
			require.Equal(t, c.want, got)
		}
	}
	ambiguous := [][]record.Need{
		{need("label", "a.b")}, {need("label", "a_b")}, {need("label", "a/b")},
		{need("label", "a"), need("label", "b")}, {need("label", "a_label-b")},
		{need("label", strings.Repeat("x", 80))}, {need("label", strings.Repeat("x", 81))},
	}
	seen := map[string]bool{}
	for _, needs := range ambiguous {
		require.False(t, seen[offer.Class(needs)], needs)
		seen[offer.Class(needs)] = true
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	require.NoError(t, offer.CheckNeeds(nil))
	require.NoError(t, offer.CheckNeeds(offer.Labels([]string{"b", "a"})))
	require.NoError(t, offer.CheckLabels([]string{"gpu", "linux-6.1", "A_1"}))
	for name, err := range map[string]error{
		"kind":      offer.CheckNeeds([]record.Need{{Kind: "x", Name: "y"}}),
		"empty":     offer.CheckNeeds([]record.Need{{Kind: record.NeedKey}}),
		"long":      offer.CheckNeeds([]record.Need{{Kind: record.NeedKey, Name: strings.Repeat("x", 513)}}),
		"control":   offer.CheckNeeds([]record.Need{{Kind: record.NeedKey, Name: "a\x1b[2J"}}),
		"not text":  offer.CheckNeeds([]record.Need{{Kind: record.NeedKey, Name: "a\xff"}}),
		"many":      offer.CheckNeeds(make([]record.Need, 257)),
		"unsorted":  offer.CheckNeeds([]record.Need{{Kind: record.NeedLabel, Name: "b"}, {Kind: record.NeedLabel, Name: "a"}}),
		"twice":     offer.CheckNeeds([]record.Need{{Kind: record.NeedLabel, Name: "a"}, {Kind: record.NeedLabel, Name: "a"}}),
		"label":     offer.CheckLabels([]string{"a b"}),
		"no label":  offer.CheckLabels([]string{""}),
		"option":    offer.CheckLabels([]string{"-x"}),
		"long one":  offer.CheckLabels([]string{strings.Repeat("x", 65)}),
		"many ones": offer.CheckLabels(make([]string, 33)),
	} {
		require.Error(t, err, name)
	}
}
