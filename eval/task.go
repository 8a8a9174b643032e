package eval

import (
	"cmp"
	"maps"
	"slices"

	"waza/eval/surroundings"
)

// A Task is one case of a suite. It is immutable after [Load].
type Task struct {
	// File is the absolute path of the file that declares the task: a task file, the suite file
	// or the dataset. RelFile is its path relative to the suite's directory, with slashes. Line
	// is the line where the task starts.
	File    string `yaml:"-" path:"file"`
	RelFile string `yaml:"-"`
	Line    int    `yaml:"-"`

	// Unique name of the task in its suite; the file name without extension when absent.
	ID string `yaml:"id" jsonschema_extras:"x-refers=task-id"`
	// Title of the task; the id when absent.
	Name string `yaml:"name"`
	// Description of the task.
	Description string `yaml:"description"`
	// Whether the task is run.
	Enabled bool `yaml:"enabled"`
	// Words for selecting and grouping tasks.
	Tags []string `yaml:"tags"`
	// Whether the task must never fail. Results mark golden tasks, so that a comparison can apply stricter rules to them.
	Golden bool `yaml:"golden"`
	// Name of what the task has in common with others, such as the document that several tasks ask about. The
	// tasks of a cluster are not independent, so that a comparison counts them together when it asks about
	// tasks like these. A task without a cluster counts by itself.
	Cluster string `yaml:"cluster" json:",omitempty" jsonschema:"maxLength=200"`
	// Reason why nobody can do the task, such as a file that is missing. Its trials end in an error with
	// this text, and all other tasks run.
	Blocked string `yaml:"blocked" json:",omitempty"`
	// Names of the cells of config.cells in which the task is done; all when absent. Tasks that share no
	// cell can have the same id, so that a task differs between cells in any of its keys.
	Cells []string `yaml:"cells" json:",omitempty"`
	// Model that does the task, in place of the model of the suite or of its cell. The models of a request,
	// such as `waza run --model`, replace it. Only for the kind tool_eval.
	Model string `yaml:"model" json:",omitempty"`
	// Overrides config.trials_per_task; absent means the suite's value.
	Trials int `yaml:"trials" json:",omitempty" jsonschema:"minimum=1"`
	// Overrides config.timeout_seconds; 0 means the suite's value.
	TimeoutSeconds float64 `yaml:"timeout_seconds" jsonschema:"minimum=0"`
	// Limit of the agent alone. When it is reached, waza ends the agent, and the graders score what it left;
	// timeout_seconds, which includes graders, still ends in a timeout. 0 means no limit. Tasks with checkpoints
	// have the key at these instead.
	AgentTimeoutSeconds float64 `yaml:"agent_timeout_seconds" json:",omitempty" jsonschema:"minimum=0"`
	// Overrides the suite's pass_threshold.
	PassThreshold *float64 `yaml:"pass_threshold" jsonschema:"minimum=0,maximum=1"`
	// Overrides the suite's score_threshold.
	ScoreThreshold *float64 `yaml:"score_threshold" json:",omitempty" jsonschema:"minimum=0,maximum=1"`
	// Fixture directory, relative to the suite, else to the task file; fixtures/ beside the suite when absent.
	ContextDir string `yaml:"context_dir" jsonschema_extras:"x-refers=suite-directory" path:"maybe"`
	// Replaces the suite's skill_directories; relative to the suite, else to the task file.
	SkillDirectories []string `yaml:"skill_directories" jsonschema_extras:"x-refers=suite-directory" path:"maybe"`
	// Instruction files of this task, in addition to the suite's. Paths are relative to the fixture
	// directory, else to the suite, else to the task file.
	InstructionFiles []string `yaml:"instruction_files" jsonschema_extras:"x-refers=fixture" path:"maybe"`
	// Overrides config.first_event_timeout_seconds; 0 means no limit.
	FirstEventTimeoutSeconds *float64 `yaml:"first_event_timeout_seconds" jsonschema:"minimum=0"`
	// Part of the sandbox that this task has of its own: an image in place of the suite's, for the mode
	// container, a network and paths.
	Sandbox surroundings.TaskSandbox `yaml:"sandbox" json:",omitzero"`
	// MCP servers that waza simulates for the agent, in addition to the suite's; a server replaces the suite's server of the same name.
	MCPMocks []surroundings.MCPMock `yaml:"mcp_mocks" json:"-" path:"-"`
	// MCP servers for the agent, by name, in addition to config.mcp_servers; a server replaces the suite's server of the same name.
	MCPServers map[string]any `yaml:"mcp_servers" json:",omitempty" path:"words"`
	// Inputs of the agent.
	Inputs Inputs `yaml:"inputs"`
	// Expected outcome, graded by waza itself.
	Expected *Expected `yaml:"expected"`
	// Graders of this task; a grader replaces the suite's grader of the same name.
	Graders []*Grader `yaml:"graders" json:"-" path:"-"`
	// Known right way to do the task, which `waza attack` carries out: the path of a script, or a map.
	// Agents never receive it, and no trial runs again because it changed.
	Solution *Solution `yaml:"solution" json:"-" path:"-"`

	// Literal is the suite's literal: texts of the task have no template variables.
	Literal bool `yaml:"-" json:",omitempty"`
	// Vars are the template variables of this task: the suite's inputs, overridden by its
	// dataset row.
	Vars map[string]string `yaml:"-"`
	// Effective are the graders that apply, in order: the suite's, or the task's graders of the
	// same names, then the other graders of the task.
	Effective []*Grader `yaml:"-"`
	// Skills are the absolute paths of the directories with a SKILL.md for this task.
	Skills []string `yaml:"-" path:"file"`
	// Instructions are the resolved InstructionFiles.
	Instructions []InstructionFile `yaml:"-"`
	// Mocks are the effective mcp_mocks, see [surroundings.MergeMocks].
	Mocks []surroundings.MCPMock `yaml:"-"`
}

