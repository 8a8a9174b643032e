// Package schemafiles contains the JSON Schemas of the files that package eval reads. The tests of
// docs/ generate them from the types of eval, so that programs need no Go sources. Call [Suite], [Task], [TriggerTests] or [Project].
package schemafiles

import (
	_ "embed"
	"slices"
)

var (
	//go:embed eval.schema.json
	suiteSchema []byte
	//go:embed task.schema.json
	taskSchema []byte
	//go:embed trigger_tests.schema.json
	triggerTestsSchema []byte
	//go:embed project.schema.json
	projectSchema []byte
)

// Suite returns the JSON Schema (2020-12) of eval.yaml. The caller owns
// the slice.
func Suite() []byte { return slices.Clone(suiteSchema) }

// Task returns the JSON Schema (2020-12) of task files. The caller owns
// the slice.
func Task() []byte { return slices.Clone(taskSchema) }

// Project returns the JSON Schema (2020-12) of .waza.yaml. The caller owns
// the slice.
func Project() []byte { return slices.Clone(projectSchema) }

// TriggerTests returns the JSON Schema (2020-12) of trigger_tests.yaml.
// The caller owns the slice.
func TriggerTests() []byte { return slices.Clone(triggerTestsSchema) }
