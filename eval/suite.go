package eval

import (
	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/reach"
	"waza/eval/surroundings"
)

// A Suite is an eval.yaml and everything it refers to, checked and resolved. It is immutable
// after [Load] and safe for concurrent use. The comments of its tagged fields are the reference
// documentation of the format: waza generates the JSON Schema and the docs from them.
type Suite struct {
	reach.Places `yaml:"-"`

	// Format is the name of the dialect of a suite in the format of another tool, see
	// [dialect.Dialect]; empty for an eval.yaml.
	Format string `yaml:"-" json:"format,omitempty"`

	// Name of the suite, as reports show it.
	Name string `yaml:"name" json:"name" jsonschema:"required"`
	// Description of the suite.
	Description string `yaml:"description" json:"description,omitempty"`
	// Name of the agent skill under test.
	Skill string `yaml:"skill" json:"skill,omitempty" jsonschema_extras:"x-refers=skill"`
	// Name of the custom agent under test: NAME.agent.md beside the suite, in skill_directories or in
	// .github/agents of the repository. Its text becomes instructions of the agent, and its tools the
	// only ones that the agent may call. The key skill can name an agent, too. Or a file of
	// instructions, such as AGENTS.md or CLAUDE.md, relative to the suite or to the root of the repository.
	Agent string `yaml:"agent" json:"-"`
	// Purpose of the suite: tool_eval measures how well tasks are done; benchmark, how fast models
	// answer; param_tune and prompt_tune compare parameters or system prompts; judge lets a model rate
	// the answers.
	Kind SuiteKind `yaml:"kind" json:"-" jsonschema:"enum=tool_eval,enum=benchmark,enum=param_tune,enum=prompt_tune,enum=judge,default=tool_eval"`
	// Version of the suite's content, free text.
	Version string `yaml:"version" json:"version,omitempty"`
	// Version of the suite format, MAJOR.MINOR; MAJOR is 1.
	SchemaVersion string `yaml:"schemaVersion" json:"-" alias:"schema_version"`
	// How the suite is run.
	Config Config `yaml:"config" json:"config"`
	// Least share of a task's counted trials that must pass for the task to pass; 1 when absent.
	PassThreshold *float64 `yaml:"pass_threshold" json:"-" jsonschema:"minimum=0,maximum=1"`
	// Least score of a trial, 0 to 1, for the trial to pass, whichever graders passed. When absent, every
	// grader must pass.
	ScoreThreshold *float64 `yaml:"score_threshold" json:"-" jsonschema:"minimum=0,maximum=1"`
	// Metrics over the whole run, and the values that they must reach.
	Metrics Metrics `yaml:"metrics" json:"-"`
	// Graders applied to every task, before the task's own graders.
	Graders []*Grader `yaml:"graders" json:"-" path:"-"`
	// Send prompts and compare texts as they are written. Double braces then mark no template variables.
	Literal bool `yaml:"literal" json:"literal,omitempty"`
	// Template variables for every prompt.
	Inputs map[string]string `yaml:"inputs" json:"inputs,omitempty"`
	// Shell commands to run before and after the run and its tasks.
	Hooks surroundings.Hooks `yaml:"hooks" json:"-"`
	// MCP servers that waza simulates for agents. They need an executor that takes config.mcp_servers.
	MCPMocks []surroundings.MCPMock `yaml:"mcp_mocks" json:"-" path:"-"`
	// Do each task with and without its skills, and report the difference.
	Baseline bool `yaml:"baseline" json:"-"`
	// CSV or JSONL file with one task per row. The path is relative to the suite and inside its directory.
	TasksFrom string `yaml:"tasks_from" json:"-" jsonschema_extras:"x-refers=dataset"`
	// First and last row of tasks_from to use, counted from 1, inclusive.
	Range *[2]int `yaml:"range" json:"-"`

	// Tasks are the resolved tasks in the order of the suite: inline ones, those of globs in the
	// order of their paths, and dataset rows. Disabled tasks are left out.
	Tasks []*Task `yaml:"-" json:"-" path:"-"`
	// Triggers are the trigger tests: the key trigger_tests of the suite, or trigger_tests.yaml beside
	// it; nil without any.
	Triggers *TriggerTests `yaml:"-" json:"-" path:"-"`
	// Unpaced means that neither the suite nor .waza.yaml limits how many trials run at once.
	Unpaced bool `yaml:"-" json:"-"`
	// Instructions are the files of config.instruction_files.
	Instructions []InstructionFile `yaml:"-" json:"instructions,omitempty"`
	// ExecutorOptions holds the options of each executor in config, by the executor's canonical
	// name. Their type is that of the Options of its Kind.
	ExecutorOptions map[string]any `yaml:"-" json:"-"`

	// Variants are the combinations of config.matrix; empty without a matrix.
	Variants []Variant `yaml:"-" json:"-" path:"-"`

	src  *decode.Source // the content of File, as an eval.yaml
	more []dialect.Task // of a translated suite, from other files
	// original is the content of File as it is, and untranslated are the findings of its translation.
	original     *decode.Source
	untranslated decode.Diagnostics
	calls        []dialect.Call
	secrets      []string  // values of parameters
	skills       []SkillIn // all skills that were found
	// taskFiles are the files that were read for tasks, with any content; File is among them.
	taskFiles map[string]bool
	// Project is the nearest .waza.yaml at or above the suite, up to its repository's root; nil
	// if there is no such file.
	Project *Project `yaml:"-" json:"-"`
}

