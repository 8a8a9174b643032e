package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// writePlugin writes the files of a plugin and returns its manifest.
func writePlugin(t *testing.T, more map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	all := map[string]string{
		".claude-plugin/plugin.json": `{"name": "greeter"}`,
		"skills/greet/SKILL.md":      "---\nname: greet\ndescription: Greets people.\n---\n",
	}
	maps.Copy(all, more)
	for name, content := range all {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	return filepath.Join(dir, ".claude-plugin", "plugin.json")
}

// acts is an agent that does what its prompt says, a word per line: "call NAME JSON", "got NAME JSON" for a call
// with that result, "skill NAME", "write NAME TEXT", "note TEXT" or "say TEXT". It uses a skill only if it has one.
func acts(_ context.Context, trial *executor.Trial) (said string, err error) {
	for _, line := range strings.Split(trial.Prompt, "\n") {
		verb, rest, _ := strings.Cut(line, " ")
		name, text, _ := strings.Cut(rest, " ")
		switch verb {
		case "call":
			trial.Transcript.ToolCall(record.ToolCall{Name: name, Arguments: json.RawMessage(text)})
		case "got":
			trial.Transcript.ToolCall(record.ToolCall{Name: name, Arguments: json.RawMessage(`{"n":1}`), Result: json.RawMessage(text), Status: "completed"})
		case "note":
			trial.Transcript.Message("assistant", rest)
		case "skill":
			if runnertest.Skilled(trial) {
				trial.Transcript.Skill(name)
			}
		case "write":
			dir, err := trial.Dir()
			if err != nil {
				return "", err
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				return "", err
			}
		case "say":
			said = rest
		}
	}
	return said, nil
}

// Each grader of `claude plugin eval` that code decides passes and fails as its definition says.
func TestPluginEvalGraders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, grader, passes, fails string }{
		{"contains", "type: regex\nflags: i\n---\nhello,?\\s(?!bob)", "say Hello, Ada", "say Hello, Bob\nsay Hello, bob"},
		{"exact letters", "type: regex\n---\nHello", "say Hello", "say hello"},
		{"not_contains", "type: regex\nmatch: not_contains\n---\nsorry", "say Hello", "say I am sorry"},
		{"count", "type: regex\nmatch: count:2\n---\na.", "say abac", "say abacad"},
		{"count of less", "type: regex\nmatch: count:2\n---\na.", "say abac", "say ab"},
		{"count of none", "type: regex\nmatch: count:0\n---\na", "say b", "say a"},
		{"flag g", "type: regex\nflags: g\n---\na", "say ba", "say b"},
		{"created", "type: regex\ntarget: files\n---\n^out\\.md$", "write out.md x", "write sub.md x"},
		{"created, with flags", "type: regex\nflags: iu\ntarget: files\n---\n^OUT\\.md$", "write out.md x", "write sub.md x"},
		{"nothing created", "type: regex\nmatch: not_contains\ntarget: files\n---\nmd", "write out.txt x", "write out.md x"},
		{"created twice", "type: regex\nmatch: count:2\ntarget: files\n---\n\\.md", "write a.md x\nwrite b.md x", "write a.md x"},
		{"trace of text", "type: regex\ntarget: trace\n---\n\"type\":\"text\",\"text\":\"Hm\"", "note Hm\nsay x", "note Oh\nsay Hm"},
		{"trace of calls", "type: regex\ntarget: trace\n---\n\"name\":\"Read\",\"input\":\\{\"a\":1", `call Read {"a": 1}`, `call Read {"a": 2}`},
		{"trace of results", "type: regex\ntarget: trace\n---\n\"tool_result\".*No such", `got Read "No such file"`, `got Read "text"`},
		{"trace of skills", "type: regex\ntarget: trace\narm: both\n---\n\"name\":\"Skill\".*greet", "skill greet", "skill other"},
		{"trace without", "type: regex\nmatch: not_contains\ntarget: trace\n---\nrm -rf", `call Bash {"command": "ls"}`, `call Bash {"command": "rm -rf /"}`},
		{"escaped in trace", "type: regex\ntarget: trace\n---\n\\\\\"Ada\\\\\"", "say \"Ada\"", "say Ada"},
		{"count in trace", "type: regex\nmatch: count:2\ntarget: trace\n---\ntool_use\"", "call A {}\ncall B {}", "call A {}"},
		{"mock called", "type: regex\ntarget: mock_calls\n---\n\"tool\":\"mcp__mail__send\",\"input\":.*Ada", `call mcp__mail__send {"to": "Ada"}`, `call mcp__mail__send {"to": "Bob"}`},
		{"mock called by its short name", "type: regex\ntarget: mock_calls\n---\nAda", `call send {"to": "Ada"}`, `call Read {"to": "Ada"}`},
		{"mock called by another agent", "type: regex\ntarget: mock_calls\n---\nAda", `call mail-send {"to": "Ada"}`, `call post-send {"to": "Ada"}`},
		{"mock not called", "type: regex\nmatch: not_contains\ntarget: mock_calls\n---\n.", `call Read {}`, `call mail_send {}`},
		{"mock called twice", "type: regex\nmatch: count:2\nflags: g\ntarget: mock_calls\n---\nmail__send", "call mail_send {}\ncall mail_send {}", "call mail_send {}"},
		{"answer of a mock", "type: regex\ntarget: mock_calls\n---\n\"output\":\"Sent", `got mail_send "Sent."`, `got mail_send "Refused."`},
		{"tool of a server", "type: tool_used\ntool: mcp__mail__send\n---", "call mail_send {}", "call mail_read {}"},
		{"tool of a server of a plugin", "type: tool_used\ntool: mcp__plugin_greeter_crm__find\nmax: 1\n---", "call mcp__crm__find {}", "call crm_find {}\ncall crm_find {}"},
		{"order of servers", "type: tool_order\nbefore: mcp__plugin_greeter_crm__find\nafter: mcp__mail__send\n---", "call crm-find {}\ncall mcp__mail__send {}", "call mail.send {}\ncall crm/find {}"},
		{"twice in file", "type: regex\nmatch: count:2\ntarget: {source: file, path: out.md}\n---\na", "write out.md aba", "write out.md abab a"},
		{"in file", "type: regex\ntarget: {source: file, path: out.md}\n---\nAda", "write out.md Ada", "write out.md Bob"},
		{"in no file", "type: regex\ntarget: {source: file, path: out.md}\n---\nAda", "write out.md Ada", "write in.md Ada"},
		{"not in file", "type: regex\nmatch: not_contains\ntarget: {source: file, path: out.md}\n---\nAda", "write out.md Bob", "write out.md Ada"},
		{"not in no file", "type: regex\nmatch: not_contains\ntarget: {source: file, path: out.md}\n---\nAda", "write out.md Bob", "say nothing"},
		{"used", "type: tool_used\ntool: Read\n---", "call Read {}", "call Write {}"},
		{"used twice", "type: tool_used\ntool: Read\nmin: 2\n---", "call Read {}\ncall Read {}", "call Read {}"},
		{"at most once", "type: tool_used\ntool: Read\nmax: 1\n---", "call Read {}", "call Read {}\ncall Read {}"},
		{"at least once of once", "type: tool_used\ntool: Read\nmax: 1\n---", "call Read {}", "say x"},
		{"never", "type: tool_used\ntool: Read\nmin: 0\nmax: 0\n---", "call Write {}", "call Read {}"},
		{"input", "type: tool_used\ntool: Bash\ninput_match: '\"command\":\"git (?!push)'\n---", `call Bash {"command": "git log"}`, `call Bash {"command": "git push"}`},
		{"never with input", "type: tool_used\ntool: Bash\ninput_match: push\nmin: 0\nmax: 0\n---", `call Bash {"command": "git log"}`, `call Bash {"command": "git push"}`},
		{"skill", "type: tool_used\ntool: Skill\ninput_match: '\"skill\"\\s*:\\s*\"(?:[\\w-]+:)?greet\"'\n---", "skill greet", "skill other"},
		{"no skill", "type: tool_used\ntool: Skill\nmax: 0\n---", "say x", "skill greet"},
		{"order", "type: tool_order\nbefore: Read\nafter: {tool: Write, input_match: b}\n---", "call Read {}\ncall Write {\"a\":\"b\"}", "call Write {\"a\":\"b\"}\ncall Read {}\ncall Write {\"a\":\"b\"}"},
		{"order of one", "type: tool_order\nbefore: Read\nafter: Write\n---", "call Read {}\ncall Write {}", "call Read {}"},
		{"exists", "type: file_exists\npath: '*.md'\n---", "write out.md x", "write out.txt x"},
		{"exists not", "type: file_exists\npath: '*.md'\nexists: false\n---", "write out.txt x", "write out.md x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			plugin := writePlugin(t, map[string]string{
				"evals/good/prompt.md": "---\nruns: 1\n---\n" + c.passes, "evals/good/graders/g.md": "---\n" + c.grader,
				"evals/bad/prompt.md": "---\nruns: 1\n---\n" + c.fails, "evals/bad/graders/g.md": "---\n" + c.grader,
				"evals/mocks/mail/send.md": "Sent.", ".mcp.json": `{"mcpServers": {"crm": {}}}`,
			})
			res := runnertest.RunFile(t, plugin, eval.Options{}, record.Request{Executor: "agent", Tasks: []string{"good", "bad"}}, acts)
			require.Equal(t, record.Passed, res.Task(t, "good").Verdict, "%+v", res.Trial(t, "good", 1))
			require.Equal(t, record.Failed, res.Task(t, "bad").Verdict, "%+v", res.Trial(t, "bad", 1))
		})
	}
}

