package house_test

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rooms are the packages of eval, runner and rpc: what each is for. A new folder
// needs a line here and one in CONTRIBUTING.md.
var rooms = map[string]string{
	"eval":             "what a suite says",
	"eval/assist":      "completion, hover and links in suites",
	"eval/dataset":     "rows of CSV and JSON Lines files",
	"eval/decode":      "YAML into Go values, with positions and findings",
	"eval/discover":    "finds suites; .gitignore and globs",
	"eval/fields":      "struct tags of options and parameters",
	"eval/files":       "opens and replaces files, within a directory and a limit",
	"eval/jsonwalk":    "walks over JSON",
	"eval/project":     "what .waza.yaml says",
	"eval/reach":       "which files a suite may read, and where they are",
	"eval/scene":       "what surrounds an agent besides files: repositories, a user who replies, mocks of MCP servers, hooks",
	"eval/schemafiles": "the JSON Schemas themselves",
	"eval/schema":      "JSON Schemas of suites and tasks",
	"eval/skill":       "reads SKILL.md files and finds skills",
	"eval/template":    "variables in texts of suites",
	"eval/text":        "shortens texts, counts nouns",
	"eval/relocate":    "copies values with the paths in them changed",
	"eval/registry":    "finds executors and graders by name",

	"runner":               "prepares, starts and follows runs",
	"runner/cache":         "reuses unchanged trials of earlier runs",
	"runner/catalog":       "finds, lists, cleans up and deletes runs",
	"runner/checkout":      "a commit of a git repository into a directory",
	"runner/compare":       "what changed between runs",
	"runner/figure":        "numbers as people read them",
	"runner/history":       "how tasks fared over runs",
	"runner/importing":     "results of other tools as runs",
	"runner/journal":       "the durable record of runs",
	"runner/judging":       "what judges are asked after the trials",
	"runner/mcpmock":       "MCP servers that waza plays for agents",
	"runner/mcptools":      "tools for agents whose functions are in the waza process",
	"runner/pause":         "waits for a time or the end of a context",
	"runner/plan":          "a suite to tasks and trials",
	"runner/propose":       "asks a model for better system prompts",
	"runner/proc":          "processes and their descendants",
	"runner/proc/proctest": "programs of tests beside trials",
	"runner/provider":      "model APIs",
	"runner/readiness":     "whether a skill is ready for use",
	"runner/record":        "the nouns: Run, Task, Trial, Event, Verdict, Summary",
	"runner/regrade":       "grades recorded trials again, takes reviews",
	"runner/replay":        "events to the state of a run",
	"runner/responder":     "a model that plays the user of an agent",
	"runner/routing":       "how messages find clients",
	"runner/secrets":       "recognizes keys and passwords, removes them from texts",
	"runner/stats":         "intervals, tests, pass@k, pass^k",
	"runner/tally":         "verdicts to numbers",
	"runner/telemetry":     "traces and metrics of runs",
	"runner/tokens":        "counts tokens of texts, and limits of .waza.yaml on them",
	"runner/trial":         "does one trial",
	"runner/watch":         "runs again when files change",
	"runner/workspace":     "the directory of a trial",
	"runner/runnertest":    "helps to test runs",

	"runner/fleet":           "trials done by workers elsewhere: messages, and the owner of a run",
	"runner/fleet/address":   "which servers the trials of a run travel over, with login and team",
	"runner/fleet/worker":    "does the trials of runs whose owners are elsewhere",
	"runner/fleet/bundle":    "files of runs and trials, moved by content",
	"runner/fleet/engine":    "connections to NATS servers, and the one in the process",
	"runner/fleet/fleettest": "NATS servers for tests",
	"runner/fleet/limits":    "rate limits of providers that processes respect together",
	"runner/fleet/offer":     "what machines offer, and what trials need of them",
	"runner/fleet/seal":      "signs orders and checks them",
	"runner/fleet/survey":    "the state of a fleet: workers, orders, runs",

	"runner/executor":         "what does a trial; one package below it per executor",
	"runner/executor/acp":     "agents that speak the Agent Client Protocol",
	"runner/executor/browser": "browser assistants, and how they reach extensions",
	"runner/executor/command": "a program as an agent",
	"runner/executor/mock":    "canned answers",
	"runner/executor/remote":  "agents that connect to waza serve",
	"runner/executor/router":  "messages to clients that the suite describes",
	"runner/executor/model":   "a model with tools",

	"runner/given":             "scores and verdicts that other programs give",
	"runner/grader":            "what scores a trial: the contract and the registry",
	"runner/grader/assertion":  "interpreters of Python and JavaScript for assertions",
	"runner/grader/behavior":   "graders of how an agent worked: tools, skills, turns",
	"runner/grader/builtin":    "the list of graders",
	"runner/grader/gradertest": "helps to test graders",
	"runner/grader/judge":      "graders that ask models",
	"runner/grader/match":      "comparisons that families of graders share",
	"runner/grader/output":     "graders of answers and files",
	"runner/grader/person":     "graders that wait for a person",
	"runner/grader/program":    "graders that run code of the suite",

	"runner/record/recordtest": "finds tasks and trials by id in tests",

	"runner/report":             "runs, comparisons and findings as text, Markdown and JUnit",
	"runner/report/annotations": "comparisons as annotations of GitHub",
	"runner/report/formats":     "the list of formats, and files of them",
	"runner/report/page":        "the HTML page",
	"runner/report/reporttest":  "helps to test reports",
	"runner/report/results":     "results.json, as other tools read it",
	"runner/report/sarif":       "SARIF for code scanning",
	"runner/report/spreadsheet": "CSV, with a row per trial",

	"rpc":          "the JSON-RPC daemon: server, connections, one file per method family",
	"rpc/access":   "compares secrets, delays guesses",
	"rpc/doors":    "methods about the clients of waza serve",
	"rpc/dispatch": "the method table, parameters, error codes",
	"rpc/host":     "the process around a connection",
	"rpc/language": "the language server",
	"rpc/lsp":      "texts, places and findings as language servers speak of them",
	"rpc/mcp":      "tools, resources and prompts for agents, by the Model Context Protocol",
	"rpc/wire":     "bytes in, valid requests out",

	"rpc/gateway/browser":           "the door of browser assistants",
	"rpc/gateway/browser/assistant": "assistants, their sessions and commands, and the loop with tools",
	"rpc/gateway/browser/chromium":  "carries out the tools of browser assistants in Chromium",
	"rpc/gateway/browser/extension": "an extension that connects to a server",

	"rpc/gateway/agents":         "the door of evaluation agents",
	"rpc/gateway/agents/hub":     "gives evaluations to agents",
	"rpc/gateway/agents/client":  "an agent that connects to a server",
	"rpc/gateway/store":          "what the doors remember when the process ends",
	"rpc/gateway/jobs":           "the job stream, JSON-RPC over WebSocket, health and metrics",
	"rpc/gateway/jobs/board":     "the runs of all processes as jobs",
	"rpc/gateway/jobs/dashboard": "the pages for people",
	"rpc/gateway/jobs/token":     "makes and checks the tokens of its clients",
	"rpc/gateway/router":         "the door of the message router",
	"rpc/gateway/router/desktop": "shows notifications to the user",
	"rpc/gateway/door":           "what the WebSocket doors of waza serve share",
	"rpc/gateway/message":        "reads and checks messages of doors",
	"rpc/gateway/doortest":       "helps to test doors",
	"rpc/gateway/echo":           "a door for tests of protocols",
	"rpc/gateway/lease":          "who is connected, who waits and who has which place",
	"rpc/gateway/link":           "how other processes reach the server",
	"rpc/gateway/owned":          "the owners of the server's runs, their queue, and runs to resume",
}

// A new folder says what it is for before anything moves in.
func TestHouseHasTheseRooms(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, file := range goFiles(t) {
		dir := path.Dir(file.path)
		top, _, _ := strings.Cut(dir, "/")
		if !file.isTest() && slices.Contains([]string{"eval", "runner", "rpc"}, top) {
			found[dir] = true
		}
	}
	require.Equal(t, slices.Sorted(maps.Keys(rooms)), slices.Sorted(maps.Keys(found)), "rooms in house_test.go, and the folders that exist")
	contributing, err := os.ReadFile(filepath.Join(repositoryRoot, "CONTRIBUTING.md"))
	require.NoError(t, err)
	for dir, reason := range rooms {
		require.NotEmpty(t, reason, dir)
		require.Contains(t, string(contributing), dir+"/ ", "CONTRIBUTING.md lists all rooms")
	}
}