// Config controls how a suite is run.
type Config struct {
	// Number of trials of each task. A run has at most 1000000 trials of all tasks together.
	TrialsPerTask int `yaml:"trials_per_task" json:"trials_per_task" alias:"trials" jsonschema:"minimum=1"`
	// Time limit of one attempt at a trial in seconds, including graders; 0 means the default.
	TimeoutSeconds float64 `yaml:"timeout_seconds" json:"timeout_seconds" jsonschema:"minimum=0"`
	// Run trials of all tasks at the same time, on shared workers; otherwise one trial runs at a time.
	Parallel bool `yaml:"parallel" json:"parallel"`
	// Number of trials that run at once when parallel; 0 means one per processor. Also max_workers.
	Workers int `yaml:"workers" json:"workers" alias:"max_workers" jsonschema:"minimum=0"`
	// Start no more trials after the first failed task.
	FailFast bool `yaml:"fail_fast" json:"fail_fast"`
	// Start no more trials of a task once its verdict is decided: true, a confidence, or a map.
	// Trigger tests and tasks that have a baseline or expected recipients always run all trials.
	Stopping Stopping `yaml:"stopping" json:"stopping,omitzero"`
	// Question that a run decides: which of two sides is better. waza then starts only the trials that
	// decide it, and ends as soon as the answer is known. trials_per_task, if it is more than 1, is the most
	// pairs of a task; otherwise it is 100. A request for one trial or one model asks no question.
	Decide Decide `yaml:"decide" json:"decide,omitzero"`
	// Maximum number of attempts at a trial whose graders fail; the last attempt counts. Trigger tests have one attempt.
	MaxAttempts int `yaml:"max_attempts" json:"max_attempts" jsonschema:"minimum=0"`
	// Maximum number of retries of a trial that ended in an error.
	RetryErrors int `yaml:"retry_errors" json:"retry_errors" jsonschema:"minimum=0"`
	// Executor that does the tasks.
	Executor string `yaml:"executor" json:"executor" alias:"engine"`
	// Model that the executor uses.
	Model string `yaml:"model" json:"model"`
	// Models to compare in one run, in place of model.
	Models []string `yaml:"models" json:"models,omitempty"`
	// Parameters with their values. A run covers every combination of values with every model.
	Matrix Matrix `yaml:"matrix" json:"matrix,omitempty"`
	// Cells of the run, in place of models and matrix: maps with the model, a name, values of other
	// parameters that the cell has, and options of its executor. Flags that choose a model, an executor or an agent replace those of
	// all cells.
	Cells Cells `yaml:"cells" json:"-"`
	// Settings for a model that proposes system prompts, in a suite of the kind prompt_tune.
	PromptTune PromptTuning `yaml:"prompt_tune" json:"prompt_tune,omitzero"`
	// Model for graders that ask a judge and name no model.
	JudgeModel string `yaml:"judge_model" json:"judge_model,omitempty"`
	// How much the executor's model reasons. Model executors pass it to their API, as reasoning_effort
	// or Anthropic's output_config.effort. Agents get it if they offer such a choice (executor acp). A
	// model may not support all values. When absent, the model decides.
	ReasoningEffort string `yaml:"reasoning_effort" json:"reasoning_effort,omitempty" jsonschema:"enum=low,enum=medium,enum=high,enum=xhigh,enum=max"`
	// How much judges reason, unless their grader sets it.
	JudgeReasoningEffort string `yaml:"judge_reasoning_effort" json:"judge_reasoning_effort,omitempty" jsonschema:"enum=low,enum=medium,enum=high,enum=xhigh,enum=max"`
	// Agent that judges in place of a model: `judge: {agent: copilot}`. It uses judge_model, if that is set.
	Judge JudgeChoice `yaml:"judge" json:"judge,omitzero"`
	// Group results by model, tag, or a key of the tasks' inputs.context.
	GroupBy string `yaml:"group_by" json:"group_by,omitempty"`
	// Directories with a SKILL.md, or with subdirectories that have one. Paths are relative to the suite.
	SkillDirectories []string `yaml:"skill_directories" json:"skill_directories,omitempty" jsonschema_extras:"x-refers=suite-directory" path:"maybe"`
	// Skills that must be found in skill_directories.
	RequiredSkills []string `yaml:"required_skills" json:"required_skills,omitempty" jsonschema_extras:"x-refers=skill"`
	// Skills kept from the agent.
	DisabledSkills []string `yaml:"disabled_skills" json:"disabled_skills,omitempty" jsonschema_extras:"x-refers=skill"`
	// Instruction files, relative to the suite. Agents get them where they look for instructions, models in the system prompt.
	InstructionFiles []string `yaml:"instruction_files" json:"instruction_files,omitempty" jsonschema_extras:"x-refers=suite-file" path:"maybe"`
	// Put SKILL.md into the system prompt of model executors.
	InjectSkillBody bool `yaml:"inject_skill_body" json:"inject_skill_body"`
	// Names of environment variables that waza passes to agents, graders and hooks; `*` matches any
	// characters. When absent, waza passes all variables. It always passes PATH, HOME, USER, LOGNAME,
	// SHELL, TERM, TZ, LANG, `LC_*` and TMPDIR.
	Environment []string `yaml:"environment" json:"environment,omitzero"`
	// Compare tool names only with the agent's own names. By default, a grader that names a tool such
	// as view or bash by one agent's name also matches the same tool of other agents. The result lists
	// the names that were matched this way.
	ExactTools bool `yaml:"exact_tools" json:"exact_tools,omitempty"`
	// MCP servers for agents, by name. They need an executor that takes them.
	MCPServers map[string]any `yaml:"mcp_servers" json:"mcp_servers,omitempty" path:"words"`
	// Sandbox around the agent, its MCP servers, hooks of tasks and the tools of models: a mode or a map.
	// Absent keys have the values of .waza.yaml, else of auto.
	Sandbox surroundings.Sandbox `yaml:"sandbox" json:"sandbox,omitzero"`
	// Time limit in seconds for the agent's first sign of life; 0 means no limit.
	FirstEventTimeoutSeconds float64 `yaml:"first_event_timeout_seconds" json:"first_event_timeout_seconds,omitempty" jsonschema:"minimum=0"`
	// Maximum cost of a run in US dollars. The run stops before it costs more. 0 means no limit.
	MaxCost float64 `yaml:"max_cost" json:"max_cost,omitempty" jsonschema:"minimum=0"`
	// Maximum number of tokens of a run, read and written. The run stops before it uses more. 0 means no limit.
	MaxTokens int64 `yaml:"max_tokens" json:"max_tokens,omitempty" jsonschema:"minimum=0"`
	// Prices of models, by name. They override the list prices that come with waza
	// (runner/provider/prices.json). The list prices have a date, and include neither discounts nor
	// surcharges for long prompts.
	Prices map[string]Price `yaml:"prices" json:"prices,omitempty"`
	// Context windows of models, by name, in tokens read and written together. They override the
	// windows that come with waza (runner/provider/windows.json). Suites of the kind benchmark skip
	// contexts that are too long for a model.
	ContextWindows map[string]int `yaml:"context_windows" json:"context_windows,omitempty"`
	// Write more log events.
	Verbose bool `yaml:"verbose" json:"verbose"`
	// Fleet of workers that execute the trials, as an address or a map; docs/fleet.md describes both.
	// Trials and files leave this machine only with the user's consent: --fleet suite, or a WAZA_FLEET
	// that names the same servers and team. An embedded fleet needs no consent.
	Fleet Fleet `yaml:"fleet" json:"fleet,omitzero"`
	// Whether to grade the tasks' expected: true, false, or auto (all except an unscripted mock).
	GradeExpected GradeExpected `yaml:"grade_expected" json:"grade_expected"`
}

