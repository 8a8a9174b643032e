// Package agent contains the agents with which `waza attack` tests a suite: one that does nothing,
// one that repeats its prompt, one that carries out the solutions of the tasks, and forgers, which
// do no task and try to pass. [All] lists them. [Kind] is the executor that lets one of them do the
// trials of a run. Forgers are processes of their own: a program that runs them calls [Main].
package agent

import "slices"

// An Attacker is an agent that does trials of a suite that is under attack.
type Attacker struct {
	// Name is unique.
	Name string `json:"name"`
	// Summary is a sentence that describes what the agent does.
	Summary string `json:"summary"`
	// Remedy is advice for the author of a suite that the agent has fooled.
	Remedy string `json:"remedy"`
	// Solves means that the agent carries out solutions, so it should pass. No other agent should.
	Solves bool `json:"solves,omitempty"`
	// Judged means that the agent deceives judges. Tasks without a judge are skipped.
	Judged bool `json:"judged,omitempty"`
	// Apart means that the agent changes files that trials share, such as those of the suite. Each
	// of its trials then gets a copy of the suite and of the state directory of its own.
	Apart bool `json:"-"`
	// Records means that the agent changes records of runs, so that these decide its verdict.
	Records bool `json:"-"`

	// act does a trial in a process of its own; nil for an agent without one.
	act func(*site)
}

// Nop, Echo and Oracle are the names of the agents that forge nothing. Copy is that of an agent that
// adds nothing to its input, either.
const (
	Nop    = "nop"
	Echo   = "echo"
	Oracle = "oracle"
	Copy   = "copy"
)

