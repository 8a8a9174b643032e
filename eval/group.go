package eval

import (
	"waza/eval/decode"
	"waza/eval/text"
)

// GroupOptions are the options of a kind of grader that decides by other graders. The loader puts its
// graders in its place, each with the group, so that a group is only a rule of arithmetic and no
// grader runs in another one.
type GroupOptions struct {
	// Graders of the group.
	Graders []*Grader `yaml:"graders" path:"-" jsonschema:"required"`
	// Least weighted mean of their scores, 0 to 1, for the group to pass. When absent, all must pass.
	Threshold *float64 `yaml:"threshold" jsonschema:"minimum=0,maximum=1"`
}

// A GraderGroup is a group of graders as its members know it. It is immutable.
type GraderGroup struct {
	Name      string   `json:"name"`
	Weight    float64  `json:"weight"`
	Threshold *float64 `json:"threshold,omitempty"`
	Optional  bool     `json:"optional,omitempty"`
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
	for _, m := range options.Graders {
		m.Group = group
	}
	return l.loadAmong(options.Graders, task, names, lines)
}
