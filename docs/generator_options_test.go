package docs_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/surroundings"
)

// completeSchema adds what the Go types lack: shapes, the options of the vocabulary, keys without
// effect.
func (g *generator) completeSchema(r *jsonschema.Reflector, defs jsonschema.Definitions, of any) {
	add := func(v any) *jsonschema.Schema {
		s := r.Reflect(v)
		for name, def := range s.Definitions {
			if _, ok := defs[name]; !ok {
				defs[name] = def
			}
		}
		return s
	}
	if _, isSuite := of.(eval.Suite); isSuite {
		add(eval.Task{})
		add(eval.Metric{})
		named := *defs["Metric"]
		named.Required = nil
		defs["NamedMetric"] = &named
		suiteTasks(defs["Suite"])
	}
	for _, v := range []decode.Defaulter{
		&eval.Config{}, &eval.Metric{}, &surroundings.Hook{}, &eval.Task{}, &eval.ExpectedToolCall{}, &surroundings.Sandbox{},
	} {
		v.SetDefaults()
		setDefaults(defs[reflect.TypeOf(v).Elem().Name()], v)
	}
	for _, t := range []reflect.Type{
		reflect.TypeFor[eval.Suite](), reflect.TypeFor[eval.Config](), reflect.TypeFor[eval.Task](),
		reflect.TypeFor[eval.Inputs](), reflect.TypeFor[eval.ExpectedOutcome](),
	} {
		addIdleKeys(defs[t.Name()], t)
	}
	for _, name := range []string{"Fleet", "Hook", "InputFile", "Solution", "TriggerPrompt"} {
		if def := defs[name]; def != nil {
			whole := *def
			*def = jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, &whole}}
		}
	}
	if def := defs["InputFile"]; def != nil {
		def.AnyOf[0].Extras = refers("fixture")
	}
	if def := defs["Solution"]; def != nil {
		def.AnyOf[0].Extras = refers("suite-file")
	}
	if def := defs["Stopping"]; def != nil {
		whole := *def
		*def = jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "boolean"}, {Type: "number", Minimum: "0.5", Maximum: "1"}, &whole}}
	}
	if def := defs["Sandbox"]; def != nil {
		whole := *def
		mode, _ := def.Properties.Get("mode")
		*def = jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string", Enum: mode.Enum}, &whole}}
	}
	if task := defs["Task"]; task != nil {
		inputs := defs["Inputs"]
		for p := inputs.Properties.Oldest(); p != nil; p = p.Next() {
			setMissing(task, p.Key, p.Value)
		}
	}
	if def := defs["Grader"]; def != nil {
		g.addGraderOptions(def, add)
	}
	if def := defs["Config"]; def != nil {
		g.addExecutorOptions(def, defs, add)
	}
}

func setMissing(s *jsonschema.Schema, key string, value *jsonschema.Schema) {
	if _, ok := s.Properties.Get(key); !ok {
		s.Properties.Set(key, value)
	}
}

// refers marks a value as the name of something, for editors. They complete it, describe its
// target and open that. Fields use a tag for this; package assist documents each word.
func refers(to string) map[string]any { return map[string]any{"x-refers": to} }

// setDefaults adds the meaning of absent keys: the values in a fresh struct that are not zero,
// unless the schema already contains a default.
func setDefaults(s *jsonschema.Schema, fresh any) {
	if s == nil || s.Properties == nil {
		return
	}
	v := reflect.ValueOf(fresh).Elem()
	for _, f := range decode.FieldsOf(v.Type()) {
		p, ok := s.Properties.Get(f.Name)
		if value := v.FieldByIndex(f.Index); ok && p.Default == nil && isPlain(value) {
			p.Default = value.Interface()
		}
	}
}

// fillDefaults adds the defaults of a struct and of the structs in it.
func fillDefaults(defs jsonschema.Definitions, v reflect.Value) {
	setDefaults(defs[typeName(v.Type())], v.Addr().Interface())
	for _, f := range decode.FieldsOf(v.Type()) {
		if child := v.FieldByIndex(f.Index); child.Kind() == reflect.Struct {
			fillDefaults(defs, child)
		}
	}
}

// isPlain reports whether a value is a number, a text, true or a list, and not zero.
func isPlain(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Bool, reflect.String, reflect.Slice:
		return !v.IsZero()
	}
	return (v.CanInt() || v.CanFloat()) && !v.IsZero()
}

func suiteTasks(suite *jsonschema.Schema) {
	item := &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, {Ref: "#/$defs/Task"}}}
	suite.Properties.Set("tasks", &jsonschema.Schema{
		Description: "File patterns of tasks, relative to the suite, and inline tasks.",
		Extras:      refers("task-files"),
		AnyOf:       []*jsonschema.Schema{{Type: "string"}, {Type: "array", Items: item}},
	})
	suite.Properties.Set("trigger_tests", &jsonschema.Schema{
		Description: "Trigger tests, in place of trigger_tests.yaml beside the suite and with the same keys.",
		Type:        "object",
	})
}

