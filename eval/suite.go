package eval

import (
	"gopkg.in/yaml.v3"

	"waza/eval/decode"
)

// Suite is an eval.yaml and all it refers to, checked and resolved. It is
// immutable after [Load] and safe for concurrent use. The comments of its
// tagged fields are the reference documentation of the format: JSON Schema and
// docs are generated from them.
type Suite struct {
	// File is the absolute path of the suite file, Dir its directory.
	File string `yaml:"-"`
	Dir  string `yaml:"-"`

	// Name of the suite, as reports show it.
	Name string `yaml:"name" jsonschema:"required"`
	// What the suite is about.
	Description string `yaml:"description"`
	// Name of the agent skill under test.
	Skill string `yaml:"skill" jsonschema_extras:"x-refers=skill"`
	// What the suite measures: tool_eval, how well tasks are done; benchmark, how fast models answer; param_tune and prompt_tune, which parameters or system prompt are best; judge, what a model says of the answers.
	Kind SuiteKind `yaml:"kind" jsonschema:"enum=tool_eval,enum=benchmark,enum=param_tune,enum=prompt_tune,enum=judge,default=tool_eval"`
	// Version of the suite's content, free text.
	Version string `yaml:"version"`
	// Version of the suite format, MAJOR.MINOR; MAJOR is 1.
	SchemaVersion string `yaml:"schemaVersion" alias:"schema_version"`
	// How the suite is run.
	Config Config `yaml:"config"`
	// Share of a task's counted trials that must pass for the task to pass; 1 when absent.
	PassThreshold *float64 `yaml:"pass_threshold" jsonschema:"minimum=0,maximum=1"`
	// What is measured over the whole run, and what it must reach.
	Metrics Metrics `yaml:"metrics"`
	// Graders applied to every task, before the task's own.
	Graders []*Grader `yaml:"graders"`
	// Template variables for every prompt.
	Inputs map[string]string `yaml:"inputs"`
	// Shell commands around the run and its tasks.
	Hooks Hooks `yaml:"hooks"`
	// Do each task with its skills and without, and report the difference.
	Baseline bool `yaml:"baseline"`
	// CSV or JSONL file, relative to the suite and inside its directory, each row of which is a task.
	TasksFrom string `yaml:"tasks_from" jsonschema_extras:"x-refers=dataset"`
	// First and last row of tasks_from to use, counted from 1, inclusive.
	Range *[2]int `yaml:"range"`

	// Tasks are the resolved tasks: those of globs in the order of their
	// paths, inline ones and dataset rows where the suite names them.
	// Disabled tasks are left out.
	Tasks []*Task `yaml:"-"`
	// Triggers is trigger_tests.yaml beside the suite; nil when there is none.
	Triggers *TriggerTests `yaml:"-"`
	// Unpaced: neither the suite nor .waza.yaml says how many trials run at once.
	Unpaced bool `yaml:"-"`
	// Instructions are the files of config.instruction_files.
	Instructions []InstructionFile `yaml:"-"`
	// ExecutorOptions holds, by canonical executor name, the options that
	// config gives to that executor, as the type its Kind.Options returns.
	ExecutorOptions map[string]any `yaml:"-"`

	// Variants are the combinations of config.matrix; none without one.
	Variants []Variant `yaml:"-"`

	src    *decode.Source // what File holds
	skills []skill        // all that were found
	// rootDir is what [Suite.Root] returns, and contextDir the fixture directory of
	// the options; both are absolute, and empty of a suite that was not loaded.
	rootDir, contextDir string
	// taskFiles were read for tasks, whatever was in them; File is among them.
	taskFiles map[string]bool
	// Project is the nearest .waza.yaml at or above the suite, up to its
	// repository's root; nil when there is none.
	Project *Project `yaml:"-"`
}

