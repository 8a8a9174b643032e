// Package question asks a model or an agent one question, in a recorded run of its own. Commands
// with [Flags] call [Asker.Ask].
package question

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"gopkg.in/yaml.v3"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/state"
	"waza/eval"
	"waza/eval/project"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/report"
)

// Flags returns the flags that select a model or an agent.
func Flags() []cli.Flag {
	const who = "Model and agent"
	return []cli.Flag{
		&cli.StringFlag{
			Name: "model", Aliases: []string{"m"}, Category: who,
			Usage: "ask the model `NAME`: of Anthropic if it starts with claude, else of OpenAI or the API at " +
				"OPENAI_BASE_URL; with --agent, let the agent use it",
			DefaultText: "none",
		},
		&cli.StringFlag{
			Name: "agent", Aliases: []string{"a"}, Category: who,
			Usage: "ask the agent `NAME`, such as copilot or opencode", DefaultText: "none",
		},
		&cli.StringFlag{
			Name: "executor", Aliases: []string{"e"}, Category: who, Usage: "ask through the executor `NAME`",
			DefaultText: "chosen by --agent or --model",
		},
		flags.Time("timeout", who, "limit the answer to a `TIME` such as 90s or 5m; a plain number is seconds", "5m"),
	}
}

func timeout(c *cli.Context) time.Duration {
	if !c.IsSet("timeout") {
		return 5 * time.Minute
	}
	return flags.TimeOf(c, "timeout")
}

// Asked reports whether the flags select a model or an agent.
func Asked(c *cli.Context) bool {
	return c.String("model") != "" || c.String("agent") != "" || c.String("executor") != ""
}

// Unmarked returns a text without the marks <<< and >>>, which enclose data in prompts.
func Unmarked(s string) string { return strings.NewReplacer("<<<", "<", ">>>", ">").Replace(s) }

// Object parses the JSON object in an answer, which can have other text around it.
func Object(answer string, v any) error {
	start, end := strings.IndexByte(answer, '{'), strings.LastIndexByte(answer, '}')
	if start < 0 || end < start {
		return errors.New("the answer contains no JSON object")
	}
	if err := json.Unmarshal([]byte(answer[start:end+1]), v); err != nil {
		return fmt.Errorf("the answer is not the expected JSON object: %w", err)
	}
	return nil
}

// Question is a prompt that runs once, as a trial of a temporary suite.
type Question struct {
	Prompt string
	// Skills are the directories of skills for the agent.
	Skills []string
	// Files are copied from Root to the workspace. They are relative to it.
	Files []string
	Root  string
}

// Asker opens the runner that asks.
type Asker struct {
	state.Reader
}

// maxAnswer limits the size of an answer, in bytes.
const maxAnswer = 1 << 20

