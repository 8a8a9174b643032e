package eval

// Task is one case of a suite. It is immutable after [Load].
type Task struct {
	// File is the absolute path of the file that declares the task: its own,
	// the suite (inline tasks) or the dataset. RelFile is the same relative
	// to the suite's directory, slash-separated. Line is where it begins.
	File    string `yaml:"-"`
	RelFile string `yaml:"-"`
	Line    int    `yaml:"-"`

	// Unique name of the task within its suite; the file's stem when absent.
	ID string `yaml:"id" jsonschema_extras:"x-refers=task-id"`
	// Title of the task; the id when absent.
	Name string `yaml:"name"`
	// What the task is about.
	Description string `yaml:"description"`
	// Whether the task is run.
	Enabled bool `yaml:"enabled"`
	// Words to select and group tasks by.
	Tags []string `yaml:"tags"`
	// Overrides config.timeout_seconds; 0 means the suite's.
	TimeoutSeconds float64 `yaml:"timeout_seconds" jsonschema:"minimum=0"`
	// Overrides the suite's pass_threshold.
	PassThreshold *float64 `yaml:"pass_threshold" jsonschema:"minimum=0,maximum=1"`
	// Fixture directory, relative to the suite, else to the task file; fixtures/ beside the suite when absent.
	ContextDir string `yaml:"context_dir" jsonschema_extras:"x-refers=suite-directory"`
	// Replaces the suite's skill_directories; relative to the suite, else to the task file.
	SkillDirectories []string `yaml:"skill_directories" jsonschema_extras:"x-refers=suite-directory"`
	// What the agent is given.
	Inputs Inputs `yaml:"inputs"`
	// What a good outcome shows, graded by waza itself.
	Expected *Expected `yaml:"expected"`
	// Graders of this task; one named like a suite's grader replaces it.
	Graders []*Grader `yaml:"graders" json:"-"`

	// Vars are the template variables of this task: the suite's inputs and,
	// over them, its dataset row.
	Vars map[string]string `yaml:"-"`
	// Effective are the graders that apply, in order: the suite's, with
	// those replaced that the task names anew, then the task's own.
	Effective []*Grader `yaml:"-"`
	// Skills are the directories that hold a SKILL.md for this task, absolute.
	Skills []string `yaml:"-"`
}

// Inputs are what a task gives to the agent.
type Inputs struct {
	// What the agent is asked. May use template variables.
	Prompt string `yaml:"prompt"`
	// File with the prompt, relative to the task file, inside the suite's directory.
	PromptFile string `yaml:"prompt_file" jsonschema_extras:"x-refers=task-file-neighbour"`
	// Further prompts, in the same session and workspace.
	FollowUpPrompts []string `yaml:"follow_up_prompts"`
	// Tool that a remote agent is to use; chat when absent. May use template variables. This key and the next three have an effect with executor remote only.
	Tool string `yaml:"tool"`
	// Address that the tool of a remote agent is to work on. May use template variables.
	URL string `yaml:"url"`
	// What the tool of a remote agent is given: any value, whose texts may use template variables; {message: PROMPT} when absent.
	Input any `yaml:"input"`
	// How soon remote agents are given the task, compared with others that wait; normal when absent.
	Priority string `yaml:"priority" jsonschema:"enum=low,enum=normal,enum=high"`
	// Files put into the workspace.
	Files []InputFile `yaml:"files"`
	// Facts for templates and graders.
	Context map[string]any `yaml:"context"`
	// Environment variables of the agent's process and of hooks.
	Environment map[string]string `yaml:"environment"`
}

// InputFile is a file put into the workspace before a trial. In YAML it is a
// path, or a map with path and content.
type InputFile struct {
	// Path in the workspace and, without content, in the fixture directory, else relative to the task file.
	Path string `yaml:"path" jsonschema_extras:"x-refers=fixture"`
	// Text of the file; the fixture of that path when absent.
	Content *string `yaml:"content"`
	// Source is the absolute path of the fixture; empty for inline content.
	Source string `yaml:"-"`
}

// Expected is what a good outcome shows.
type Expected struct {
	// Texts the output must contain, in any letter case.
	OutputContains []string `yaml:"output_contains"`
	// Texts the output must not contain, in any letter case.
	OutputNotContains []string `yaml:"output_not_contains"`
	// Texts of which the output must contain one, in any letter case.
	OutputContainsAny []string `yaml:"output_contains_any"`
	// Regular expressions (RE2, any letter case) the output must match.
	Matches []string `yaml:"matches"`
	// Limits on how the agent works.
	Behavior *ExpectedBehavior `yaml:"behavior"`
	// Tool calls the agent must or must not make.
	ToolCalls *ExpectedToolCalls `yaml:"tool_calls"`
	// Whether the agent should use the skill under test.
	ShouldTrigger *bool `yaml:"should_trigger"`
	// Outcomes to reach.
	Outcomes []ExpectedOutcome `yaml:"outcomes"`
}

// ExpectedBehavior limits how the agent works; absent limits are not checked.
type ExpectedBehavior struct {
	// Most tool calls.
	MaxToolCalls *int `yaml:"max_tool_calls" jsonschema:"minimum=0"`
	// Most turns of the agent.
	MaxIterations *int `yaml:"max_iterations" jsonschema:"minimum=0"`
	// Most tokens, input and output together.
	MaxTokens *int `yaml:"max_tokens" jsonschema:"minimum=0"`
	// Most milliseconds from prompt to answer.
	MaxResponseTimeMS *int64 `yaml:"max_response_time_ms" jsonschema:"minimum=0"`
	// Tools that must be used.
	RequiredTools []string `yaml:"required_tools"`
	// Tools that must not be used.
	ForbiddenTools []string `yaml:"forbidden_tools"`
}

// ExpectedToolCalls are tool calls the agent must or must not make.
type ExpectedToolCalls struct {
	// Calls that must be made, at most 200. The tool scores of a trial say how many of them were made, and how many of their arguments are right.
	Required []ExpectedToolCall `yaml:"required"`
	// Calls that must not be made.
	Forbidden []ExpectedToolCall `yaml:"forbidden"`
}

// MaxExpectedCalls bounds the calls that a list of expected calls asks for.
const MaxExpectedCalls = 200

// ExpectedToolCall matches tool calls.
type ExpectedToolCall struct {
	// Exact name of the tool. May use template variables.
	Tool string `yaml:"tool"`
	// What arguments must be, by their names; a name with dots leads into maps. They are compared as JSON values, numbers by
	// value. Texts may use template variables. Arguments that are not listed may have any value.
	Arguments map[string]any `yaml:"arguments"`
	// Regular expression on the tool's name, any letter case.
	Pattern string `yaml:"pattern"`
	// Regular expression on the arguments as JSON text, any letter case.
	ArgsPattern string `yaml:"args_pattern"`
	// Least number of such calls.
	Count int `yaml:"count" jsonschema:"minimum=1"`
}

// ExpectedOutcome is an outcome to reach.
type ExpectedOutcome struct {
	// task_completed: the executor ended normally.
	Type string `yaml:"type" jsonschema:"required"`
}

// TrialVars are the template variables that change from trial to trial.
type TrialVars struct {
	RunID   string
	Trial   int // 1-based
	Attempt int // 1-based
	// Model and Params are those of the trial's combination of config.models and
	// config.matrix; Model may be empty.
	Model  string
	Params map[string]string
}