// JudgeChoice chooses a judge in place of a model that waza asks itself.
type JudgeChoice struct {
	// Agent that judges: copilot, opencode, gemini, claude-code, codex, qwen, goose, or an agent that
	// .waza.yaml defines under agents. It can only answer, and use no tools.
	Agent string `yaml:"agent" json:"agent,omitempty" jsonschema_extras:"x-refers=agent"`
}

// Stopping controls when a task needs no more trials.
type Stopping struct {
	// Least probability that the early verdict matches the verdict of a full run; 1 stops only when the verdict cannot change any more.
	Confidence float64 `yaml:"confidence" json:"confidence" jsonschema:"minimum=0.5,maximum=1,default=0.95"`
}

// Decide is the question that runs of a suite decide.
type Decide struct {
	// Two sides: cells of the matrix or models. When absent, the agent with its skills is compared
	// with the agent without skills.
	Between []string `yaml:"between" json:"between,omitempty"`
	// Least gain worth having, in percentage points.
	BetterBy float64 `yaml:"better_by" json:"better_by" jsonschema:"required"`
	// Greatest chance of a wrong verdict.
	Risk float64 `yaml:"risk" json:"risk,omitempty" jsonschema:"default=0.05"`
}

// defaultStopping is the confidence of `stopping: true`.
const defaultStopping = 0.95