// Inputs are the prompt, the files and the settings that a task gives to the agent.
type Inputs struct {
	// Prompt for the agent. It can use template variables: {{name}} is an input of the suite or a
	// column of the dataset, {{context.key}} a value of context, {{fixture:FILE}} the text of a
	// fixture of at most 1 MiB. Built-in variables are run_id, timestamp, trial, attempt, task_id,
	// task_name and model.
	Prompt string `yaml:"prompt"`
	// File that contains the prompt, relative to the task file and inside the suite's directory.
	PromptFile string `yaml:"prompt_file" jsonschema_extras:"x-refers=task-file-neighbour" path:"maybe"`
	// Text of the task that precedes its prompt: the last part of the system prompt before skills for
	// models, instructions for agents. It is sent as written.
	SystemPrompt string `yaml:"system_prompt"`
	// Messages of a conversation before the prompt, as if the model had given its answers. They are sent as
	// written. Only models take them: trials with another executor end in an error.
	History []Message `yaml:"history" json:",omitempty"`
	// More prompts, sent in the same session and workspace.
	FollowUpPrompts []string `yaml:"follow_up_prompts"`
	// Model that replies to the agent like its user, in place of follow_up_prompts.
	Responder *surroundings.Responder `yaml:"responder"`
	// Graders that run after a turn, while the agent waits.
	Checkpoints []Checkpoint `yaml:"checkpoints"`
	// Tool that a remote agent must use; chat when absent. It can use template variables. This key and
	// the next three have an effect only with executor remote.
	Tool string `yaml:"tool"`
	// Address that the tool of a remote agent works on. It can use template variables.
	URL string `yaml:"url"`
	// Input for the tool of a remote agent: any value, whose texts can use template variables; {message: PROMPT} when absent.
	Input any `yaml:"input"`
	// Priority of the task among the tasks that wait for remote agents; normal when absent.
	Priority string `yaml:"priority" jsonschema:"enum=low,enum=normal,enum=high"`
	// Confidence of speech recognition in the prompt, 0 to 1. With a value, the prompt is sent as
	// spoken, else as typed. It overrides config.router.voice and has an effect only with executor
	// router.
	Voice *float64 `yaml:"voice" jsonschema:"minimum=0,maximum=1"`
	// Files to put into the workspace.
	Files []InputFile `yaml:"files"`
	// Git repositories of this machine to put into the workspace, before files.
	Repos []surroundings.Repo `yaml:"repos"`
	// Shell commands that prepare the workspace before the agent starts, after repos and files. They run
	// in order, each in a shell of its own, in the sandbox of the task and with its environment variables,
	// and use no template variables. If a command fails, the trial is an error. All commands together can
	// take as long as the trial, whose own time starts after them.
	Setup []string `yaml:"setup"`
	// Folder of the workspace where the agent starts; the workspace itself when absent. waza creates the folder if it does not exist.
	Workdir string `yaml:"workdir"`
	// Values for templates and graders. waza puts the file that fixture names, relative to the suite,
	// into the workspace under its base name. If fixture names a folder, waza puts all its files
	// there.
	Context map[string]any `yaml:"context"`
	// Environment variables of the agent's process and of hooks.
	Environment map[string]string `yaml:"environment" path:"maybe"`
}

