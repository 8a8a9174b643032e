package eval

import (
	"encoding/json"
)

// portable is a suite as a trial needs it, in another process as in this one.
type portable struct {
	File         string            `json:"file"`
	Dir          string            `json:"dir"`
	Root         string            `json:"root"`
	Fixtures     string            `json:"fixtures,omitempty"`
	Name         string            `json:"name"`
	Description  string            `json:"description,omitempty"`
	Skill        string            `json:"skill,omitempty"`
	Version      string            `json:"version,omitempty"`
	Config       Config            `json:"config"`
	Inputs       map[string]string `json:"inputs,omitempty"`
	Instructions []InstructionFile `json:"instructions,omitempty"`
	Options      map[string]any    `json:"options,omitempty"`
	Skills       []SkillIn         `json:"skills,omitempty"`
}

// MarshalJSON encodes what a trial needs of its suite: where its files are, its
// config, the options of executors and the names of skills. Tasks, graders, hooks and
// what only editors need are left out.
func (s *Suite) MarshalJSON() ([]byte, error) {
	return json.Marshal(portable{
		File: s.File, Dir: s.Dir, Root: s.Root(), Fixtures: s.contextDir, Name: s.Name, Description: s.Description, Skill: s.Skill, Version: s.Version,
		Config: s.Config, Inputs: s.Inputs, Instructions: s.Instructions, Options: s.ExecutorOptions, Skills: s.Skills(),
	})
}

// UnmarshalJSON decodes what MarshalJSON encodes. Options of executors are
// [json.RawMessage] until [DecodeOptions] gives them their types.
func (s *Suite) UnmarshalJSON(b []byte) error {
	raw := struct {
		*portable
		Options map[string]json.RawMessage `json:"options"`
	}{portable: &portable{}}
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	p := raw.portable
	*s = Suite{
		File: p.File, Dir: p.Dir, Name: p.Name, Description: p.Description, Skill: p.Skill, Version: p.Version,
		Config: p.Config, Inputs: p.Inputs, Instructions: p.Instructions, rootDir: p.Root, contextDir: p.Fixtures,
	}
	for name, options := range raw.Options {
		if s.ExecutorOptions == nil {
			s.ExecutorOptions = map[string]any{}
		}
		s.ExecutorOptions[name] = options
	}
	for _, sk := range p.Skills {
		s.skills = append(s.skills, skill{dir: sk.Dir, names: sk.Names})
	}
	return nil
}

// grader is a [Grader] as it is encoded: as a trial needs it.
type grader struct {
	Name      string          `json:"name"`
	Type      string          `json:"type"`
	TypeAlias string          `json:"typeAlias,omitempty"`
	Weight    float64         `json:"weight"`
	Rubric    string          `json:"rubric,omitempty"`
	Options   json.RawMessage `json:"options,omitempty"`
	File      string          `json:"file,omitempty"`
	Line      int             `json:"line,omitempty"`
	Column    int             `json:"column,omitempty"`
}

// MarshalJSON encodes what it takes to build the grader.
func (g *Grader) MarshalJSON() ([]byte, error) {
	w := grader{Name: g.Name, Type: g.Type, TypeAlias: g.TypeAlias, Weight: g.Weight, Rubric: g.Rubric, File: g.File, Line: g.Line, Column: g.Column}
	if g.Options != nil {
		b, err := json.Marshal(g.Options)
		if err != nil {
			return nil, err
		}
		w.Options = b
	}
	return json.Marshal(w)
}

// UnmarshalJSON decodes what MarshalJSON encodes. Options is a [json.RawMessage]
// until [DecodeOptions] gives it its type.
func (g *Grader) UnmarshalJSON(b []byte) error {
	var w grader
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*g = Grader{Name: w.Name, Type: w.Type, TypeAlias: w.TypeAlias, Weight: w.Weight, Rubric: w.Rubric, File: w.File, Line: w.Line, Column: w.Column}
	if w.Options != nil {
		g.Options = w.Options
	}
	return nil
}

// DecodeOptions gives options that were encoded as JSON the type that their kind
// declares. Other options come back as they are.
func DecodeOptions(k Kind, options any) (any, error) {
	raw, ok := options.(json.RawMessage)
	if !ok || k.Options == nil {
		return options, nil
	}
	typed := k.Options()
	return typed, json.Unmarshal(raw, typed)
}
