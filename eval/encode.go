package eval

import (
	"encoding/json"

	"waza/eval/reach"
)

// suiteFields are the fields of a suite that a trial needs, in this process or another.
type suiteFields Suite

// portable completes them. Options have the type of their kind, or are [json.RawMessage].
type portable[Options any] struct {
	*suiteFields
	Options map[string]Options      `json:"options,omitempty"`
	Agents  map[string]ProjectAgent `json:"agents,omitempty"` // of .waza.yaml
	Skills  [][]string              `json:"skills,omitempty"` // their names
}

// MarshalJSON encodes what a trial needs of its suite: the places of its files, its config, the
// options of executors, the project's agents and the names of skills. It leaves out tasks,
// graders, hooks and everything that only editors need.
func (s *Suite) MarshalJSON() ([]byte, error) {
	fields := suiteFields(*s)
	fields.RootDir = s.Root()
	p := portable[any]{suiteFields: &fields, Options: s.ExecutorOptions}
	if s.Project != nil {
		p.Agents = s.Project.Agents
	}
	for _, sk := range s.skills {
		p.Skills = append(p.Skills, sk.Names)
	}
	return json.Marshal(p)
}

// UnmarshalJSON decodes the output of MarshalJSON. Options of executors are [json.RawMessage]
// until [DecodeOptions] gives them their types.
func (s *Suite) UnmarshalJSON(b []byte) error {
	p := portable[json.RawMessage]{suiteFields: &suiteFields{}}
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	*s = Suite(*p.suiteFields)
	s.Project, s.ExecutorOptions = &Project{Agents: p.Agents}, make(map[string]any, len(p.Options))
	for name, options := range p.Options {
		s.ExecutorOptions[name] = options
	}
	for _, names := range p.Skills {
		s.skills = append(s.skills, SkillIn{Names: names})
	}
	return nil
}

// grader is the part of a [Grader] that a trial needs.
type grader struct {
	Name       string          `json:"name"`
	Type       string          `json:"type"`
	TypeAlias  string          `json:"typeAlias,omitempty"`
	Weight     float64         `json:"weight"`
	Rubric     string          `json:"rubric,omitempty"`
	Turn       int             `json:"turn,omitempty"`
	Transform  string          `json:"transform,omitempty"`
	Negate     bool            `json:"negate,omitempty"`
	Optional   bool            `json:"optional,omitempty"`
	NeedsSteps bool            `json:"needsSteps,omitempty"`
	Group      *GraderGroup    `json:"group,omitempty"`
	Options    json.RawMessage `json:"options,omitempty"`
	Beside     string          `json:"beside,omitempty"` // see [reach.Beside]
	File       string          `json:"file,omitempty"`
	Line       int             `json:"line,omitempty"`
	Column     int             `json:"column,omitempty"`
}

// MarshalJSON encodes the parts that are needed to build the grader.
func (g *Grader) MarshalJSON() ([]byte, error) {
	w := grader{
		Name: g.Name, Type: g.Type, TypeAlias: g.TypeAlias, Weight: g.Weight, Rubric: g.Rubric, Turn: g.Turn,
		Transform: g.Transform, Negate: g.Negate, Optional: g.Optional, NeedsSteps: g.NeedsSteps, Group: g.Group,
		File: g.File, Line: g.Line, Column: g.Column,
	}
	if o, ok := g.Options.(interface{ DeclaredBeside() string }); ok {
		w.Beside = o.DeclaredBeside()
	}
	if g.Options != nil {
		b, err := json.Marshal(g.Options)
		if err != nil {
			return nil, err
		}
		w.Options = b
	}
	return json.Marshal(w)
}

// UnmarshalJSON decodes the output of MarshalJSON. Options are JSON until [DecodeOptions] gives
// them their type.
func (g *Grader) UnmarshalJSON(b []byte) error {
	var w grader
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*g = Grader{
		Name: w.Name, Type: w.Type, TypeAlias: w.TypeAlias, Weight: w.Weight, Rubric: w.Rubric, Turn: w.Turn,
		Transform: w.Transform, Negate: w.Negate, Optional: w.Optional, NeedsSteps: w.NeedsSteps, Group: w.Group,
		File: w.File, Line: w.Line, Column: w.Column,
	}
	if w.Options != nil {
		g.Options = encoded{w.Options, reach.Beside{BesideDir: w.Beside}}
	}
	return nil
}

// encoded holds options as JSON.
type encoded struct {
	json.RawMessage
	reach.Beside
}

// DecodeOptions converts options that were encoded as JSON to the type that their kind declares.
// It returns other options unchanged.
func DecodeOptions(k Kind, options any) (any, error) {
	e, ok := options.(encoded)
	if raw, plain := options.(json.RawMessage); plain {
		e, ok = encoded{RawMessage: raw}, true
	}
	if !ok || k.Options == nil {
		return options, nil
	}
	typed := k.Options()
	if o, ok := typed.(interface{ DeclaredIn(dir string) }); ok {
		o.DeclaredIn(e.BesideDir)
	}
	return typed, json.Unmarshal(e.RawMessage, typed)
}
