package eval

import (
	_ "embed"
	"slices"
)

var (
	//go:embed schema/eval.schema.json
	suiteSchema []byte
	//go:embed schema/task.schema.json
	taskSchema []byte
	//go:embed schema/trigger_tests.schema.json
	triggerTestsSchema []byte
)

// SuiteSchema returns the JSON Schema (2020-12) of eval.yaml. The caller owns
// the slice.
func SuiteSchema() []byte { return slices.Clone(suiteSchema) }

// TaskSchema returns the JSON Schema (2020-12) of task files. The caller owns
// the slice.
func TaskSchema() []byte { return slices.Clone(taskSchema) }

// TriggerTestsSchema returns the JSON Schema (2020-12) of trigger_tests.yaml.
// The caller owns the slice.
func TriggerTestsSchema() []byte { return slices.Clone(triggerTestsSchema) }
