package eval

import (
	"maps"
	"reflect"
)

// withoutEffect holds keys of other generations and tools of the format that
// are understood and do nothing here. They get a sentence instead of a guess at
// a typing error. Older names of keys that do have an effect are `alias` tags of
// their fields.
var withoutEffect = map[reflect.Type]map[string]string{
	reflect.TypeFor[Suite](): {
		"mcp_mocks":     "mocked MCP servers are not supported",
		"command_mocks": "mocked commands are not supported",
		"adversarial":   "fault injection is not supported",
		"scenario":      "suites are known by their name and skill",
		"checkpoints":   "graders run once, at the end of a trial",
	},
	reflect.TypeFor[Config](): {
		"reasoning_effort":       "executors take it among their own parameters",
		"judge_reasoning_effort": "judges take it among their own parameters",
		"trigger_skill_routing":  "prompts are sent as they are written",
	},
	reflect.TypeFor[Task](): {
		"golden":                      "every task counts the same",
		"first_event_timeout_seconds": "it is set for the whole suite, in config",
		"instruction_files":           "they are set for the whole suite, in config",
		"checkpoints":                 "graders run once, at the end of a trial",
		"responder":                   "write the further prompts in follow_up_prompts",
	},
	reflect.TypeFor[ExpectedOutcome](): {
		"value":     "an outcome is met or not",
		"condition": "an outcome is met or not",
		"tool_name": "write the tool under tool_calls",
	},
	reflect.TypeFor[Inputs](): {
		"repos":     "put the files under files",
		"workdir":   "the agent starts in the workspace",
		"responder": "write the further prompts in follow_up_prompts",
	},
}

// WithoutEffect returns the keys of a type of this package that are understood
// and do nothing, each with the reason. The caller owns the map.
func WithoutEffect(t reflect.Type) map[string]string { return maps.Clone(withoutEffect[t]) }
