package mcp

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func (s *server) addPrompts() {
	s.prompt("evaluate_skill", "Evaluate a skill", "Check a skill, run its suite, and report what to improve.",
		[]*sdk.PromptArgument{{Name: "skill", Title: "Skill", Description: "Directory of the skill, or its SKILL.md.", Required: true}},
		func(a map[string]string) string {
			return fmt.Sprintf(`Evaluate the skill %[1]s with the tools of waza:
1. Call waza_skill_check with skill_path %[1]s and note the issues.
2. Find the suite of the skill with waza_eval_list and check it with waza_eval_validate. Without a suite, say so and stop.
3. Run the suite with waza_run.
4. For each task that did not pass, read waza_run_transcript and find out why: the skill, the task, a grader or the environment.
5. Report what works, what does not and why, and which change of SKILL.md you propose. Change nothing yet.`, a["skill"])
		})
	s.prompt("explain_failure", "Why did this task fail?", "Find out why a task of a run did not pass.",
		[]*sdk.PromptArgument{
			{Name: "run_id", Title: "Run", Description: "Id of the run, or latest.", Required: true},
			{Name: "task_id", Title: "Task", Description: "Id of the task; when absent, the first task that did not pass."},
		},
		func(a map[string]string) string {
			task := ""
			if a["task_id"] != "" {
				task = " and task_id " + a["task_id"]
			}
			return fmt.Sprintf(`Find out why a task did not pass:
1. Call waza_run_result with run_id %[1]s%[2]s and read the reasons of the graders.
2. Call waza_run_transcript with run_id %[1]s%[2]s and follow what the agent did, page by page where you need more.
3. Explain in a few sentences what went wrong first, and what caused it: the agent, its skill, the task, a grader or the environment. Quote the line of the transcript that shows it, and propose one change.`,
				a["run_id"], task)
		})
	s.prompt("improve_skill", "Improve a skill", "Change a skill until its suite passes, and prove that it improved.",
		[]*sdk.PromptArgument{{Name: "suite", Title: "Suite", Description: "File of the suite.", Required: true}},
		func(a map[string]string) string {
			return fmt.Sprintf(`Improve the skill that the suite %[1]s tests:
1. Run the suite with waza_run and remember the run as the base.
2. Find out with waza_run_transcript why tasks did not pass. Do not change the suite: it defines the goal.
3. Change the skill in one respect, and run the tasks that did not pass again with waza_run and tasks.
4. When they pass, run the whole suite, and call waza_run_compare with the base. Keep the change only if nothing regressed.
5. Report each change with the numbers from waza_run_compare.`, a["suite"])
		})
}

// prompt adds a prompt, which consists of one user message.
func (s *server) prompt(name, title, doc string, arguments []*sdk.PromptArgument, message func(map[string]string) string) {
	s.mcp.AddPrompt(&sdk.Prompt{Name: name, Title: title, Description: doc, Arguments: arguments},
		func(_ context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			given := map[string]string{}
			for _, a := range arguments {
				value := strings.TrimSpace(req.Params.Arguments[a.Name])
				if value == "" && a.Required {
					return nil, wrongParams("argument %q is missing", a.Name)
				}
				given[a.Name] = shorten(value, 500)
			}
			return &sdk.GetPromptResult{
				Description: doc,
				Messages:    []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: message(given)}}},
			}, nil
		})
}

// complete completes arguments of prompts and of addresses: runs, their tasks, and suites.
func (s *server) complete(ctx context.Context, req *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
	const most = 100 // limit of the specification
	var all []string
	switch req.Params.Argument.Name {
	case "run_id":
		infos, err := recordTools{s}.runsBelow(ctx, "", mostRuns)
		if err != nil {
			return nil, err
		}
		for _, info := range infos {
			all = append(all, info.RunID)
		}
	case "task_id":
		var run string
		if c := req.Params.Context; c != nil {
			run = c.Arguments["run_id"]
		}
		if h, err := s.find(run); err == nil {
			for _, t := range h.Record().Tasks {
				all = append(all, t.ID)
			}
		}
	case "path", "suite":
		found, err := suiteTools{s}.listSuites(ctx, nil, dirInput{})
		if err != nil {
			return nil, err
		}
		for _, e := range found.Evals {
			all = append(all, filepath.ToSlash(e.Path))
		}
	}
	all = slices.DeleteFunc(all, func(v string) bool { return !strings.HasPrefix(v, req.Params.Argument.Value) })
	values := append([]string{}, all[:min(len(all), most)]...)
	return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: values, Total: len(all), HasMore: len(all) > most}}, nil
}