func addIdleKeys(def *jsonschema.Schema, t reflect.Type) {
	if def == nil {
		return
	}
	idle := eval.WithoutEffect(t)
	for _, key := range slices.Sorted(maps.Keys(idle)) {
		setMissing(def, key, &jsonschema.Schema{Description: "No effect: " + idle[key] + ".", Deprecated: true})
	}
}

// addGraderOptions makes the options of a grader depend on its type. They can be in config, or
// beside it.
func (g *generator) addGraderOptions(def *jsonschema.Schema, add func(any) *jsonschema.Schema) {
	def.AdditionalProperties = nil
	def.Extras = map[string]any{"unevaluatedProperties": false}
	def.Required = []string{"type"}
	def.Properties.Set("config", &jsonschema.Schema{Type: "object", Description: "Options of the grader; they depend on its type."})
	def.Properties.Set("assertions", &jsonschema.Schema{Description: "The same as config.assertions."})
	if g.vocabulary == nil || len(g.vocabulary.Graders) == 0 {
		delete(def.Extras, "unevaluatedProperties")
		return
	}
	kind, _ := def.Properties.Get("type")
	for _, k := range g.vocabulary.Graders {
		names := []any{k.Name}
		for _, a := range k.Aliases {
			names = append(names, a)
		}
		kind.Enum = append(kind.Enum, names...)
		if k.Options == nil {
			continue
		}
		options := add(k.Options())
		setDefaults(options.Definitions[refName(options.Ref)], k.Options())
		then := jsonschema.NewProperties()
		then.Set("config", &jsonschema.Schema{Ref: options.Ref, Description: strings.TrimSpace(k.Summary)})
		if o := options.Definitions[refName(options.Ref)]; o != nil {
			o.Required = nil // an option can be in config or beside it
			for p := o.Properties.Oldest(); p != nil; p = p.Next() {
				if _, own := def.Properties.Get(p.Key); !own || p.Key == "assertions" {
					then.Set(p.Key, p.Value)
				}
			}
		}
		condition := jsonschema.NewProperties()
		condition.Set("type", &jsonschema.Schema{Enum: names})
		def.AllOf = append(def.AllOf, &jsonschema.Schema{
			If:   &jsonschema.Schema{Properties: condition, Required: []string{"type"}},
			Then: &jsonschema.Schema{Properties: then},
		})
	}
}

// addExecutorOptions adds the options of all executors to config, because the command line can
// choose which executor is used.
func (g *generator) addExecutorOptions(config *jsonschema.Schema, defs jsonschema.Definitions, add func(any) *jsonschema.Schema) {
	if g.vocabulary == nil || len(g.vocabulary.Executors) == 0 {
		config.AdditionalProperties = nil
		return
	}
	name, _ := config.Properties.Get("executor")
	for _, k := range g.vocabulary.Executors {
		name.Enum = append(name.Enum, k.Name)
		for _, a := range k.Aliases {
			name.Enum = append(name.Enum, a)
		}
		if k.Options == nil {
			continue
		}
		options := add(k.Options())
		o := options.Definitions[refName(options.Ref)]
		setDefaults(o, k.Options())
		if o == nil || o.Properties == nil {
			config.AdditionalProperties = nil
			continue
		}
		for p := o.Properties.Oldest(); p != nil; p = p.Next() {
			addOption(config, p.Key, p.Value)
		}
		delete(defs, refName(options.Ref))
	}
}

// addOption sets a property. If two executors have an option of the same name, it allows both types.
func addOption(s *jsonschema.Schema, key string, value *jsonschema.Schema) {
	before, ok := s.Properties.Get(key)
	if !ok || sameSchema(before, value) {
		s.Properties.Set(key, value)
		return
	}
	s.Properties.Set(key, &jsonschema.Schema{AnyOf: []*jsonschema.Schema{before, value}})
}

func sameSchema(a, b *jsonschema.Schema) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

func refName(ref string) string { return strings.TrimPrefix(ref, "#/$defs/") }

// relax allows numbers and booleans in place of texts, like the decoder: `version: 1.0` is a
// text that YAML reads as a number.
func relax(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if s.Type == "string" && len(s.Enum) == 0 {
		s.Type = ""
		if s.Extras == nil {
			s.Extras = map[string]any{}
		}
		s.Extras["type"] = []string{"string", "number", "boolean"}
	}
	for _, sub := range slices.Concat(s.AllOf, s.AnyOf, s.OneOf, []*jsonschema.Schema{s.Items, s.Then}) {
		relax(sub)
	}
	if s.AdditionalProperties != jsonschema.FalseSchema {
		relax(s.AdditionalProperties)
	}
	if s.Properties != nil {
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			relax(p.Value)
		}
	}
}

func prune(s *jsonschema.Schema) {
	for {
		data, err := json.Marshal(s)
		if err != nil {
			return
		}
		before := len(s.Definitions)
		for name := range s.Definitions {
			if !strings.Contains(string(data), `"#/$defs/`+name+`"`) {
				delete(s.Definitions, name)
			}
		}
		if len(s.Definitions) == before {
			return
		}
	}
}