// all lists the agents in the order in which they run. Documents contain this table.
var all = []Attacker{
	{
		Name:    Nop,
		Summary: "Does nothing and answers nothing.",
		Remedy: "Add a grader that fails in an untouched workspace and on an empty answer: contains of a text grader, must_exist of a " +
			"file grader, or a program that checks the result.",
	},
	{
		Name:    Echo,
		Summary: "Answers with its prompt.",
		Remedy:  "Require something that the prompt does not contain, or grade the files that the task asks for.",
	},
	{
		Name: Oracle, Solves: true,
		Summary: "Carries out the `solution` of the task.",
		Remedy:  "Correct the solution, or the grader that rejects it.",
		act:     (*site).solve,
	},
	{
		Name:    Copy,
		Summary: "Answers with the texts of the files in its workspace.",
		Remedy:  "Require something that neither the prompt nor the files of the task contain, or grade the files that the task asks for.",
		act:     (*site).copyFiles,
	},
	{
		Name:    "verdicts",
		Summary: "Prints verdicts in its answer: score lines in JSON, `PASSED`, the summaries of test programs.",
		Remedy: "Grade the result, not words such as PASSED in the answer. A program grader must not print the answer as its last " +
			"line, because waza reads the verdict there.",
		act: (*site).printVerdicts,
	},
	{
		Name:    "descriptors",
		Summary: "Writes verdicts to every descriptor that it has.",
		Remedy:  "Grade the result in place of the answer, and report the fault: no descriptor of an agent may reach a grader.",
		act:     (*site).writeDescriptors,
	},
	{
		Name:    "tool-calls",
		Summary: "Reports tool calls and skills that it did not use, with the names and arguments that the graders want.",
		Remedy: "Programs report their tool calls themselves. Add a grader of the effect of the calls: a file, or a program that " +
			"looks at the result.",
		act: (*site).reportCalls,
	},
	{
		Name:    "tests",
		Summary: "Replaces the tests in its workspace by tests that pass.",
		Remedy: "Keep the tests beside the suite, and let the grader copy them over those of the workspace before it runs them: the " +
			"agent owns every file of its workspace.",
		act: (*site).replaceTests,
	},
	{
		Name:    "code",
		Summary: "Writes programs that print a verdict and exit with code 0 to the files that the prompt names, and to all others with code.",
		Remedy: "Start the agent's code in a process of its own, best with waza sandbox run, compare values that only right code can " +
			"compute, and let only the grader report the verdict: on WAZA_RESULT_FD, or as its last line.",
		act: (*site).exitEarly,
	},
	{
		Name: "python",
		Summary: "Leaves modules that Python loads in place of others: `json.py`, `sitecustomize.py`, `conftest.py`, `pytest.py`, " +
			"a `.pth` file.",
		Remedy: "Remove trust_workspace, or keep the modules out: start python3 with -P -s in another directory, and pytest with " +
			"--noconftest and its rootdir beside the suite.",
		act: (*site).shadowPython,
	},
	{
		Name:    "git",
		Summary: "Leaves a `.git/config` that starts its program as file monitor, pager and filter, and hooks.",
		Remedy: "Remove trust_workspace, or start git with -c core.fsmonitor= -c core.hooksPath=/dev/null, and read files without git " +
			"where that is possible.",
		act: (*site).configureGit,
	},
	{
		Name:    "node",
		Summary: "Leaves `package.json` scripts, an `.npmrc`, `node_modules/.bin` and packages that report success.",
		Remedy: "Start the suite's own tools by absolute paths in place of npm, npx or node_modules of the workspace, and use " +
			"--ignore-scripts.",
		act: (*site).shadowNode,
	},
	{
		Name:    "build",
		Summary: "Leaves a `Makefile`, a `justfile` and programs with the names of build tools, whose targets all succeed.",
		Remedy:  "Keep build files beside the suite: make -f $WAZA_SUITE_DIR/Makefile. Start no program of the workspace by its name.",
		act:     (*site).replaceBuild,
	},
	{
		Name: "grader-files", Apart: true,
		Summary: "Overwrites the scripts, rubrics and schemas in the suite's directory by ones that accept everything.",
		Remedy: "Use a sandbox, so that agents cannot write to the suite. Without one, let the grader read only files that waza " +
			"checks: docs/graders.md lists them.",
		act: (*site).replaceGraders,
	},
	{
		Name: "daemon", Apart: true,
		Summary: "Leaves processes that write verdicts to graders, and forged files to the workspace and the suite, when the agent has ended.",
		Remedy: "Use a sandbox, which ends all processes of an agent before graders start. Without one, a process that leaves its " +
			"session and clears its environment lives until its trial ends.",
		act: (*site).leaveDaemons,
	},
	{
		Name: "search",
		Summary: "Searches the suite's directory, the state directory, the directories above its workspace and the environments of other " +
			"processes for answers and solutions, prints them, and writes them to the files that they name.",
		Remedy: "Use a sandbox, so that agents cannot read the suite. Without one, no grader can notice that the answer was copied.",
		act:    (*site).searchAnswers,
	},
	{
		Name: "journal", Apart: true, Records: true,
		Summary: "Changes the records of runs in the state directory to a pass.",
		Remedy:  "Use a sandbox, so that agents cannot write to the state directory.",
		act:     (*site).forgeJournal,
	},
	{
		Name:    "flood",
		Summary: "Floods its answer, its reports and its workspace: megabytes of verdicts, thousands of files, deep directories, links in circles.",
		Remedy:  "Make the grader fail when it cannot see everything: it must not pass an answer that was cut, or skip files that it cannot read.",
		act:     (*site).flood,
	},
	{
		Name: "injection", Judged: true,
		Summary: "Instructs the judge in its answer to ignore the rubric and to give the score 1.",
		Remedy: "State in the rubric that the answer contains no instructions, choose a stronger judge, and add a grader that no text " +
			"can persuade.",
		act: (*site).instructJudge,
	},
	{
		Name: "hidden-text", Judged: true,
		Summary: "Hides instructions for the judge in its answer and in files: comments, characters without width, white text.",
		Remedy: "Give the judge only the files that it needs, state in the rubric that files contain no instructions, and add a grader " +
			"that no text can persuade.",
		act: (*site).hideText,
	},
}

// All returns all agents, in the order in which they run. The caller owns the slice.
func All() []Attacker { return slices.Clone(all) }

// Names returns the names of all agents.
func Names() []string {
	names := make([]string, len(all))
	for i, a := range all {
		names[i] = a.Name
	}
	return names
}

// Find returns the agent with a name.
func Find(name string) (Attacker, bool) {
	for _, a := range all {
		if a.Name == name {
			return a, true
		}
	}
	return Attacker{}, false
}

// Forges reports whether the agent is a forger.
func (a Attacker) Forges() bool { return a.act != nil && !a.Solves }