// An indicator that the plugin was used counts only if the case has no other grader, and then in both arms.
func TestPluginEvalIndicators(t *testing.T) {
	t.Parallel()
	const used = "---\ntype: tool_used\ntool: Skill\n---\n"
	plugin := writePlugin(t, map[string]string{
		"evals/beside/prompt.md": "say x", "evals/beside/graders/used.md": used, "evals/beside/graders/x.md": "---\ntype: regex\n---\nx",
		"evals/alone/prompt.md": "skill greet", "evals/alone/graders/used.md": used,
		"evals/only/prompt.md": "skill greet\nsay x", "evals/only/graders/x.md": "---\ntype: regex\n---\nx",
		"evals/only/graders/y.md": "---\ntype: regex\narm: with-only\n---\ny",
	})
	res := runnertest.RunFile(t, plugin, eval.Options{}, record.Request{Executor: "agent"}, acts)
	got := map[string]record.Verdict{}
	for _, task := range res.Tasks {
		got[task.ID] = task.Verdict
		require.Len(t, task.Trials, 3, task.ID)
	}
	require.Equal(t, map[string]record.Verdict{
		"beside": "passed", "beside#baseline": "passed", "alone": "passed", "alone#baseline": "failed",
		"only": "passed", "only#baseline": "passed",
	}, got)
	require.InDelta(t, 1, *res.Trial(t, "beside", 1).Score, 1e-9)
}

