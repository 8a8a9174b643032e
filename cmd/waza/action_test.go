//go:build unix

package main_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// actionDir is the directory of the GitHub Action.
const actionDir = repositoryRoot + "/.github/actions/waza"

// action is the part of action.yml that a runner reads.
type action struct {
	Inputs map[string]struct {
		Description string
		Default     string
		Required    bool
	}
	Outputs map[string]struct{ Description, Value string }
	Runs    struct {
		Using string
		Steps []actionStep
	}
}

type actionStep struct {
	ID, Name, If, Uses, Shell, Run string
	Env                            map[string]string
}

func readAction(t *testing.T) *action {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(actionDir, "action.yml"))
	require.NoError(t, err)
	var a action
	require.NoError(t, yaml.Unmarshal(text, &a))
	return &a
}

// github simulates the runner of a workflow, its repository and the API of GitHub.
type github struct {
	t    *testing.T
	dir  string // parent directory of the ones below
	repo string
	api  *httptest.Server

	mu        sync.Mutex // guards the fields below
	comments  []string
	calls     []string
	forbidden bool
}

const actionToken = "ghs_0123456789secret"

func newGitHub(t *testing.T) *github {
	t.Helper()
	for _, program := range []string{"git", "bash", "jq", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	g := newCheckout(t)
	g.api = httptest.NewServer(g)
	t.Cleanup(g.api.Close)
	return g
}

// newCheckout makes an empty repository without an API.
func newCheckout(t *testing.T) *github {
	t.Helper()
	g := &github{t: t, dir: t.TempDir()}
	g.repo = filepath.Join(g.dir, "repo")
	require.NoError(t, os.MkdirAll(g.repo, 0o755))
	g.git("init", "--quiet", "--initial-branch", "main")
	return g
}

func (g *github) git(args ...string) string {
	g.t.Helper()
	cmd := exec.Command("git", append([]string{
		"-C", g.repo, "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false",
	},
		args...)...)
	out, err := cmd.CombinedOutput()
	require.NoError(g.t, err, "git %v: %s", args, out)
	return strings.TrimSpace(string(out))
}

// commit commits files and returns the commit.
func (g *github) commit(files map[string]string) string {
	g.t.Helper()
	for name, text := range files {
		path := filepath.Join(g.repo, name)
		require.NoError(g.t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(g.t, os.WriteFile(path, []byte(text), 0o755))
	}
	g.git("add", "-A")
	g.git("commit", "--quiet", "-m", "a change")
	return g.git("rev-parse", "HEAD")
}

// ServeHTTP serves the API of comments.
func (g *github) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if strings.HasPrefix(r.URL.Path, "/o/r.git/") {
		g.serveGit(w, r)
		return
	}
	g.calls = append(g.calls, r.Method+" "+r.URL.Path)
	if r.Header.Get("Authorization") != "Bearer "+actionToken || g.forbidden && r.Method != http.MethodGet {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	var body struct{ Body string }
	if r.Method != http.MethodGet && json.NewDecoder(r.Body).Decode(&body) != nil {
		w.WriteHeader(http.StatusUnprocessableEntity)
		return
	}
	const comments = "/repos/o/r/issues/7/comments"
	switch call := r.Method + " " + r.URL.Path; {
	case call == "GET "+comments:
		list := []map[string]any{{"id": 1, "body": nil}, {"id": 2, "body": "LGTM"}}
		for i, text := range g.comments {
			list = append(list, map[string]any{"id": 100 + i, "body": text})
		}
		_ = json.NewEncoder(w).Encode(list)
	case call == "POST "+comments:
		g.comments = append(g.comments, body.Body)
		w.WriteHeader(http.StatusCreated)
	case call == "PATCH /repos/o/r/issues/comments/100" && len(g.comments) == 1:
		g.comments[0] = body.Body
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// serveGit serves the repository as a private one.
func (g *github) serveGit(w http.ResponseWriter, r *http.Request) {
	headers := r.Header.Values("Authorization")
	user, token, _ := r.BasicAuth()
	if len(headers) != 1 || user != "x-access-token" || token != actionToken {
		w.Header().Set("WWW-Authenticate", "Basic")
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	r.URL.Path = strings.TrimPrefix(r.URL.Path, "/o/r.git")
	programs, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		g.t.Error(err)
	}
	(&cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(programs)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + filepath.Join(g.repo, ".git"), "GIT_HTTP_EXPORT_ALL=1"},
	}).ServeHTTP(w, r)
}

// checked is the outcome of a check by the action.
type checked struct {
	failed                bool // a step failed
	log, summary, comment string
	outputs               map[string]string
	results               string
}

var expression = regexp.MustCompile(`\$\{\{ *([^}]+?) *\}\}`)

// check runs the steps of the action for a pull request in order, until one fails.
func (g *github) check(base string, with map[string]string) *checked {
	g.t.Helper()
	a := readAction(g.t)
	dir, err := os.MkdirTemp(g.dir, "job")
	require.NoError(g.t, err)
	c := &checked{outputs: map[string]string{}}
	values := map[string]string{
		"github.event.pull_request.base.sha": base, "github.event.pull_request.number": "7", "github.token": actionToken,
	}
	expand := func(text string) string {
		return expression.ReplaceAllStringFunc(text, func(e string) string {
			name := expression.FindStringSubmatch(e)[1]
			value, ok := values[name]
			require.True(g.t, ok, "unknown expression %s", e)
			return value
		})
	}
	for name, input := range a.Inputs {
		require.NotEmpty(g.t, input.Description, name)
		values["inputs."+name] = expand(input.Default)
	}
	for name, value := range with {
		require.Contains(g.t, a.Inputs, name)
		values["inputs."+name] = value
	}
	path := os.Getenv("PATH")
	for i, step := range a.Runs.Steps {
		if step.Run == "" || step.If != "" && !holds(g.t, step.If, values) {
			continue
		}
		require.Equal(g.t, "bash", step.Shell)
		require.NotContains(g.t, step.Run, "${{", "no text of a pull request is code")
		actionPath, err := filepath.Abs(actionDir)
		require.NoError(g.t, err)
		file := func(name string) string { return filepath.Join(dir, fmt.Sprintf("%s%d", name, i)) }
		for _, name := range []string{"output", "path", "summary"} {
			require.NoError(g.t, os.WriteFile(file(name), nil, 0o600))
		}
		script := file("step") + ".sh"
		require.NoError(g.t, os.WriteFile(script, []byte(step.Run), 0o600))
		cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", script)
		cmd.Dir = g.repo
		cmd.Env = []string{
			"PATH=" + path, "HOME=" + g.dir, "RUNNER_TEMP=" + dir, "WAZA_STATE=" + filepath.Join(dir, "state"),
			"GITHUB_ACTIONS=true", "GITHUB_ACTION_PATH=" + actionPath, "GITHUB_OUTPUT=" + file("output"), "GITHUB_PATH=" + file("path"),
			"GITHUB_STEP_SUMMARY=" + file("summary"), "GITHUB_API_URL=" + g.api.URL, "GITHUB_SERVER_URL=" + g.api.URL,
			"GITHUB_REPOSITORY=o/r", "GITHUB_WORKFLOW=Evals", "GITHUB_JOB=evals",
		}
		for name, value := range step.Env {
			cmd.Env = append(cmd.Env, name+"="+expand(value))
		}
		out, err := cmd.CombinedOutput()
		c.log += string(out)
		c.summary += readText(g.t, file("summary"))
		for line := range strings.Lines(readText(g.t, file("path"))) {
			path = strings.TrimSpace(line) + ":" + path
		}
		for line := range strings.Lines(readText(g.t, file("output"))) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			values["steps."+step.ID+".outputs."+name] = value
		}
		if err != nil {
			c.failed = true
			break
		}
	}
	for name, output := range a.Outputs {
		require.NotEmpty(g.t, output.Description, name)
		c.outputs[name] = expand(output.Value)
	}
	c.results = c.outputs["results"]
	c.comment = readText(g.t, c.outputs["comment"])
	require.NotContains(g.t, c.log+c.summary, actionToken)
	return c
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// holds evaluates conditions of the action: terms joined by &&, each a value or a comparison
// with a text. Outputs of steps that did not run are empty.
func holds(t *testing.T, condition string, values map[string]string) bool {
	t.Helper()
	for term := range strings.SplitSeq(condition, "&&") {
		term = strings.TrimSpace(term)
		name, text, equal := strings.Cut(term, " == ")
		different := false
		if !equal {
			name, text, different = strings.Cut(term, " != ")
		}
		value, known := values[name]
		require.True(t, known || strings.HasPrefix(name, "steps."), "unknown value %s", name)
		same := value == strings.Trim(text, "'")
		if equal && !same || different && same || !equal && !different && value == "" {
			return false
		}
	}
	return true
}

// actionSuite returns a suite whose agent is a script of the repository.
func actionSuite(agent string) map[string]string {
	return map[string]string{
		"evals/demo/eval.yaml": "name: demo\nconfig:\n  executor: command\n  sandbox: off\n  trials_per_task: 1\n  command: [sh, " +
			"./agent.sh]\ntasks: [\"tasks/*.yaml\"]\n" +
			"graders:\n  - {type: text, name: says hello, config: {contains: [hello]}}\n",
		"evals/demo/agent.sh":         agent,
		"evals/demo/tasks/greet.yaml": "id: greet\ngolden: true\ninputs: {prompt: greet}\n",
		"evals/demo/tasks/wave.yaml":  "id: wave\ninputs: {prompt: wave}\n",
	}
}

const (
	goodAgent = "echo hello\n"
	// badAgent greets in one of two tasks.
	badAgent = "case \"$*$(cat)\" in *wave*) echo 'bye ::error::x </details> @team';; *) echo hello;; esac\n"
)

func TestActionOfAPullRequest(t *testing.T) {
	t.Parallel()
	g := newGitHub(t)
	with := func(more ...string) map[string]string {
		m := map[string]string{"waza": wazaProgram(t), "suites": "evals", "max-regression-pct": "0"}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	base := g.commit(actionSuite(goodAgent))

	// A pull request that makes a task fail.
	g.git("checkout", "--quiet", "-b", "change")
	g.commit(map[string]string{"evals/demo/agent.sh": badAgent})
	c := g.check(base, with())
	require.True(t, c.failed, c.log)
	require.Equal(t, "false", c.outputs["passed"])
	require.Contains(t, c.log, "::error title=waza: regression::the share of passed tasks fell by 50 points, from "+
		"100 %25 to 50 %25; the limit is 0")
	require.NotRegexp(t, `(?m)^::error::x`, c.log, "what an agent says is no command")
	require.Len(t, g.comments, 1)
	require.Contains(t, g.comments[0], "<!-- waza Evals/evals -->\n")
	require.Contains(t, g.comments[0], "Against the base")
	require.Contains(t, g.comments[0], "B breaks a policy: the share of passed tasks fell by 50 points")
	require.Contains(t, c.summary, "B breaks a policy")
	require.True(t, strings.HasSuffix(g.comments[0], c.comment))

	var suites junitFile
	require.NoError(t, xml.Unmarshal([]byte(readText(t, only(t, c.outputs["junit"]))), &suites))
	require.Len(t, suites.Suites, 2)
	require.InDelta(t, 1, suites.Suites[0].Failures+suites.Suites[1].Failures, 0)
	var sarif struct {
		Version string
		Runs    []struct{ Results []struct{ Locations []any } }
	}
	require.NoError(t, json.Unmarshal([]byte(readText(t, only(t, c.outputs["sarif"]+"/*.sarif"))), &sarif))
	require.Equal(t, "2.1.0", sarif.Version)
	require.Len(t, sarif.Runs[0].Results, 1)
	require.NotEmpty(t, sarif.Runs[0].Results[0].Locations)
	for _, name := range []string{"result.jsonl", "results.json", "report.html", "compare.json"} {
		require.FileExists(t, filepath.Join(c.results, "1", name))
	}
	require.Equal(t, 1, strings.Count(g.git("worktree", "list"), "\n")+1, "the base is cleaned up")

	// The next push fixes it: the check passes, and the comment is replaced.
	g.git("clean", "-fdq")
	g.commit(map[string]string{"evals/demo/agent.sh": "echo hello there\n"})
	c = g.check(base, with())
	require.False(t, c.failed, c.log)
	require.Equal(t, "true", c.outputs["passed"])
	require.Len(t, g.comments, 1)
	require.Contains(t, g.comments[0], "B keeps the policies")
	require.Contains(t, g.calls[len(g.calls)-1], "PATCH")

	// The golden task fails, which needs no threshold.
	g.git("clean", "-fdq")
	g.commit(map[string]string{"evals/demo/agent.sh": "case \"$*$(cat)\" in *greet*) echo bye;; *) echo hello;; esac\n"})
	c = g.check(base, with("max-regression-pct", "", "comment", "false"))
	require.True(t, c.failed, c.log)
	require.Contains(t, c.log, `golden task "greet" did not pass: failed`)
	require.Contains(t, g.comments[0], "B keeps the policies", "it was not to comment")
	c = g.check(base, with("max-regression-pct", "", "golden-must-pass", "false"))
	require.True(t, c.failed, "one trial shows no regression, so a rule of the gate decides: %s", c.log)
	require.Contains(t, c.log, "a rule of the gate, not a significance result")
	c = g.check(base, with("fail-on", "failure", "golden-must-pass", "false", "max-regression-pct", ""))
	require.True(t, c.failed)
	c = g.check(base, with("fail-on", "never"))
	require.False(t, c.failed, c.log)
}

// A pull request from a fork has a read-only token.
func TestActionOfAFork(t *testing.T) {
	t.Parallel()
	g := newGitHub(t)
	base := g.commit(actionSuite(goodAgent))
	g.forbidden = true
	g.commit(map[string]string{"evals/demo/agent.sh": badAgent})
	c := g.check(base, map[string]string{"waza": wazaProgram(t), "suites": "evals/demo/eval.yaml", "max-regression-pct": "0"})
	require.True(t, c.failed)
	require.Empty(t, g.comments)
	require.Contains(t, c.log, "::notice title=waza::the token cannot comment, as in pull requests from forks")
	require.Contains(t, c.summary, "B breaks a policy")
}

// Without a base, in a push for example, tasks must pass.
func TestActionWithoutBase(t *testing.T) {
	t.Parallel()
	g := newGitHub(t)
	g.commit(actionSuite(badAgent))
	c := g.check("", map[string]string{"waza": wazaProgram(t), "comment": "false"})
	require.True(t, c.failed, c.log)
	require.NotContains(t, c.summary, "Against the base")
	c = g.check("0123456789012345678901234567890123456789", map[string]string{"waza": wazaProgram(t), "comment": "false"})
	require.True(t, c.failed, c.log)
	require.Contains(t, c.log, "::warning title=waza::cannot check out the base 0123456789012345678901234567890123456789")
	g.git("clean", "-fdq")
	base := g.commit(map[string]string{"evals/demo/agent.sh": goodAgent})
	g.commit(map[string]string{"evals/demo/eval.yaml": "name: [\n"})
	c = g.check(base, map[string]string{"waza": wazaProgram(t), "suites": "evals/demo/eval.yaml", "comment": "false"})
	require.True(t, c.failed, "an invalid suite fails the check: %s", c.log)
}

// The action finds and compares suites of other tools.
func TestActionOfAnotherFormat(t *testing.T) {
	t.Parallel()
	g := newGitHub(t)
	config := func(want string) map[string]string {
		return map[string]string{
			".waza.yaml": "defaults:\n  trials: 1\n",
			"promptfooconfig.yaml": "prompts: ['Say {{word}}']\nproviders: ['exec: sh agent.sh']\ntests:\n" +
				"  - {vars: {word: hello}, assert: [{type: contains, value: " + want + "}]}\n",
			"agent.sh": "echo hello\n",
		}
	}
	base := g.commit(config("hello"))
	g.commit(config("bye"))
	c := g.check(base, map[string]string{"waza": wazaProgram(t), "max-regression-pct": "0"})
	require.True(t, c.failed, c.log)
	require.Contains(t, c.log, "waza run promptfooconfig.yaml")
	require.Contains(t, g.comments[0], "B breaks a policy: the share of passed tasks fell by 100 points")
}

// A checkout without credentials could not fetch the base of a private repository.
func TestActionFetchesAPrivateBase(t *testing.T) {
	t.Parallel()
	g := newGitHub(t)
	base := g.commit(actionSuite(goodAgent))
	head := g.commit(map[string]string{"evals/demo/agent.sh": badAgent})
	g.git("config", "uploadpack.allowAnySHA1InWant", "true")
	hosted := g.repo
	for _, header := range []string{"", "AUTHORIZATION: basic c3RhbGU="} { // also without, and with kept credentials
		checkout := newCheckout(t)
		checkout.api = g.api
		checkout.git("fetch", "--quiet", "--depth=1", "file://"+hosted, head)
		checkout.git("checkout", "--quiet", head)
		checkout.git("remote", "add", "origin", g.api.URL+"/o/r.git")
		if header != "" {
			checkout.git("config", "http."+g.api.URL+"/.extraheader", header)
		}
		with := map[string]string{"waza": wazaProgram(t), "suites": "evals", "comment": "false", "max-regression-pct": "0"}
		c := checkout.check(base, with)
		require.True(t, c.failed, c.log)
		require.Contains(t, c.summary, "Against the base", c.log)
		require.NotContains(t, checkout.git("config", "--list"), "x-access-token")
	}
	elsewhere := newCheckout(t)
	elsewhere.api = g.api
	elsewhere.git("remote", "add", "origin", g.api.URL+"/o/r.git")
	elsewhere.commit(actionSuite(goodAgent))
	c := elsewhere.check(base, map[string]string{"waza": wazaProgram(t), "suites": "evals", "comment": "false", "token": "none"})
	require.Contains(t, c.log, "::warning title=waza::cannot fetch the base "+base+"; the input token must be able to read the repository")
	require.Contains(t, c.log, "::warning title=waza::cannot check out the base")
}

// The cache of the action never hit, because its paths contained "..".
func TestActionCachesTheProgram(t *testing.T) {
	t.Parallel()
	newGitHub(t) // skips without its programs
	actionPath, err := filepath.Abs(actionDir)
	require.NoError(t, err)
	temp := t.TempDir()
	run := func(command string) (string, string) {
		t.Helper()
		output := filepath.Join(t.TempDir(), "output")
		cmd := exec.Command(filepath.Join(actionPath, "waza.sh"), command)
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "RUNNER_TEMP=" + temp, "GITHUB_ACTION_PATH=" + actionPath + "/../waza",
			"GITHUB_OUTPUT=" + output, "GITHUB_PATH=" + output,
		}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return readText(t, output), string(out)
	}
	first, _ := run("sources")
	again, _ := run("sources")
	require.Equal(t, first, again)
	require.Regexp(t, `(?m)^digest=[0-9a-f]{64}$`, first)
	require.NotContains(t, first, "..")
	values := map[string]string{}
	for line := range strings.Lines(first) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		values[name] = value
	}
	require.FileExists(t, filepath.Join(values["root"], "go.mod"))

	// A restored program is not built again.
	require.NoError(t, os.MkdirAll(values["program"], 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(values["program"], "waza"), []byte("#!/bin/sh\necho restored\n"), 0o755))
	path, out := run("install")
	require.Equal(t, "restored\n", out)
	require.Equal(t, values["program"]+"\n", path)

	text := readText(t, filepath.Join(actionDir, "action.yml"))
	require.NotContains(t, text, "..")
}

type junitFile struct {
	Suites []struct {
		Tests    float64 `xml:"tests,attr"`
		Failures float64 `xml:"failures,attr"`
	} `xml:"testsuite"`
}

// only returns the single file that matches a glob.
func only(t *testing.T, glob string) string {
	t.Helper()
	files, err := filepath.Glob(glob)
	require.NoError(t, err)
	require.Len(t, files, 1, glob)
	return files[0]
}

var pinned = regexp.MustCompile(`^(\./|[^@]+@[0-9a-f]{40}$)`)

// Actions of other owners are pinned to a commit.
func TestActionsArePinned(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(repositoryRoot + "/.github/*/*.yml")
	require.NoError(t, err)
	nested, err := filepath.Glob(repositoryRoot + "/.github/*/*/*.yml")
	require.NoError(t, err)
	files = append(files, nested...)
	require.Len(t, files, 2)
	uses := regexp.MustCompile(`(?m)^\s*(?:- )?uses: (\S+)`)
	count := 0
	for _, file := range files {
		for _, m := range uses.FindAllStringSubmatch(readText(t, file), -1) {
			require.Regexp(t, pinned, m[1], file)
			count++
		}
	}
	require.Equal(t, 6, count)
}

// wazaProgram returns the program that TestMain puts on the path.
func wazaProgram(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("waza")
	require.NoError(t, err)
	return path
}
