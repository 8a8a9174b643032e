package record_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
)

// The models of a run are those of its tasks: their own, else that of their cell, else that of the run.
func TestModelText(t *testing.T) {
	t.Parallel()
	x, y := &record.Cell{Name: "x", Model: "mx"}, &record.Cell{Name: "y"}
	for name, c := range map[string]struct {
		tasks []record.TaskRef
		cell  *record.Cell
		want  string
	}{
		"run":              {[]record.TaskRef{{}, {Model: "else", Role: record.RoleTrigger}}, nil, "m"},
		"task":             {[]record.TaskRef{{}, {Model: "own"}, {Model: "own"}}, nil, "m, own"},
		"all tasks":        {[]record.TaskRef{{Model: "own"}}, nil, "own"},
		"cell":             {[]record.TaskRef{{Cell: x}, {Cell: y}}, x, "mx"},
		"cell without":     {[]record.TaskRef{{Cell: x}, {Cell: y}}, y, ""},
		"a task of a cell": {[]record.TaskRef{{Cell: x}, {Cell: x, Model: "own"}, {Cell: y, Model: "else"}}, x, "mx, own"},
	} {
		run := record.Run{Tasks: c.tasks}
		run.Config.Model = "m"
		require.Equal(t, c.want, run.ModelText(c.cell), name)
	}
}