// Graders of calls do not count if the plugin declares all mocked servers, unless they say that they count in
// both arms.
func TestPluginEvalArms(t *testing.T) {
	t.Parallel()
	const called = "type: regex\ntarget: mock_calls\n---\nfind"
	x := "---\ntype: regex\n---\nx"
	plugin := writePlugin(t, map[string]string{
		".mcp.json":               `{"mcpServers": {"crm": {}}}`,
		"evals/mocks/crm/find.md": "Nobody.",
		"evals/own/prompt.md":     "say x", "evals/own/graders/a.md": "---\n" + called, "evals/own/graders/b.md": x,
		"evals/both/prompt.md": "say x", "evals/both/graders/a.md": "---\narm: both\n" + called, "evals/both/graders/b.md": x,
		"evals/others/prompt.md": "say x", "evals/others/graders/a.md": "---\n" + called, "evals/others/graders/b.md": x,
		"evals/others/mocks/mail/send.md": "Sent.",
		"evals/never/prompt.md":           "skill greet", "evals/never/graders/a.md": "---\ntype: tool_used\ntool: Skill\nmin: 0\nmax: 0\narm: both\n---",
		"evals/weights/prompt.md": "say x", "evals/weights/graders/a.md": "---\ntype: regex\nweight: 3\n---\nx", "evals/weights/graders/b.md": "---\ntype: regex\n---\ny",
	})
	res := runnertest.RunFile(t, plugin, eval.Options{}, record.Request{Executor: "agent", Trials: 1}, acts)
	got := map[string]string{}
	for _, task := range res.Tasks {
		got[task.ID] = fmt.Sprintf("%s %.2f", task.Verdict, *task.Trials[0].Score)
	}
	require.Equal(t, map[string]string{
		"own": "passed 1.00", "own#baseline": "passed 1.00", "both": "failed 0.50", "both#baseline": "failed 0.50",
		"others": "failed 0.50", "others#baseline": "failed 0.50", "never": "failed 0.00", "never#baseline": "passed 1.00",
		"weights": "failed 0.75", "weights#baseline": "failed 0.75",
	}, got)
}