// A Message is one of the conversation before a prompt.
type Message struct {
	// Author of the message.
	Role string `yaml:"role" jsonschema:"required,enum=user,enum=assistant"`
	// Text of the message.
	Text string `yaml:"text" jsonschema:"required"`
}

// A Checkpoint grades a trial between two prompts, or after the last one. Its graders do not
// count in the trial's score, but a trial passes only if all of them pass.
type Checkpoint struct {
	// Number of the prompt after whose answer the graders run; 1 is the first.
	AfterTurn int `yaml:"after_turn" jsonschema:"required,minimum=1"`
	// Graders to run after that turn. Without any, the checkpoint only prepares the workspace.
	Graders []*Grader `yaml:"graders"`
	// Limit of the agent for that turn. When it is reached, waza ends the agent, the graders score what it left,
	// and the next prompt follows. If waza has to kill an ACP agent, which did not stop when it was asked to, the
	// trial fails at the next prompt. 0 means no limit.
	AgentTimeoutSeconds float64 `yaml:"agent_timeout_seconds" json:",omitempty" jsonschema:"minimum=0"`
	// Action if a grader does not pass. With continue, the trial fails at its end. With stop, it fails
	// at once, without further prompts and graders. With finish, the agent gets no further prompts, and
	// the graders of the task follow, also if the grader is optional.
	OnFailure string `yaml:"on_failure" jsonschema:"enum=continue,enum=stop,enum=finish,default=continue"`
	// Files to put into the workspace after the graders, before the next prompt. After the last prompt, waza
	// ends the agent with all its programs first, and the graders of the task find the files. If the prompts
	// end early, those of the checkpoint after the last prompt of the task follow.
	Files []InputFile `yaml:"files"`
	// Shell commands to run in the workspace after that, in the sandbox of the agent. If one fails, the
	// trial ends in an error. Files that they write between two prompts of an ACP agent count as files that
	// the agent created, because its process lives at that time.
	Setup []string `yaml:"setup"`
}

// SetupCommands returns the setup commands of the task, those of its checkpoints last. The caller owns
// the slice.
func (t *Task) SetupCommands() []string {
	all := slices.Clone(t.Inputs.Setup)
	for _, c := range t.Inputs.Checkpoints {
		all = append(all, c.Setup...)
	}
	return all
}

// The values of on_failure of checkpoints after which the agent gets no further prompts.
const (
	CheckpointStop   = "stop"   // the trial ends
	CheckpointFinish = "finish" // the graders of the task follow
)

// AllFiles returns the files of the task, those of its checkpoints last. The caller owns the slice.
func (t *Task) AllFiles() []InputFile {
	all := slices.Clone(t.Inputs.Files)
	for _, c := range t.Inputs.Checkpoints {
		all = append(all, c.Files...)
	}
	return all
}

// Turns returns the maximum number of prompts that the task sends.
func (t *Task) Turns() int {
	if r := t.Inputs.Responder; r != nil {
		return 1 + r.MaxFollowups
	}
	return 1 + len(t.Inputs.FollowUpPrompts)
}

// ServersFor returns the MCP servers of a task's agent, by name: those of the suite and of the task.
func (s *Suite) ServersFor(t *Task) map[string]any {
	if t == nil || len(t.MCPServers) == 0 {
		return s.Config.MCPServers
	}
	all := map[string]any{}
	maps.Copy(all, s.Config.MCPServers)
	maps.Copy(all, t.MCPServers)
	return all
}

// AllGraders returns the graders of the task: those that apply at its end, then those of its
// checkpoints. The caller owns the slice.
func (t *Task) AllGraders() []*Grader {
	all := slices.Clone(t.Effective)
	for _, c := range t.Inputs.Checkpoints {
		all = append(all, c.Graders...)
	}
	return all
}

// An InputFile is a file that waza puts into the workspace before a trial. In YAML it is a path,
// or a map with path and either content or source.
type InputFile struct {
	// Path in the workspace. Without content, it is also the path of the fixture, in the fixture directory, else relative to the task file.
	Path string `yaml:"path" jsonschema_extras:"x-refers=fixture"`
	// Text of the file; the text of the fixture when absent.
	Content *string `yaml:"content"`
	// File of the repository that waza puts at path, relative to the suite. Of a folder, waza puts all
	// files below path.
	From string `yaml:"source" json:",omitempty" jsonschema_extras:"x-refers=suite-file"`
	// Source is the absolute path of the fixture; empty for inline content.
	Source string `yaml:"-" path:"file"`
}