// Price is the price of a model in US dollars per million tokens.
type Price struct {
	// Price of tokens read.
	Input float64 `yaml:"input" json:"input" jsonschema:"minimum=0"`
	// Price of tokens written.
	Output float64 `yaml:"output" json:"output" jsonschema:"minimum=0"`
	// Price of tokens read from the provider's cache; the same as input when absent.
	Cached *float64 `yaml:"cached" json:"cached,omitempty" jsonschema:"minimum=0"`
	// Price of tokens written to the provider's cache; the same as input when absent.
	CacheWrite *float64 `yaml:"cache_write" json:"cache_write,omitempty" jsonschema:"minimum=0"`
}

// GradeExpected controls whether a task's `expected` is graded.
type GradeExpected string

// The values of config.grade_expected.
const (
	GradeExpectedAuto  GradeExpected = "auto"
	GradeExpectedTrue  GradeExpected = "true"
	GradeExpectedFalse GradeExpected = "false"
)

// Metrics are the measures of a suite over a whole run. In YAML they are a list of metrics, or a
// map from name to metric that can also contain pass_threshold.
type Metrics struct {
	// PassThreshold is metrics.pass_threshold, nil when absent.
	PassThreshold *float64
	List          []Metric
}

// A Metric is one measure and the least value that it must reach.
type Metric struct {
	// Name of the metric: task_completion, trigger_accuracy, behavior_quality, or the name or type of
	// graders. A metric of graders is their mean score.
	Name string `yaml:"name" json:"name" jsonschema:"required" jsonschema_extras:"x-refers=grader"`
	// Weight of the metric in the composite score; absent or not positive means 1.
	Weight float64 `yaml:"weight" json:"weight"`
	// Least value, from 0 to 1, for the run to pass.
	Threshold float64 `yaml:"threshold" json:"threshold" jsonschema:"minimum=0,maximum=1"`
	// Description of the metric.
	Description string `yaml:"description" json:"description,omitempty"`
	// Whether the metric is measured.
	Enabled bool `yaml:"enabled" json:"enabled"`
}

// An InstructionFile is one of the instruction_files of a suite or a task.
type InstructionFile struct {
	Name string `path:"maybe"` // as the suite writes it
	Path string `path:"file"`  // absolute; empty if the file does not exist
	// UnderTest means that the file defines the agent under test, see [Suite.Agent].
	UnderTest bool `json:",omitzero"`
}

