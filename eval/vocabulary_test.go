package eval_test

import (
	"fmt"
	"strings"

	"waza/eval"
	"waza/eval/decode"
)

// textOptions and the types below replace the graders of the program, because eval is tested
// with its own vocabulary.
type textOptions struct {
	Contains      []string `yaml:"contains" alias:"must_contain"`
	NotContains   []string `yaml:"not_contains"`
	RegexMatch    []string `yaml:"regex_match" alias:"must_match"`
	RegexNotMatch []string `yaml:"regex_not_match" alias:"must_not_match"`
}

type codeOptions struct {
	Assertions []string `yaml:"assertions"`
	Language   string   `yaml:"language" jsonschema:"enum=python,enum=javascript"`
}

type programOptions struct {
	Command string   `yaml:"command" jsonschema:"required"`
	Args    []string `yaml:"args"`
	Timeout float64  `yaml:"timeout" jsonschema:"exclusiveMinimum=0"`
}

type promptOptions struct {
	Prompt string `yaml:"prompt"`
	Rubric string `yaml:"rubric"`
	Mode   string `yaml:"mode"`
}

type skillOptions struct {
	RequiredSkills  []string `yaml:"required_skills"`
	ForbiddenSkills []string `yaml:"forbidden_skills"`
}

type mockOptions struct {
	Mock *mockScript `yaml:"mock"`
}

type mockScript struct {
	Seed    int64       `yaml:"seed"`
	Replies []mockReply `yaml:"replies"`
}

type mockReply struct {
	Match  string `yaml:"match"`
	Output string `yaml:"output"`
}

type commandOptions struct {
	Command  []string          `yaml:"command" jsonschema:"required"`
	PromptAs string            `yaml:"prompt_as" jsonschema:"enum=stdin,enum=argument,enum=env"`
	Env      map[string]string `yaml:"env"`
}

type acpOptions struct {
	Agent       string `yaml:"agent"`
	Permissions string `yaml:"permissions" jsonschema:"enum=allow,enum=deny"`
}

type modelOptions struct {
	Params   map[string]any `yaml:"params"`
	MaxTurns int            `yaml:"max_turns" jsonschema:"minimum=1"`
}

func vocabulary() *eval.Vocabulary {
	anything := func() any { return &map[string]any{} }
	return &eval.Vocabulary{
		Executors: []eval.Kind{
			{Name: "mock", Options: func() any { return &mockOptions{} }, Check: checkMock},
			{
				Name: "command", Options: func() any { return &commandOptions{PromptAs: "stdin"} },
				Params: eval.ParamsInEnvironment, TakesSkills: true,
			},
			{Name: "acp", Options: func() any { return &acpOptions{} }},
			{Name: "openai", Options: func() any { return &modelOptions{MaxTurns: 10} }, Params: eval.ParamsInOption, MeasuresSpeed: true},
		},
		Graders: []eval.Kind{
			{Name: "text", Aliases: []string{"regex", "keyword"}, Options: func() any { return &textOptions{} }, Check: checkText},
			{Name: "code", Aliases: []string{"inline_script"}, Options: func() any { return &codeOptions{Language: "python"} }, Check: checkCode},
			{Name: "program", Options: func() any { return &programOptions{Timeout: 30} }, Check: checkProgram},
			{Name: "prompt", Aliases: []string{"llm"}, Options: func() any { return &promptOptions{} }, Check: checkPrompt},
			{Name: "file", Options: anything},
			{Name: "behavior", Options: anything},
			{Name: "action_sequence", Options: anything},
			{Name: "group", Options: func() any { return new(eval.GroupOptions) }},
			{Name: "skill_invocation", Options: func() any { return &skillOptions{} }, Check: checkSkills},
			{Name: "human"},
		},
		CheckFleet: checkFleet,
	}
}

// checkFleet replaces the rules of fleet addresses, which the program has.
func checkFleet(address string) (login bool, err error) {
	if strings.ToLower(address) != address {
		return false, fmt.Errorf("%q has capital letters", address)
	}
	return strings.Contains(address, "@"), nil
}

func checkMock(c *eval.Check, options any) {
	m := options.(*mockOptions).Mock
	if m == nil {
		return
	}
	for i, r := range m.Replies {
		c.Regexp(decode.At("mock", "replies", i, "match"), r.Match)
	}
}

func checkText(c *eval.Check, options any) {
	o := options.(*textOptions)
	for i, p := range o.RegexMatch {
		c.Regexp(decode.At("regex_match", i), p)
	}
	for i, p := range o.RegexNotMatch {
		c.Regexp(decode.At("regex_not_match", i), p)
	}
	if len(o.Contains)+len(o.NotContains)+len(o.RegexMatch)+len(o.RegexNotMatch) == 0 {
		c.Errorf(decode.At(), decode.CodeChecksNothing, "there is nothing to check")
	}
}

func checkCode(c *eval.Check, options any) {
	for i, a := range options.(*codeOptions).Assertions {
		if a == "" {
			c.Errorf(decode.At("assertions", i), decode.CodeBadAssertion, "the assertion is empty")
		}
	}
}

func checkProgram(c *eval.Check, options any) {
	o := options.(*programOptions)
	if o.Command == "schema" {
		c.Errorf(decode.At("args", 7), decode.CodeBadSchema, "no schema")
	}
	if o.Command == "absent" {
		c.Infof(decode.At("command"), decode.CodeUnavailable, "not installed")
	}
	for i, a := range o.Args {
		c.File(decode.At("args", i), a)
	}
}

func checkSkills(c *eval.Check, options any) {
	o := options.(*skillOptions)
	for i, name := range o.RequiredSkills {
		c.SkillName(decode.At("required_skills", i), name)
	}
	for i, name := range o.ForbiddenSkills {
		c.SkillName(decode.At("forbidden_skills", i), name)
	}
}

func checkPrompt(c *eval.Check, options any) {
	if o := options.(*promptOptions); c.Has(decode.At("mode")) {
		c.OneOf(decode.At("mode"), o.Mode, "independent", "pairwise")
	}
}