// Config says how a suite is run.
type Config struct {
	// How often each task is done. A run has at most 500000 trials of all tasks together.
	TrialsPerTask int `yaml:"trials_per_task" json:"trials_per_task" alias:"trials" jsonschema:"minimum=1"`
	// Seconds that one attempt at a trial may take, graders included; 0 means the default.
	TimeoutSeconds float64 `yaml:"timeout_seconds" json:"timeout_seconds" jsonschema:"minimum=0"`
	// Let trials of all tasks share the workers; otherwise one trial runs at a time.
	Parallel bool `yaml:"parallel" json:"parallel"`
	// Number of trials that run at once when parallel; 0 means one per processor. Also max_workers.
	Workers int `yaml:"workers" json:"workers" alias:"max_workers" jsonschema:"minimum=0"`
	// Stop starting trials after the first task that failed.
	FailFast bool `yaml:"fail_fast" json:"fail_fast"`
	// Start no more trials of a task once it is decided whether it passes: true, a confidence, or a map. Tasks that are compared with a baseline, and trigger tests, are done to the end.
	Stopping Stopping `yaml:"stopping" json:"stopping,omitzero"`
	// How often a trial whose graders failed is tried in all; the last attempt counts. Trigger tests are asked once.
	MaxAttempts int `yaml:"max_attempts" json:"max_attempts" jsonschema:"minimum=0"`
	// How often a trial that ended in error is tried again.
	RetryErrors int `yaml:"retry_errors" json:"retry_errors" jsonschema:"minimum=0"`
	// What does the tasks.
	Executor string `yaml:"executor" json:"executor" alias:"engine"`
	// Model the executor is asked to use.
	Model string `yaml:"model" json:"model"`
	// Models to run the suite with, all in one run, in place of model.
	Models []string `yaml:"models" json:"models,omitempty"`
	// Parameters with the values to run the suite with; every combination is run, with every model.
	Matrix Matrix `yaml:"matrix" json:"matrix,omitempty"`
	// Let a model propose system prompts, in a suite of the kind prompt_tune.
	PromptTune PromptTuning `yaml:"prompt_tune" json:"prompt_tune,omitzero"`
	// Model for graders that ask one and name none.
	JudgeModel string `yaml:"judge_model" json:"judge_model,omitempty"`
	// Group results by model, tag, or a key of the tasks' inputs.context.
	GroupBy string `yaml:"group_by" json:"group_by,omitempty"`
	// Directories, relative to the suite, that hold SKILL.md or directories with one.
	SkillDirectories []string `yaml:"skill_directories" json:"skill_directories,omitempty" jsonschema_extras:"x-refers=suite-directory"`
	// Skills that must be found in skill_directories.
	RequiredSkills []string `yaml:"required_skills" json:"required_skills,omitempty" jsonschema_extras:"x-refers=skill"`
	// Skills kept from the agent.
	DisabledSkills []string `yaml:"disabled_skills" json:"disabled_skills,omitempty" jsonschema_extras:"x-refers=skill"`
	// Instruction files, relative to the suite. Agents get them in the place where they read instructions, models in the system prompt.
	InstructionFiles []string `yaml:"instruction_files" json:"instruction_files,omitempty" jsonschema_extras:"x-refers=suite-file"`
	// Put SKILL.md into the system prompt of model executors.
	InjectSkillBody bool `yaml:"inject_skill_body" json:"inject_skill_body"`
	// Variables of waza's environment that agents, graders and hooks get, by name; * stands for any characters. Absent means all. PATH, HOME, USER, LOGNAME, SHELL, TERM, TZ, LANG, LC_* and TMPDIR are always among them.
	Environment []string `yaml:"environment" json:"environment,omitzero"`
	// MCP servers handed to executors that take them, by name.
	MCPServers map[string]any `yaml:"mcp_servers" json:"mcp_servers,omitempty"`
	// Seconds within which the agent must show a sign of life; 0 means no such limit.
	FirstEventTimeoutSeconds float64 `yaml:"first_event_timeout_seconds" json:"first_event_timeout_seconds,omitempty" jsonschema:"minimum=0"`
	// US dollars that a run may cost at most; it stops before it costs more. 0 means no limit.
	MaxCost float64 `yaml:"max_cost" json:"max_cost,omitempty" jsonschema:"minimum=0"`
	// Tokens, read and written, that a run may use at most; it stops before it uses more. 0 means no limit.
	MaxTokens int64 `yaml:"max_tokens" json:"max_tokens,omitempty" jsonschema:"minimum=0"`
	// What models cost, by name. It goes before the list prices that come with waza (runner/provider/prices.json), which are dated and know neither discounts nor surcharges for long prompts.
	Prices map[string]Price `yaml:"prices" json:"prices,omitempty"`
	// How many tokens models take, read and written together, by name. It goes before the windows that come with waza (runner/provider/windows.json). Suites of the kind benchmark skip contexts that are too long for a model.
	ContextWindows map[string]int `yaml:"context_windows" json:"context_windows,omitempty"`
	// Send more log events.
	Verbose bool `yaml:"verbose" json:"verbose"`
	// Grade what tasks say under expected: true, false, or auto (all but an unscripted mock).
	GradeExpected GradeExpected `yaml:"grade_expected" json:"grade_expected"`
}

// Stopping says when a task needs no more trials.
type Stopping struct {
	// With this probability at least the verdict is the one that all trials would have led to; 1 stops only when it cannot change any more.
	Confidence float64 `yaml:"confidence" json:"confidence" jsonschema:"minimum=0.5,maximum=1,default=0.95"`
}

// DefaultStopping is the confidence that a bare `stopping: true` means.
const DefaultStopping = 0.95

// Price is what a model costs, in US dollars per million tokens.
type Price struct {
	// Tokens read.
	Input float64 `yaml:"input" json:"input" jsonschema:"minimum=0"`
	// Tokens written.
	Output float64 `yaml:"output" json:"output" jsonschema:"minimum=0"`
	// Tokens read from the provider's cache; as input when absent.
	Cached *float64 `yaml:"cached" json:"cached,omitempty" jsonschema:"minimum=0"`
	// Tokens put into the provider's cache; as input when absent.
	CacheWrite *float64 `yaml:"cache_write" json:"cache_write,omitempty" jsonschema:"minimum=0"`
}