// A Grader is one grader of a suite or task, checked against its [Kind].
type Grader struct {
	// Name of the grader in reports; the type when absent.
	Name string `yaml:"name" jsonschema_extras:"x-refers=grader-name"`
	// Type of the grader.
	Type string `yaml:"type"`
	// Weight of the grader in the trial's score; absent or not positive means 1.
	Weight float64 `yaml:"weight"`
	// Criteria for a judge; the same as config.rubric.
	Rubric string `yaml:"rubric"`
	// Number of the prompt whose turn is graded, from 1; the whole trial when absent. The grader sees only
	// the prompt, the answer, tool calls, skills, errors and the duration of that turn, and the workspace at
	// the end of the trial. If the turn did not happen, the score is 0.
	Turn int `yaml:"turn" jsonschema:"minimum=1"`
	// Body of a JavaScript function of output and context, such as `return JSON.parse(output).text`. The
	// grader gets the result instead of the output: a text, or the JSON text of any other value. The
	// function can also use transcript, tool_calls and created_files, as assertions of the grader code
	// do. The grader fails, whatever it negates, if the function throws an exception or returns nothing.
	Transform string `yaml:"transform"`
	// Pass where the grader would fail, and fail where it would pass. The score becomes 1 minus the score.
	Negate bool `yaml:"negate"`
	// Measure and show the score, but count it neither in the verdict nor in the score of the trial.
	Optional bool `yaml:"optional"`
	// End in an error, instead of passing or failing, if the executor reports only answers and no steps of an agent, such as
	// tool calls.
	NeedsSteps bool `yaml:"needs_steps"`

	// Group is the group that contains the grader, see [GroupOptions]; nil outside of groups.
	Group *GraderGroup `yaml:"-" path:"-"`

	// TypeAlias is the suite's spelling of the type, unless it is the canonical one.
	TypeAlias string `yaml:"-"`
	// Options is the decoded config, of the type that Kind.Options returns; nil if there are
	// none.
	Options any `yaml:"-"`
	// Config is the config as written, including `assertions` beside it.
	Config map[string]any `yaml:"-" path:"-"`
	// File, Line and Column are where the grader is declared.
	File         string `yaml:"-" path:"file"`
	Line, Column int    `yaml:"-"`

	src    *decode.Source // the content of File
	node   *yaml.Node     // the grader as declared
	config *yaml.Node     // its options, from all places
	flat   []decode.Pair  // keys beside config that are not keys of Grader
}

// TriggerTests are the prompts of trigger_tests.yaml: prompts that should make an agent use the
// skill, and prompts that should not.
type TriggerTests struct {
	File string `yaml:"-"`
	// RelFile is File relative to the suite's directory, slash-separated.
	RelFile string `yaml:"-"`
	// Skill under test.
	Skill string `yaml:"skill" jsonschema_extras:"x-refers=skill"`
	// Prompts that should make the agent use the skill.
	ShouldTrigger []TriggerPrompt `yaml:"should_trigger_prompts" alias:"should_trigger"`
	// Prompts that should not make the agent use the skill.
	ShouldNotTrigger []TriggerPrompt `yaml:"should_not_trigger_prompts" alias:"should_not_trigger"`

	// Whether the first tool call of a trial decides alone, as in run_eval.py of the skill-creator: the agent
	// uses the skill if that call invokes the skill or reads its SKILL.md. When absent, any call of the
	// trial counts.
	FirstTool bool `yaml:"first_tool"`
	// Share of the trials, 0 to 1, in which the agent uses the skill: a prompt that should trigger passes
	// from this share on, and one that should not passes below it. When absent, pass_threshold is the
	// share of right trials that both need.
	Threshold *float64 `yaml:"threshold" jsonschema:"minimum=0,maximum=1"`

	// Skills are the directories with a SKILL.md for the prompts, absolute: the same as for a
	// task that names none of its own.
	Skills []string `yaml:"-"`
	// Instructions are those of the agent under test; nil without one.
	Instructions []InstructionFile `yaml:"-"`

	src *decode.Source // the content of File
}

// Prompts returns the number of prompts.
func (t *TriggerTests) Prompts() int { return len(t.ShouldTrigger) + len(t.ShouldNotTrigger) }

// A TriggerPrompt is one prompt of a trigger test.
type TriggerPrompt struct {
	// Prompt for the agent, sent without template variables.
	Prompt string `yaml:"prompt" jsonschema:"required"`
	// Skill that this prompt is about, in place of the skill of all prompts.
	Skill string `yaml:"skill" jsonschema_extras:"x-refers=skill"`
	// Skills that are as right as the skill itself. Only for a prompt that should trigger.
	AcceptableSkills []string `yaml:"acceptable_skills" jsonschema_extras:"x-refers=skill"`
	// Skills that the agent must not use for the prompt, even if it also uses the right one.
	ForbiddenSkills []string `yaml:"forbidden_skills" jsonschema_extras:"x-refers=skill"`
	// Reason why the prompt should or should not trigger the skill.
	Reason string `yaml:"reason"`
	// high (the default) or medium, which has half the weight.
	Confidence string `yaml:"confidence" jsonschema:"enum=high,enum=medium"`
}
