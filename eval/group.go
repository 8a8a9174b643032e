package eval

import (
	"slices"

	"waza/eval/decode"
	"waza/eval/text"
)

// GroupOptions are the options of a kind of grader that decides by other graders. The loader puts its
// graders in its place, each with the group, so that a group is only a rule of arithmetic and no
// grader runs in another one.
type GroupOptions struct {
	// Graders of the group.
	Graders []*Grader `yaml:"graders" path:"-" jsonschema:"required"`
	// Least score of the group, 0 to 1, for the group to pass. When absent, all must pass.
	Threshold *float64 `yaml:"threshold" jsonschema:"minimum=0,maximum=1"`
	// How their scores become the score of the group. mean is the weighted mean. median and min need
	// threshold, and the median of an even number is the mean of the two in the middle. With majority, the
	// group passes when more than half of them pass, and its score is the share of those. Only mean uses weights.
	Aggregate Aggregate `yaml:"aggregate" jsonschema:"enum=mean,enum=median,enum=min,enum=majority,default=mean"`
}

// Aggregate is the rule by which the opinions of graders become that of their group.
type Aggregate string

// The rules of groups. The empty one is the mean.
const (
	Mean     Aggregate = "mean"
	Median   Aggregate = "median"
	Min      Aggregate = "min"
	Majority Aggregate = "majority"
)

// Known reports whether groups have the rule.
func (a Aggregate) Known() bool {
	return slices.Contains([]Aggregate{"", Mean, Median, Min, Majority}, a)
}

// A GraderGroup is a group of graders as its members know it. It is immutable.
type GraderGroup struct {
	Name      string   `json:"name"`
	Weight    float64  `json:"weight"`
	Threshold *float64 `json:"threshold,omitempty"`
	Optional  bool     `json:"optional,omitempty"`
	// Aggregate is empty for the mean.
	Aggregate Aggregate `json:"aggregate,omitempty"`
}

// members loads the graders of a group.
func (l graderLoader) members(g *Grader, options *GroupOptions, task *Task, names map[string]bool, lines map[string]int) []*Grader {
	d := l.decoder(g.src)
	at := decode.Place(g.node, "negate")
	switch {
	case g.Group != nil:
		d.Report(decode.Place(g.node, "type"), decode.Error, decode.CodeInvalidValue, "",
			"group %q is in another group; put its graders into that group", text.Clip(g.Name, 60))
		return nil
	case g.Negate:
		d.Report(at, decode.Error, decode.CodeInvalidValue, "", "negate cannot be used with a group; negate its graders")
	case options.Graders != nil && len(options.Graders) == 0:
		d.Report(g.node, decode.Error, decode.CodeMissingField, "", "group %q has no graders", text.Clip(g.Name, 60))
	}
	group := &GraderGroup{Name: g.Name, Weight: g.Weight, Threshold: options.Threshold, Optional: g.Optional}
	if options.Aggregate != Mean {
		group.Aggregate = options.Aggregate
	}
	l.checkAggregate(g, options, group.Aggregate)
	for _, m := range options.Graders {
		m.Group, m.NeedsSteps = group, m.NeedsSteps || g.NeedsSteps
	}
	return l.loadAmong(options.Graders, task, names, lines)
}

// checkAggregate reports options of a group that contradict its rule.
func (l graderLoader) checkAggregate(g *Grader, options *GroupOptions, rule Aggregate) {
	if rule == "" || !rule.Known() { // unknown ones are reported by their schema
		return
	}
	d := l.decoder(g.src)
	switch {
	case rule == Majority && options.Threshold != nil:
		d.Report(decode.Place(g.node, "config", "threshold"), decode.Error, decode.CodeInvalidValue, "",
			"a group with aggregate: majority has no threshold: more than half of its graders must pass, each by its own rule")
	case rule != Majority && options.Threshold == nil:
		d.Report(decode.Place(g.node, "config", "aggregate"), decode.Error, decode.CodeMissingField, "",
			"a group with aggregate: %s needs a threshold", rule)
	}
	for _, m := range options.Graders {
		if decode.Lookup(m.node, "weight") != nil {
			d.Report(decode.Place(m.node, "weight"), decode.Error, decode.CodeNoEffect, "",
				"weights have no effect in a group with aggregate: %s, which counts each grader once", rule)
		}
	}
}