// Ask asks the model or agent that the flags select, and returns the trial with the answer, of at
// most 1 MiB, and the id of its run. An error of the harness, a timeout or the end of ctx is an
// error.
func (a Asker) Ask(ctx context.Context, c *cli.Context, q Question) (*record.Trial, string, error) {
	if timeout(c) <= 0 {
		return nil, "", exit.Usagef("give a time such as --timeout 5m", "--timeout must be positive, got %s", timeout(c))
	}
	temp, err := os.MkdirTemp("", "waza-new-")
	if err != nil {
		return nil, "", err
	}
	defer os.RemoveAll(temp)
	file := filepath.Join(temp, "eval.yaml")
	text, err := yaml.Marshal(q.suite(c))
	if err != nil {
		return nil, "", err
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, "", err
	}
	if err := giveAgent(temp, c.String("agent")); err != nil {
		return nil, "", err
	}
	rn, err := a.Runner()
	if err != nil {
		return nil, "", err
	}
	req := record.Request{ContextDir: q.Root}
	p, err := rn.Planner().Prepare(ctx, file, req, plan.PrepareOptions{})
	if err == nil && p.Plan == nil {
		if perr := report.Diagnostics(a.Stderr, p.All().Errors(), report.Options{}); perr != nil {
			return nil, "", perr
		}
		err = exit.Usagef("waza run --agent NAME or --model NAME has the same requirements",
			"cannot ask the model or agent: %s", report.DiagnosticsSummary(p.All().Errors()))
	}
	if err != nil {
		p.Close()
		return nil, "", err
	}
	run, err := rn.CarryOut(ctx, p.Plan)
	if err != nil {
		return nil, "", err
	}
	now, err := run.Progress()
	if err != nil {
		return nil, run.ID(), err
	}
	if now.Error != "" { // a fault that stops the run, such as a missing key
		return nil, run.ID(), noAnswer(run.ID(), now.Error)
	}
	var trial *record.Trial
	err = run.Trials(func(_ int, t *record.Trial) error {
		trial = t
		return nil
	})
	switch {
	case err != nil:
		return nil, run.ID(), err
	case trial == nil:
		return nil, run.ID(), exit.New(exit.Error, errors.New("the question was not sent"), "waza runs show "+run.ID())
	case trial.Verdict != record.Passed && trial.Verdict != record.Failed: // only an agent that ended is graded
		return nil, run.ID(), noAnswer(run.ID(), cmp.Or(trial.Error, string(trial.Verdict)))
	case trial.OutputDropped > 0 || len(trial.Output) > maxAnswer:
		return nil, run.ID(), exit.New(exit.Error,
			fmt.Errorf("the answer must not have more than %d MiB", maxAnswer>>20),
			"waza runs show "+run.ID()+" prints it")
	}
	return trial, run.ID(), nil
}

func noAnswer(runID, reason string) error {
	return exit.New(exit.Error, fmt.Errorf("no answer: %s", reason), "waza runs show "+runID+" prints the details")
}

// giveAgent copies the project's settings of an agent to a directory, so that the suite in that
// directory has them, too.
func giveAgent(dir, name string) error {
	p, _, err := eval.FindProject(".") // waza validate reports findings
	if err != nil || p == nil || name == "" {
		return err
	}
	agent, ok := p.Agents[name]
	if !ok {
		return nil
	}
	if len(agent.Command) > 0 && filepath.Base(agent.Command[0]) != agent.Command[0] && !filepath.IsAbs(agent.Command[0]) {
		agent.Command = slices.Clone(agent.Command)
		agent.Command[0] = filepath.Join(p.Dir(), agent.Command[0])
	}
	text, err := yaml.Marshal(map[string]any{"agents": map[string]any{name: agent}})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, project.Name), text, 0o600)
}

// suite returns an eval.yaml with the question as its only task.
func (q Question) suite(c *cli.Context) map[string]any {
	config := map[string]any{
		"timeout_seconds": timeout(c).Seconds(), "executor": executorOf(c), "retry_errors": 0,
		"skill_directories": q.Skills,
	}
	if len(q.Skills) == 0 {
		delete(config, "skill_directories")
	}
	if agent := c.String("agent"); agent != "" {
		config["agent"] = agent
	}
	if model := c.String("model"); model != "" {
		config["model"] = model
	}
	inputs := map[string]any{"prompt": q.Prompt}
	if len(q.Files) > 0 {
		inputs["files"] = q.Files
	}
	return map[string]any{"name": c.Command.HelpName, "config": config, "tasks": []any{map[string]any{
		"id": "question", "inputs": inputs,
		"graders": []any{map[string]any{"type": "text", "name": "answers", "config": map[string]any{"regex_match": []string{`(?s).*`}}}},
	}}}
}

// executorOf returns the executor of the flags, or else the one that the model suggests.
func executorOf(c *cli.Context) string {
	model := strings.ToLower(c.String("model"))
	switch {
	case c.String("executor") != "":
		return c.String("executor")
	case c.String("agent") != "":
		return plan.AgentExecutor
	case strings.HasPrefix(model, "claude"):
		return "anthropic"
	case model != "":
		return "openai"
	}
	return cmp.Or(eval.Config{}.Executor, "mock")
}
