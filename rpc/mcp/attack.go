package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxFaults limits the faults in an answer.
const maxFaults = 50

type attackInput struct {
	Path           string   `json:"path" jsonschema:"suite file, or a directory that holds one suite"`
	Tasks          []string `json:"tasks,omitempty" jsonschema:"attack only tasks whose id or name matches one of these globs"`
	Tags           []string `json:"tags,omitempty" jsonschema:"attack only tasks with a tag that matches one of these globs"`
	Agents         []string `json:"agents,omitempty" jsonschema:"names of the agents to run, such as nop and oracle, which need the least time; all when absent"`
	JudgeModel     string   `json:"judge_model,omitempty" jsonschema:"judge model to use instead of the suite's"`
	TimeoutSeconds float64  `json:"timeout_seconds,omitempty" jsonschema:"timeout of a trial in seconds, instead of the suite's and the tasks' timeouts"`
}

type attackReport struct {
	Sandbox    string   `json:"sandbox" jsonschema:"tier of the sandbox in which the agents ran; none means that they could read the suite"`
	Sound      bool     `json:"sound" jsonschema:"whether no agent fooled the suite, and all solutions passed"`
	Incomplete bool     `json:"incomplete,omitempty" jsonschema:"whether errors hide a part of the result"`
	Faults     []fault  `json:"faults" jsonschema:"faults of the suite"`
	Omitted    int      `json:"faults_omitted,omitempty" jsonschema:"number of faults that were left out"`
	Tasks      []string `json:"tasks" jsonschema:"the tasks, each with the agents by outcome"`
	More       int      `json:"tasks_omitted,omitempty" jsonschema:"number of tasks that were left out; get them with tasks"`
	Warnings   []string `json:"warnings,omitempty" jsonschema:"requirements of the graders that this machine lacks"`
}

type fault struct {
	Attack  string   `json:"attack" jsonschema:"name of the agent that found it"`
	Graders []string `json:"graders" jsonschema:"the graders that it fooled, or that reject a solution"`
	Tasks   []string `json:"tasks" jsonschema:"ids of the tasks, as far as they fit"`
	Message string   `json:"message"`
	Remedy  string   `json:"remedy"`
}

func (s suiteTools) attackSuite(ctx context.Context, _ *sdk.CallToolRequest, in attackInput) (*attackReport, error) {
	path, err := s.within("path", in.Path)
	if err != nil {
		return nil, err
	}
	var found struct {
		Sandbox           string
		Sound, Incomplete bool
		Faults            []fault
		Warnings          []string
		Tasks             []struct {
			ID      string
			Results []struct{ Agent, Outcome string }
		}
	}
	in.Path = path
	if err := s.daemon.call(ctx, "eval.attack", in, &found); err != nil {
		return nil, err
	}
	r := &attackReport{Sandbox: found.Sandbox, Sound: found.Sound, Incomplete: found.Incomplete, Faults: []fault{}, Tasks: []string{}}
	for _, f := range found.Faults {
		f.Message, f.Remedy = shorten(s.brief(f.Message), maxSentence), shorten(f.Remedy, maxSentence)
		f.Graders, f.Tasks = firstNames(f.Graders), firstNames(f.Tasks)
		r.Faults = append(r.Faults, f)
	}
	r.Faults = limitList(r.Faults, maxFaults)
	r.Omitted = len(found.Faults) - len(r.Faults)
	for _, t := range found.Tasks {
		var outcomes []string
		byOutcome := map[string]string{}
		for _, res := range t.Results {
			if byOutcome[res.Outcome] == "" {
				outcomes = append(outcomes, res.Outcome)
			}
			byOutcome[res.Outcome] += " " + res.Agent
		}
		line := shorten(t.ID, 100)
		for i, o := range outcomes {
			separator := "; "
			if i == 0 {
				separator = ": "
			}
			line += separator + o + byOutcome[o]
		}
		r.Tasks = append(r.Tasks, line)
	}
	r.Tasks = limitList(r.Tasks, maxTasks)
	r.More = len(found.Tasks) - len(r.Tasks)
	for i, w := range found.Warnings {
		if i == maxProblems {
			break
		}
		r.Warnings = append(r.Warnings, shorten(s.brief(w), maxSentence))
	}
	return r, nil
}