// Expected describes a good outcome.
type Expected struct {
	// Texts that the output must contain, in any letter case.
	OutputContains []string `yaml:"output_contains"`
	// Texts that the output must not contain, in any letter case.
	OutputNotContains []string `yaml:"output_not_contains"`
	// Texts, at least one of which the output must contain, in any letter case.
	OutputContainsAny []string `yaml:"output_contains_any"`
	// Regular expressions (RE2, any letter case) that the output must match.
	Matches []string `yaml:"matches"`
	// Limits on the agent's steps, tools, tokens and time.
	Behavior *ExpectedBehavior `yaml:"behavior"`
	// Tool calls that the agent must or must not make.
	ToolCalls *ExpectedToolCalls `yaml:"tool_calls"`
	// Whether the agent should use the skill under test.
	ShouldTrigger *bool `yaml:"should_trigger"`
	// Clients that must receive the message, in any order and letter case, and no others. An empty
	// list means that no client may receive it. It has an effect only with executor router.
	Recipients []string `yaml:"recipients" json:",omitzero" jsonschema_extras:"x-refers=client"`
	// Outcomes that the agent must reach.
	Outcomes []ExpectedOutcome `yaml:"outcomes"`
}

// ExpectedBehavior limits the agent's work. waza does not check absent limits.
type ExpectedBehavior struct {
	// Maximum number of tool calls.
	MaxToolCalls *int `yaml:"max_tool_calls" jsonschema:"minimum=0"`
	// Maximum number of turns of the agent.
	MaxIterations *int `yaml:"max_iterations" jsonschema:"minimum=0"`
	// Maximum number of tokens, input and output together.
	MaxTokens *int `yaml:"max_tokens" jsonschema:"minimum=0"`
	// Maximum time from prompt to answer in milliseconds.
	MaxResponseTimeMS *int64 `yaml:"max_response_time_ms" jsonschema:"minimum=0"`
	// Tools that the agent must use.
	RequiredTools []string `yaml:"required_tools"`
	// Tools that the agent must not use.
	ForbiddenTools []string `yaml:"forbidden_tools"`
}

// ExpectedToolCalls lists tool calls that the agent must or must not make.
type ExpectedToolCalls struct {
	// Calls that the agent must make, at most 200. The tool scores of a trial show how many of them it
	// made, and how many of their arguments are right.
	Required []ExpectedToolCall `yaml:"required"`
	// Calls that the agent must not make.
	Forbidden []ExpectedToolCall `yaml:"forbidden"`
}

// MaxExpectedCalls limits the number of calls that a list of expected calls requires.
const MaxExpectedCalls = 200

// An ExpectedToolCall matches tool calls.
type ExpectedToolCall struct {
	// Exact name of the tool. It can use template variables.
	Tool string `yaml:"tool"`
	// Values of arguments by name; a name with dots leads into maps. waza compares them as JSON
	// values, numbers by value. Texts can use template variables. Arguments that are not listed can
	// have any value.
	Arguments map[string]any `yaml:"arguments"`
	// Regular expression for the tool's name, in any letter case.
	Pattern string `yaml:"pattern"`
	// Regular expression for the arguments as JSON text, in any letter case.
	ArgsPattern string `yaml:"args_pattern"`
	// Minimum number of such calls.
	Count int `yaml:"count" jsonschema:"minimum=1"`
}

// An ExpectedOutcome is an outcome that the agent must reach.
type ExpectedOutcome struct {
	// task_completed: the executor ended normally. tool_called: the agent called a tool.
	Type string `yaml:"type" jsonschema:"required"`
	// Exact name of the tool for tool_called.
	ToolName string `yaml:"tool_name"`
	// The same as tool_name.
	Value string `yaml:"value"`
}

// The outcomes that waza grades.
const (
	OutcomeCompleted  = "task_completed"
	OutcomeToolCalled = "tool_called"
)

// CalledTool returns the tool that an outcome of type [OutcomeToolCalled] requires.
func (o *ExpectedOutcome) CalledTool() string { return cmp.Or(o.ToolName, o.Value) }

// TrialVars are the template variables that differ between trials.
type TrialVars struct {
	RunID   string
	Trial   int // 1-based
	Attempt int // 1-based
	// Model and Params are from the trial's combination of config.models and config.matrix;
	// Model can be empty.
	Model  string
	Params map[string]string
}