// GradeExpected says when a task's `expected` is graded.
type GradeExpected string

// The values of config.grade_expected.
const (
	GradeExpectedAuto  GradeExpected = "auto"
	GradeExpectedTrue  GradeExpected = "true"
	GradeExpectedFalse GradeExpected = "false"
)

// Metrics are what a suite measures over a whole run. In YAML they are a list
// of metrics, or a map from name to metric that may also hold pass_threshold.
type Metrics struct {
	// PassThreshold is metrics.pass_threshold, nil when absent.
	PassThreshold *float64
	List          []Metric
}

// Metric is one measure and the least value it must reach.
type Metric struct {
	// task_completion, trigger_accuracy, behavior_quality, or the name or type of graders whose mean score it is.
	Name string `yaml:"name" json:"name" jsonschema:"required" jsonschema_extras:"x-refers=grader"`
	// Weight in the composite; absent or not positive means 1.
	Weight float64 `yaml:"weight" json:"weight"`
	// Least value, 0 to 1, for the run to pass.
	Threshold float64 `yaml:"threshold" json:"threshold" jsonschema:"minimum=0,maximum=1"`
	// What the metric tells.
	Description string `yaml:"description" json:"description,omitempty"`
	// Whether the metric is measured.
	Enabled bool `yaml:"enabled" json:"enabled"`
}

// InstructionFile is one of config.instruction_files.
type InstructionFile struct {
	Name string // as the suite writes it
	Path string // absolute; empty when there is no such file
}

// Hooks are shell commands around a run and its tasks.
type Hooks struct {
	// Before the first trial of the run.
	BeforeRun []Hook `yaml:"before_run"`
	// After the last trial of the run.
	AfterRun []Hook `yaml:"after_run"`
	// Before the first trial of each task.
	BeforeTask []Hook `yaml:"before_task"`
	// After the last trial of each task.
	AfterTask []Hook `yaml:"after_task"`
}

// Hook is one command, run through sh -c.
type Hook struct {
	// Shell command.
	Command string `yaml:"command" jsonschema:"required"`
	// Directory to run in, relative to the suite's; the suite's directory when absent.
	WorkingDirectory string `yaml:"working_directory" jsonschema_extras:"x-refers=suite-directory"`
	// Exit codes that count as success.
	ExitCodes []int `yaml:"exit_codes"`
	// Whether another exit code makes the run or the task an error.
	ErrorOnFail bool `yaml:"error_on_fail"`
}

// Grader is one grader of a suite or task, checked against its [Kind].
type Grader struct {
	// Name of the grader, as reports show it; the type when absent.
	Name string `yaml:"name" jsonschema_extras:"x-refers=grader-name"`
	// Kind of grader. Resolved to the kind's canonical name.
	Type string `yaml:"type"`
	// Weight in the trial's score; absent or not positive means 1.
	Weight float64 `yaml:"weight"`
	// What a judge is to look for; the same as config.rubric.
	Rubric string `yaml:"rubric"`

	// TypeAlias is the spelling the suite used when it was not the canonical one.
	TypeAlias string `yaml:"-"`
	// Options is the decoded config, of the type Kind.Options returns; nil if it takes none.
	Options any `yaml:"-"`
	// Config is the config as written, `assertions` beside it included.
	Config map[string]any `yaml:"-"`
	// File, Line and Column are where the grader is declared.
	File         string `yaml:"-"`
	Line, Column int    `yaml:"-"`

	src    *decode.Source // what File holds
	node   *yaml.Node     // the grader as declared
	config *yaml.Node     // its options, of every place they stand in
	flat   []decode.Pair  // keys beside config that the grader itself does not take
}

// TriggerTests are the prompts of trigger_tests.yaml: those that should make an
// agent use the skill, and those that should not.
type TriggerTests struct {
	File string `yaml:"-"`
	// RelFile is File relative to the suite's directory, slash-separated.
	RelFile string `yaml:"-"`
	// Skill under test.
	Skill string `yaml:"skill" jsonschema_extras:"x-refers=skill"`
	// Prompts that should make the agent use the skill.
	ShouldTrigger []TriggerPrompt `yaml:"should_trigger_prompts" alias:"should_trigger"`
	// Prompts that should not.
	ShouldNotTrigger []TriggerPrompt `yaml:"should_not_trigger_prompts" alias:"should_not_trigger"`

	// Skills are the directories that hold a SKILL.md for the prompts, absolute:
	// those of a task that names none of its own.
	Skills []string `yaml:"-"`
}

// Prompts is how many there are.
func (t *TriggerTests) Prompts() int { return len(t.ShouldTrigger) + len(t.ShouldNotTrigger) }

// TriggerPrompt is one prompt of a trigger test.
type TriggerPrompt struct {
	// Prompt to give to the agent, sent as it is written.
	Prompt string `yaml:"prompt" jsonschema:"required"`
	// Why it should or should not trigger.
	Reason string `yaml:"reason"`
	// high (the default) or medium, which weighs half.
	Confidence string `yaml:"confidence" jsonschema:"enum=high,enum=medium"`
}
