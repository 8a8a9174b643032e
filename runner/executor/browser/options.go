package browser

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/invopop/jsonschema"
	"gopkg.in/yaml.v3"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/text"
)

// Options are the keys of a suite's config for the browser executor.
type Options struct {
	// Assistant that carries out the prompts: the name or id of one of the user's assistants, or
	// a map that defines an assistant for each trial.
	Assistant AssistantSpec `yaml:"assistant"`
	// Id of the extension whose browser is used. By default any extension that is available for
	// evaluations, such as waza browser-agent. The browsers of people are used only if this key
	// names them.
	Extension string `yaml:"extension"`
	// Maximum number of the model's answers to one prompt. All answers except the last are tool
	// calls.
	MaxTurns int `yaml:"max_turns" jsonschema:"minimum=1,default=10"`
}

// AssistantSpec is one of the user's assistants, or an assistant that is made for each trial.
type AssistantSpec struct {
	// Named is the name or id of one of the user's assistants, or empty for an assistant that is
	// made.
	Named string `yaml:"-"`
	// Name of the assistant: 1 to 100 letters, digits, spaces and hyphens.
	Name string `yaml:"name" jsonschema:"default=evaluation"`
	// Instructions for the model, 10 to 10,000 characters. Template variables are expanded.
	Instructions string `yaml:"instructions" jsonschema:"required"`
	// Tools that the assistant can use; all ten by default.
	Capabilities []string `yaml:"capabilities"`
	// Model of the assistant. The default is config.model or, without it, the model with which
	// waza serve is configured.
	Model string `yaml:"model"`
}

// Capabilities are the tools of browser assistants.
var Capabilities = []string{
	"navigate", "click_element", "type_text", "scroll", "screenshot", "extract_text", "extract_links", "extract_tables", "get_dom",
	"highlight_element",
}

// Limits of assistants and commands.
const (
	maxName                          = 100
	minInstructions, maxInstructions = 10, 10_000
	maxCommand                       = 10_000
	defaultMaxTurns, maxMaxTurns     = 10, 100
	defaultName                      = "evaluation"
	assistantWanted                  = "the name or id of an assistant, or a map with instructions"
)

func newOptions() *Options { return &Options{MaxTurns: defaultMaxTurns} }

// DecodeShape accepts a string or a map.
func (a *AssistantSpec) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	switch n = decode.Follow(n); n.Kind {
	case yaml.ScalarNode:
		if a.Named = strings.TrimSpace(n.Value); a.Named == "" || n.Tag == "!!null" {
			d.WrongType(n, assistantWanted)
		}
	case yaml.MappingNode:
		a.Name = defaultName
		d.Structure(n, a, nil)
	default:
		d.WrongType(n, assistantWanted)
	}
}

// JSONSchemaExtend makes the schema accept a string, too, and lists the tools.
func (AssistantSpec) JSONSchemaExtend(s *jsonschema.Schema) {
	if p, ok := s.Properties.Get("capabilities"); ok {
		most, one := uint64(len(Capabilities)), uint64(1)
		p.MinItems, p.MaxItems, p.UniqueItems = &one, &most, true
		for _, name := range Capabilities {
			p.Items.Enum = append(p.Items.Enum, name)
		}
	}
	object := *s
	*s = jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, &object}}
}

// names matches the names of assistants. extensions matches the ids of extensions: UUIDs, and
// the ids that Chrome assigns.
var (
	names      = text.Pattern(`^[\p{L}\p{N} -]+$`)
	extensions = text.Pattern(`^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[a-p]{32})$`)
)

func check(c *eval.Check, o *Options) {
	a := &o.Assistant
	switch {
	case a.Named != "":
		if c.Has(decode.At("model")) && c.Suite().Config.Model != "" {
			c.Warnf(decode.At("model"), decode.CodeNoEffect, "model has no effect: the assistant %q has its own model", text.Clip(a.Named, maxName))
		}
	case !c.Has(decode.At("assistant")):
		c.Errorf(decode.At(), decode.CodeMissingField, "config.assistant is missing; set it to %s", assistantWanted)
	default:
		checkMade(c, a)
	}
	if o.Extension != "" && !extensions().MatchString(o.Extension) {
		c.Errorf(decode.At("extension"), decode.CodeInvalidValue,
			"extension must be the id of an extension, a UUID or 32 letters from a to p, got %q",
			text.Clip(o.Extension, 80))
	}
	if o.MaxTurns > maxMaxTurns {
		c.Errorf(decode.At("max_turns"), decode.CodeInvalidValue, "max_turns must be at most %d, got %d", maxMaxTurns, o.MaxTurns)
	}
	c.UnusedByAgents("only assistant.instructions configures a browser assistant")
}

// checkMade checks the definition of an assistant that is made for each trial.
func checkMade(c *eval.Check, a *AssistantSpec) {
	at := func(elems ...any) decode.Path { return append(decode.At("assistant"), elems...) }
	if n := utf8.RuneCountInString(a.Name); n < 1 || n > maxName || !names().MatchString(a.Name) {
		c.Errorf(at("name"), decode.CodeInvalidValue,
			"assistant.name must have 1 to %d letters, digits, spaces and hyphens, got %q", maxName,
			text.Clip(a.Name, 2*maxName))
	}
	if n := utf8.RuneCountInString(a.Instructions); n < minInstructions || n > maxInstructions {
		c.Errorf(at("instructions"), decode.CodeInvalidValue,
			"assistant.instructions must have %d to %d characters, got %d", minInstructions, maxInstructions, n)
	}
	if c.Has(at("capabilities")) && len(a.Capabilities) == 0 {
		c.Errorf(at("capabilities"), decode.CodeInvalidValue, "assistant.capabilities must not be empty; remove it to allow all tools")
	}
	for i, name := range a.Capabilities {
		if c.OneOf(at("capabilities", i), name, Capabilities...) && slices.Index(a.Capabilities, name) < i {
			c.Errorf(at("capabilities", i), decode.CodeInvalidValue, "assistant.capabilities contains %s twice", name)
		}
	}
	if a.Model != "" && c.Has(decode.At("model")) && c.Suite().Config.Model != "" {
		c.Warnf(decode.At("model"), decode.CodeNoEffect, "model has no effect: assistant.model overrides it")
	}
}
