package harbor

import (
	"fmt"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// maxSteps limits the steps of a task: each needs a checkpoint.
const maxSteps = 100

// A step is a turn of the agent and the verifier that follows. A task without steps is one step, in the
// directory of the task.
type step struct {
	node   *yaml.Node // with the keys agent and verifier
	name   string     // empty for a task without steps
	dir    string     // relative to the task; empty for a task without steps
	prompt string
	own    *ownVerifier // nil if the verifier shares the environment of the agent
}

// file returns the path of a file of the step, relative to the task.
func (s *step) file(name string) string { return path.Join(s.dir, name) }

// where starts messages about the step; it is empty for a task without steps.
func (s *step) where() string {
	if s.name == "" {
		return ""
	}
	return "step " + s.name + ": "
}

// isMulti reports whether the task has steps.
func (tr *translator) isMulti() bool { return tr.get("steps") != nil }

// readSteps reads the steps and their instructions. There is at least one step.
func (tr *translator) readSteps() {
	list := tr.get("steps")
	if list == nil {
		tr.steps = []step{{node: tr.root}}
	}
	for i, n := range dialect.Items(list) {
		name := dialect.TextOf(decode.Lookup(n, "name"))
		switch {
		case name == "":
			tr.fault(n, "steps[%d] has no name", i)
		case !filepath.IsLocal(name) || name != path.Base(name) || name == ".":
			tr.fault(n, "steps[%d]: the name %q must be the name of a folder in steps", i, text.Clip(name, 80))
		case slices.ContainsFunc(tr.steps, func(s step) bool { return s.name == name }):
			tr.fault(n, "steps[%d]: an earlier step has the name %q", i, text.Clip(name, 80))
		case len(tr.steps) == maxSteps:
			tr.fault(n, "the task has more than %d steps", maxSteps)
			return
		default:
			tr.steps = append(tr.steps, step{node: n, name: name, dir: path.Join("steps", name)})
		}
	}
	if len(tr.steps) == 0 {
		tr.fault(list, "steps has no step")
		tr.steps = []step{{node: list}}
		return
	}
	if trajectory := tr.steps[0].file("trajectory.json"); tr.exists(trajectory) {
		tr.warn(nil, "%s has no effect: the agent starts without the conversation in it", trajectory)
	}
	for i := range tr.steps {
		s := &tr.steps[i]
		if s.prompt = withoutCanary(tr.readText(s.file("instruction.md"))); s.prompt == "" {
			tr.block(s.node, "%s is missing or empty", s.file("instruction.md"))
		}
	}
}

// canary matches a line that marks a file of a benchmark, so that it can be found in training data.
var canary = text.Pattern(`(?i)^(?:<!--.*canary.*-->|#.*canary.*)$`)

// withoutCanary returns an instruction without such lines at its start, and without the empty ones after them,
// as Harbor's agents get it.
func withoutCanary(prompt string) string {
	rest := prompt
	for {
		line, after, _ := strings.Cut(rest, "\n")
		if !canary().MatchString(strings.TrimSpace(line)) {
			break
		}
		rest = after
	}
	if len(rest) == len(prompt) {
		return prompt
	}
	for {
		line, after, found := strings.Cut(rest, "\n")
		if !found || strings.TrimSpace(line) != "" {
			return rest
		}
		rest = after
	}
}

// addSteps sets the prompts, and the verifiers that follow them. The verifiers of steps are graders of
// checkpoints, which say nothing about the trial, because its reward combines theirs.
func (tr *translator) addSteps() {
	tr.inputs.Set("prompt", dialect.Scalar(nil, tr.steps[0].prompt))
	tr.inputs.Set("setup", tr.setupOf(&tr.steps[0]))
	if !tr.isMulti() {
		if g := tr.verifier(&tr.steps[0]); g != nil {
			tr.task.Set("graders", dialect.List(nil, g))
		}
		tr.addSolution()
		return
	}
	prompts, points := dialect.List(nil), dialect.List(nil)
	for i := range tr.steps {
		s := &tr.steps[i]
		point := dialect.NewMap(s.node)
		point.Set("after_turn", dialect.Scalar(nil, i+1))
		g := tr.verifier(s)
		if g == nil {
			continue
		}
		point.Set("graders", dialect.List(nil, g))
		if at := tr.keyOf(s, "agent", "timeout_sec"); at != nil {
			point.Set("agent_timeout_seconds", dialect.Scalar(at, tr.agentTimeout(s)))
		}
		if decode.Lookup(s.node, "min_reward") != nil {
			point.Set("on_failure", dialect.Scalar(nil, "finish"))
		}
		if i+1 < len(tr.steps) {
			next := &tr.steps[i+1]
			prompts.Content = append(prompts.Content, dialect.Scalar(nil, next.prompt))
			files := dialect.List(nil)
			for _, entry := range tr.workdirOf(next) {
				tr.addFile(files, entry.from, entry.to)
			}
			if len(files.Content) > 0 {
				point.Set("files", files)
			}
			point.Set("setup", tr.setupOf(next))
		}
		points.Content = append(points.Content, point.Node)
	}
	tr.inputs.Set("follow_up_prompts", prompts)
	tr.inputs.Set("checkpoints", points)
	tr.addCombination()
	tr.addSolution()
}

// workdirOf returns what a step copies into the work folder before its prompt.
func (tr *translator) workdirOf(s *step) []copied {
	from := tr.path(s.file("workdir"))
	if info, err := tr.Files.Stat(from); s.name == "" || err != nil || !info.IsDir() {
		return nil
	}
	return []copied{{from, tr.workdir}}
}

// setupOf returns the commands before a prompt: setup.sh of the folder that the step copies into the work
// folder, and its health check, after the health check of the environment; nil for none.
func (tr *translator) setupOf(s *step) *yaml.Node {
	commands := dialect.List(nil)
	if n := tr.get("environment", "healthcheck"); n != nil && s.dir == tr.steps[0].dir {
		commands.Content = append(commands.Content, tr.healthCheck(n)...)
	}
	if s.name != "" && tr.exists(s.file("workdir/setup.sh")) {
		commands.Content = append(commands.Content, dialect.Scalar(nil, tr.atWorkdir()+"chmod +x setup.sh && ./setup.sh"))
	}
	if n := lookup(s.node, "healthcheck"); n != nil && s.name != "" {
		commands.Content = append(commands.Content, tr.healthCheck(n)...)
	}
	if len(commands.Content) == 0 {
		return nil
	}
	return commands
}

// healthCheck returns the command that repeats a health check until it succeeds.
func (tr *translator) healthCheck(n *yaml.Node) []*yaml.Node {
	command := lookup(n, "command")
	if dialect.TextOf(command) == "" {
		tr.fault(n, "healthcheck.command is missing")
		return nil
	}
	retries := 3
	if r := lookup(n, "retries"); r != nil && (r.ShortTag() != "!!int" || r.Decode(&retries) != nil || retries < 1 || retries > 1000) {
		tr.fault(r, "healthcheck.retries must be between 1 and 1000, got %s", decode.Describe(r))
		return nil
	}
	interval := 0.0
	if at := lookup(n, "interval_sec"); at == nil || at.Decode(&interval) != nil || interval != 0 { // 0 tries again at once
		interval = tr.seconds(at, 5, "healthcheck.interval_sec")
	}
	limit := tr.seconds(lookup(n, "timeout_sec"), 30, "healthcheck.timeout_sec")
	pause := fmt.Sprintf("sleep %v", interval)
	if start := lookup(n, "start_period_sec"); start != nil && start.Value != "0" && start.Value != "0.0" {
		period := tr.seconds(start, 1, "healthcheck.start_period_sec")
		early := tr.seconds(lookup(n, "start_interval_sec"), 5, "healthcheck.start_interval_sec")
		free := int(math.Ceil(period / early)) // tries that do not count
		retries += free
		pause = fmt.Sprintf("if [ $n -le %d ]; then sleep %v; else sleep %v; fi", free, early, interval)
	}
	return []*yaml.Node{dialect.Scalar(command, fmt.Sprintf(
		"%sn=0; until timeout %v sh -c %s; do n=$((n+1)); [ $n -lt %d ] || { echo the health check failed; exit 1; }; %s; done",
		tr.atWorkdir(), limit, shellWord(command.Value), retries, pause))}
}

// atWorkdir returns the start of a command in the work folder. In the work folder of an image, commands
// start by themselves.
func (tr *translator) atWorkdir() string {
	if tr.ofImage {
		return ""
	}
	return "cd " + shellWord(tr.workdir) + " && "
}

// shellWord quotes a text for sh.
func shellWord(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// addCombination sets the grader of the task, which combines the rewards of the steps.
func (tr *translator) addCombination() {
	at := tr.get("multi_step_reward_strategy")
	how := dialect.TextOf(at)
	switch how {
	case "mean", "final":
	case "":
		how = "mean"
	default:
		tr.fault(at, "multi_step_reward_strategy must be mean or final, got %q", text.Clip(how, 40))
		how = "mean"
	}
	options := dialect.NewMap(at)
	options.Set("combine", dialect.Scalar(at, how))
	tr.task.Set("graders", dialect.List(at, rewardGrader(at, "reward", options).Node))
}