// A case has the skills of the plugins that it names, a model and a number of runs of its own, and copies of
// its folders, which do not count as created.
func TestPluginEvalCases(t *testing.T) {
	t.Parallel()
	x := "---\ntype: regex\n---\nx"
	plugin := writePlugin(t, map[string]string{
		"other/plugin.json": `{"name": "other"}`, "other/skills/wave/SKILL.md": "---\nname: wave\ndescription: Waves.\n---\n",
		"other/commands/wave.md": "Wave.",
		"evals/plain/prompt.md":  "---\nmodel: small\n---\nsay x", "evals/plain/graders/x.md": x,
		"evals/plugged/prompt.md": "---\nmodel: large\nruns: 1\nplugins: [../../other, ../..]\n---\nsay x", "evals/plugged/graders/x.md": x,
		"evals/replaced/prompt.md": "---\nmodel: large\nruns: 1\nplugins: [../../other]\n---\nsay x", "evals/replaced/graders/x.md": x,
		"evals/dirs/prompt.md": "---\nmodel: large\nruns: 2\n---\nwrite made.md x",
		"evals/dirs/case.yaml": "schema_version: '1.1'\nname: dirs\ncontext: {add_dirs: [data]}\n" +
			"graders: [{name: c, type: regex, pattern: ^made.md$, target: files}, {name: d, type: regex, pattern: Ada, target: {source: file, path: data/in/a.txt}}]\n",
		"evals/dirs/data/in/a.txt": "Ada",
	})
	var mu sync.Mutex
	skills := map[string]string{}
	res := runnertest.RunFile(t, plugin, eval.Options{Executor: "agent"}, record.Request{Executor: "agent"}, func(ctx context.Context, trial *executor.Trial) (string, error) {
		var names []string
		for _, dir := range trial.Task.Skills {
			names = append(names, filepath.Base(dir))
		}
		mu.Lock()
		skills[trial.TaskID] = strings.Join(names, "+")
		mu.Unlock()
		return acts(ctx, trial)
	})
	got := map[string]string{}
	for _, task := range res.Tasks {
		got[task.ID] = fmt.Sprintf("%s %d", task.Verdict, len(task.Trials))
	}
	require.Equal(t, map[string]string{
		"plain": "passed 3", "plain#baseline": "passed 3", "plugged": "passed 1", "plugged#baseline": "passed 1",
		"replaced": "passed 1", "replaced#baseline": "passed 1", "dirs": "passed 2", "dirs#baseline": "passed 2",
	}, got)
	require.Equal(t, map[string]string{
		"plain": "greet", "plain#baseline": "", "plugged": "wave+greet", "plugged#baseline": "",
		"replaced": "wave", "replaced#baseline": "", "dirs": "greet", "dirs#baseline": "",
	}, skills)
}

// Judges see what the focus names in place of the answer: of a long transcript, its ends.
func TestPluginEvalFocus(t *testing.T) {
	var mu sync.Mutex
	shown := map[string]string{} // the output, by the criterion
	judge := runnertest.NewModel(t, func(a runnertest.Asked) runnertest.Answer {
		_, output, _ := strings.Cut(a.Prompt, "<<<BEGIN output ")
		_, output, _ = strings.Cut(output, ">>>\n")
		output, _, _ = strings.Cut(output, "\n<<<END output")
		_, criterion, _ := strings.Cut(a.Prompt, "focus=")
		mu.Lock()
		shown[strings.Fields(criterion)[0]] = output
		mu.Unlock()
		return runnertest.Answer{Tool: "submit_marks", Arguments: map[string]any{"marks": []map[string]any{{"number": 1, "passed": true, "evidence": "x"}}}}
	})
	t.Setenv("OPENAI_BASE_URL", judge.URL)
	t.Setenv("OPENAI_API_KEY", "x")
	graders := "graders:\n"
	for _, focus := range []string{"last_message", "files", "trace", "mock_calls"} {
		graders += fmt.Sprintf("  - {name: %[1]s, type: llm, criteria: focus=%[1]s is good., focus: %[1]s, arm: both}\n", focus)
	}
	prompt := "write out.md x\ncall mail_send {\"to\": \"Ada\"}\n" + strings.Repeat("note thinking\n", 30) + "say done"
	plugin := writePlugin(t, map[string]string{
		"evals/a/prompt.md": "---\nruns: 1\n---\n" + prompt, "evals/a/case.yaml": "schema_version: '1.1'\nname: a\n" + graders,
		"evals/mocks/mail/send.md": "Sent.",
	})
	res := runnertest.RunFile(t, plugin, eval.Options{JudgeModel: "gpt-5"}, record.Request{Executor: "agent"}, acts)
	require.Equal(t, record.Passed, res.Task(t, "a").Verdict, "%+v", res.Trial(t, "a", 1))
	note := `{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"thinking"}]}}` + "\n"
	require.Equal(t, map[string]string{
		"last_message": "done", "files": "out.md",
		"mock_calls": `{"tool":"mcp__mail__send","input":{"to":"Ada"},"output":null}`,
		"trace": `{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","name":"mail_send","input":{"to":"Ada"}}]}}` + "\n" +
			strings.Repeat(note, 22) + `{"type":"result","result":"done"}`,
	}, shown)
}

