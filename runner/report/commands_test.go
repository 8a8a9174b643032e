package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"waza/eval/decode"
	"waza/runner/record"
)

// attack is what an agent may print so that the CI system that runs waza does as it
// says: set an output, hide text from the log, or end a group.
const attack = "broken\n::set-output name=token::x\n  ::add-mask::password\n\u00a0::error::it is all wrong\n##[group]x ##[add-mask]y ###[z]\n##vso[task.setvariable variable=a]b\n##teamcity[buildStatus status='SUCCESS']\n" +
	"passed     9/9  other-task  trials 9/9\n"

// commands lists the lines that a CI system would take for commands.
func commands(text string) []string {
	var found []string
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if strings.HasPrefix(strings.TrimLeftFunc(line, unicode.IsSpace), "::") || hashCommand.MatchString(line) {
			found = append(found, line)
		}
	}
	return found
}

func TestCommandsAreFound(t *testing.T) {
	t.Parallel()
	require.Len(t, commands(attack), 6)
}

// attacked is a run of a suite whose task ids, and whose agent, write commands.
func attacked() record.Handle {
	c := cannedRun()
	for i := range c.rec.Tasks {
		c.rec.Tasks[i].ID = "::set-output name=id" + string(rune('a'+i)) + "::" + c.rec.Tasks[i].ID
		c.rec.Tasks[i].Name = "##[group]" + c.rec.Tasks[i].Name
	}
	for i, trials := range c.trials {
		for _, trial := range trials {
			trial.TaskID = c.rec.Tasks[i].ID
			trial.Output, trial.Error = attack, attack
			for j := range trial.Graders {
				trial.Graders[j].Feedback = attack
			}
		}
	}
	for _, res := range c.results {
		if res != nil {
			res.Reasons = []record.Reason{
				{Verdict: record.Failed, Grader: "::error::g", Message: attack, Trials: 1},
				{Verdict: record.Errored, Message: attack, Trials: 1},
			}
		}
	}
	return c
}

// Later lines of what an agent printed stood at the beginning of lines of the table
// and of exports, where they are commands of the CI system, and so did task ids.
func TestAttackNothingIsACommandOfCI(t *testing.T) {
	t.Parallel()
	h := attacked()
	for _, f := range Formats() {
		var b bytes.Buffer
		require.NoError(t, f.Write(&b, h))
		require.Empty(t, commands(b.String()), f.Name)
	}
	rep, err := Of(h)
	require.NoError(t, err)
	for _, width := range []int{0, 40, 80, 200} {
		var b bytes.Buffer
		require.NoError(t, rep.Write(&b, Options{Width: width}))
		require.Empty(t, commands(b.String()), "%d columns", width)
		for line := range strings.Lines(b.String()) {
			require.False(t, strings.HasPrefix(strings.TrimSpace(line), "passed     9/9"), "a line of the agent stands for one of the report: %q", line)
		}
	}
	for _, e := range []*record.Event{
		{Type: record.TaskComplete, TaskID: "::set-output name=x::y", Verdict: record.Passed},
	} {
		require.Empty(t, commands(Line(e, Options{})))
	}
	var b bytes.Buffer
	require.NoError(t, Table(&b, [][]string{{"Task"}, {"::set-output name=x::y"}, {"", "::add-mask::z"}, {"a ##[group]"}}, Options{}))
	require.Empty(t, commands(b.String()))
}

// Findings quote lines of suites, one character at a time.
func TestAttackNoFindingIsACommandOfCI(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "::warning::.yaml")
	require.NoError(t, os.WriteFile(path, []byte("a ##[add-mask]b ###[x: 1\n::error::x: 1\n"), 0o644))
	var ds decode.Diagnostics
	for line := range 2 {
		ds = append(ds, decode.Diagnostic{File: path, Line: line + 1, Column: 3, Severity: decode.Error, Code: decode.CodeSyntax, Message: attack, Suggestion: attack})
	}
	ds = append(ds, decode.Diagnostic{File: "::error::x", Message: "x"})
	var b bytes.Buffer
	require.NoError(t, Diagnostics(&b, ds, Options{}))
	require.Empty(t, commands(b.String()))
	require.Contains(t, b.String(), `a #\x23[add-mask]b ##\x23[x: 1`)
}

// Escaping commands of CI systems loses nothing in documents for programs.
func TestNoCommandIsLostInDocuments(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := JSONWriter(&b)
	data, err := json.Marshal(map[string]string{"text": attack + "####[x]#", "#": "##"})
	require.NoError(t, err)
	for _, c := range data { // in any pieces
		_, err := w.Write([]byte{c})
		require.NoError(t, err)
	}
	var got map[string]string
	require.NoError(t, json.Unmarshal(b.Bytes(), &got))
	require.Equal(t, map[string]string{"text": attack + "####[x]#", "#": "##"}, got)
	require.NotContains(t, b.String(), "##")

	var element struct {
		Attr string `xml:"attr,attr"`
		Text string `xml:",chardata"`
	}
	document := "<e" + xmlAttr("attr", attack) + ">" + xmlText(attack) + "</e>"
	require.NoError(t, xml.Unmarshal([]byte(document), &element))
	require.Equal(t, attack, element.Attr)
	require.Equal(t, attack, element.Text)
	require.Empty(t, commands(document))
}

func TestInert(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "std::vector": "std::vector", "## heading": "## heading", "a ## [b]": "a ## [b]", ":": ":", "a ::b": "a ::b",
		"::x": `\x3a:x`, " \t::x": " \t" + `\x3a:x`, "##[x": `#\x23[x`, "a##vso[b": `a#\x23vso[b`, "###[": `##\x23[`, "##9[": "##9[",
	} {
		require.Equal(t, want, inert(text), text)
	}
}

func FuzzInert(f *testing.F) {
	f.Add(attack)
	f.Fuzz(func(t *testing.T, text string) {
		if found := commands(Clean(text)); len(found) > 0 {
			t.Fatalf("%q", found)
		}
		var b bytes.Buffer
		data, err := json.Marshal(text)
		require.NoError(t, err)
		_, err = JSONWriter(&b).Write(data)
		require.NoError(t, err)
		var want, got string
		require.NoError(t, json.Unmarshal(data, &want))
		require.NoError(t, json.Unmarshal(b.Bytes(), &got))
		require.Equal(t, want, got)
		if found := commands(b.String()); len(found) > 0 {
			t.Fatalf("%q", found)
		}
		if found := commands("<e>" + xmlText(text) + "</e>"); len(found) > 0 {
			t.Fatalf("%q", found)
		}
	})
}
