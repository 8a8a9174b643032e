package main

import (
	"context"
	"slices"
)

// A measure produces the figures of some rows of the table in one go.
type measure struct {
	title string
	rows  []row
	// how describes the measurement, and floor the work that no implementation can save. They are
	// paragraphs of the page.
	how, floor string
	// slow measures take minutes. The option -short leaves them out.
	slow bool
	// run returns a figure for each row.
	run func(context.Context, *bench) ([]figure, error)
}

// A row is a line of the table.
type row struct {
	name, unit string
	target     target
	// guarded figures do not depend on the machine, so the guard compares them.
	guarded bool
}

// A target is the figure that waza has to reach. Zero fields demand nothing.
type target struct {
	most, least float64
	floors      float64 // at most so many times the floor
}

// A figure is a measured value beside its floor. A floor of 0 means that the row has none.
type figure struct {
	Value float64 `json:"value"`
	Floor float64 `json:"floor,omitempty"`
}

// measures lists all measures in the order of the table.
func measures() []measure {
	return []measure{
		startMeasure,
		trialMeasure,
		unreadMeasure,
		lateMeasure,
		allocationMeasure,
		efficiencyMeasure,
		statusMeasure,
		memoryMeasure,
		millionMeasure,
		commandMeasure,
		sandboxMeasure,
		agentMeasure,
		outputMeasure,
		cloneMeasure,
		programMeasure,
		fleetMeasure,
	}
}

// guarded reports whether the guard compares a figure of the measure.
func (m measure) guarded() bool {
	return slices.ContainsFunc(m.rows, func(r row) bool { return r.guarded })
}

// ratio returns the figure as a multiple of its floor, or 0 without a floor.
func (f figure) ratio() float64 {
	if f.Floor == 0 {
		return 0
	}
	return f.Value / f.Floor
}

// reached reports whether a figure reaches the target.
func (t target) reached(f figure) bool {
	return (t.most == 0 || f.Value <= t.most) && (t.least == 0 || f.Value >= t.least) && (t.floors == 0 || f.ratio() <= t.floors)
}
