package surroundings

import (
	"gopkg.in/yaml.v3"

	"waza/eval/decode"
)

// Hooks are shell commands before and after a run and its tasks.
type Hooks struct {
	// Commands to run before the first trial of the run.
	BeforeRun []Hook `yaml:"before_run"`
	// Commands to run after the last trial of the run.
	AfterRun []Hook `yaml:"after_run"`
	// Commands to run before the first trial of each task, in a sandbox that lasts until the end of the task.
	BeforeTask []Hook `yaml:"before_task"`
	// Commands to run after the last trial of each task, in the same sandbox.
	AfterTask []Hook `yaml:"after_task"`
}

// A Hook is one command for sh -c.
type Hook struct {
	// Shell command.
	Command string `yaml:"command" jsonschema:"required"`
	// Directory to run in, relative to the suite's directory, which is the default.
	WorkingDirectory string `yaml:"working_directory" jsonschema_extras:"x-refers=suite-directory"`
	// Exit codes that count as success.
	ExitCodes []int `yaml:"exit_codes"`
	// Whether any other exit code makes the run or the task an error.
	ErrorOnFail bool `yaml:"error_on_fail"`
}

// SetDefaults makes 0 the only exit code that counts as success.
func (h *Hook) SetDefaults() { h.ExitCodes = []int{0} }

// DecodeShape decodes a command, or a map.
func (h *Hook) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	d.TextOr(n, &h.Command, h)
}