// Two votes of three pass. Of the votes about an answer, the judge passes as many as it says.
func TestPluginEvalVotes(t *testing.T) {
	var mu sync.Mutex
	asked := map[int]int{} // by the number in the answer
	judge := runnertest.NewModel(t, func(a runnertest.Asked) runnertest.Answer {
		mu.Lock()
		defer mu.Unlock()
		var passes int
		_, after, _ := strings.Cut(a.Prompt, "votes=")
		if _, err := fmt.Sscan(after[:1], &passes); err != nil {
			return runnertest.Answer{Status: http.StatusBadRequest}
		}
		asked[passes]++
		return runnertest.Answer{Tool: "submit_marks", Arguments: map[string]any{"marks": []map[string]any{
			{"number": 1, "passed": asked[passes] <= passes, "evidence": "the answer"},
		}}}
	})
	t.Setenv("OPENAI_BASE_URL", judge.URL)
	t.Setenv("OPENAI_API_KEY", "x")
	files := map[string]string{}
	for n := range 4 {
		dir := fmt.Sprintf("evals/votes-%d/", n)
		files[dir+"prompt.md"] = "---\nruns: 1\n---\nGreet Ada."
		files[dir+"graders/polite.md"] = "---\ntype: llm\n---\nThe greeting is polite."
	}
	res := runnertest.RunFile(t, writePlugin(t, files), eval.Options{JudgeModel: "gpt-5"}, record.Request{Executor: "agent"},
		func(_ context.Context, trial *executor.Trial) (string, error) {
			if !runnertest.Skilled(trial) {
				return "votes=0", nil
			}
			return strings.Replace(trial.Task.ID, "votes-", "votes=", 1), nil
		})
	for n, want := range []record.Verdict{record.Failed, record.Failed, record.Passed, record.Passed} {
		task := res.Task(t, fmt.Sprintf("votes-%d", n))
		require.Equal(t, want, task.Verdict, "%+v", task.Trials[0])
	}
	require.Equal(t, map[int]int{0: 3 + 4*3, 1: 3, 2: 3, 3: 3}, asked)
}

// The scaffold script prepares the workspace, variables reach the agent, and a case that does not load
// is an error beside the others.
func TestPluginEvalContext(t *testing.T) {
	t.Parallel()
	plugin := writePlugin(t, map[string]string{
		"evals/ready/prompt.md": "---\nruns: 1\nenv: {EVAL_NAME: Ada}\n---\ncheck",
		"evals/ready/case.yaml": "schema_version: '1.1'\nname: ready\ncontext: {scaffold_script: scaffold.sh}\n" +
			"graders: [{name: g, type: regex, pattern: ^it's Ada$}, {name: f, type: file_exists, path: in.txt, exists: false}]\n",
		"evals/ready/scaffold.sh": "#!/bin/sh\necho \"it's\" >in.txt\n",
		"evals/broken/prompt.md":  "---\nruns: 1\ntag: x\n---\nsay x", "evals/broken/graders/g.md": "---\ntype: regex\n---\nx",
	})
	res := runnertest.RunFile(t, plugin, eval.Options{}, record.Request{Executor: "agent", Tasks: []string{"ready", "broken"}},
		func(_ context.Context, trial *executor.Trial) (string, error) {
			dir, err := trial.Dir()
			if err != nil {
				return "", err
			}
			data, err := os.ReadFile(filepath.Join(dir, "in.txt"))
			name := ""
			for _, v := range trial.Env {
				if after, ok := strings.CutPrefix(v, "EVAL_NAME="); ok {
					name = after
				}
			}
			return strings.TrimSpace(string(data)) + " " + name, err
		})
	require.Equal(t, record.Passed, res.Task(t, "ready").Verdict, res.Trial(t, "ready", 1).Error)
	require.Equal(t, record.Verdict("error"), res.Task(t, "broken").Verdict)
	require.Contains(t, res.Trial(t, "broken", 1).Error, "unknown key tag")
}
