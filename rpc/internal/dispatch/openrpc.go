package dispatch

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"waza/eval"
	"waza/eval/jsonwalk"
	"waza/eval/surroundings"
)

// A Protocol documents a protocol.
type Protocol struct {
	// Methods and Notifications describe their parameters and results. Spoken are methods that
	// another specification describes. Commands are those of workspace/executeCommand.
	Methods, Spoken, Commands, Notifications []Entry
}

// openRPC is an OpenRPC document. It has the members of the OpenRPC specification and
// x-notifications, which lists the notifications of the server.
type openRPC struct {
	OpenRPC       string             `json:"openrpc"`
	Info          openInfo           `json:"info"`
	Methods       []openMethod       `json:"methods"`
	Notifications []openNotification `json:"x-notifications"`
	Components    openComponents     `json:"components"`
}

type openInfo struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	Version     string `json:"version"`
}

type openMethod struct {
	Name           string        `json:"name"`
	Summary        string        `json:"summary"`
	Description    string        `json:"description,omitempty"`
	ParamStructure string        `json:"paramStructure"`
	Params         []openContent `json:"params"`
	Result         openContent   `json:"result"`
	Errors         []openRef     `json:"errors"`
}

type openNotification struct {
	Name    string             `json:"name"`
	Summary string             `json:"summary"`
	Params  *jsonschema.Schema `json:"params"`
}

// openContent is a content descriptor.
type openContent struct {
	Name        string             `json:"name"`
	Description string             `json:"description,omitempty"`
	Required    bool               `json:"required,omitempty"`
	Schema      *jsonschema.Schema `json:"schema"`
}

type openRef struct {
	Ref string `json:"$ref"`
}

type openComponents struct {
	Schemas map[string]*jsonschema.Schema `json:"schemas"`
	Errors  map[string]openError          `json:"errors"`
}

type openError struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
}

// OpenRPC describes the protocol as an OpenRPC document. version is that of the program.
func (p *Protocol) OpenRPC(version string) (json.RawMessage, error) {
	raw, err := jsonwalk.Encode(p.describe(version))
	if err != nil {
		return nil, err
	}
	return json.RawMessage(strings.ReplaceAll(string(raw), `"#/$defs/`, `"#/components/schemas/`)), nil
}

func (p *Protocol) describe(version string) *openRPC {
	d := &openRPC{
		OpenRPC:    "1.3.2",
		Info:       openInfo{"waza", "Evaluates AI agents. JSON-RPC 2.0, a message per line.", version},
		Components: openComponents{map[string]*jsonschema.Schema{}, map[string]openError{}},
	}
	var errors []openRef
	for _, c := range Codes {
		name := errorName(c)
		d.Components.Errors[name] = openError{c.Code, c.Message}
		errors = append(errors, openRef{"#/components/errors/" + name})
	}
	for _, m := range p.Methods {
		summary, rest, _ := strings.Cut(m.Doc, ". ")
		d.Methods = append(d.Methods, openMethod{
			Name: m.Name, Summary: strings.TrimSuffix(summary, "."), Description: rest, ParamStructure: "by-name",
			Params: d.params(m.Params), Result: openContent{Name: "result", Schema: d.schema(m.Result)}, Errors: errors,
		})
	}
	for _, n := range p.Notifications {
		d.Notifications = append(d.Notifications, openNotification{n.Name, n.Doc, d.schema(n.Params)})
	}
	return d
}

// errorName converts "Eval not found" to "evalNotFound".
func errorName(c CodeDoc) string {
	words := strings.Fields(c.Message)
	for i, w := range words {
		words[i] = strings.ToUpper(w[:1]) + strings.ToLower(w[1:])
	}
	words[0] = strings.ToLower(words[0])
	return strings.Join(words, "")
}

// params returns one descriptor per parameter of a method.
func (d *openRPC) params(t reflect.Type) []openContent {
	r := reflector()
	r.ExpandedStruct, r.RequiredFromJSONSchemaTags = true, true
	whole := r.ReflectFromType(t)
	d.addDefinitions(whole)
	list := []openContent{}
	for _, p := range parametersOf(t) {
		schema, ok := whole.Properties.Get(p.Name)
		if !ok {
			continue
		}
		schema.Description = ""
		list = append(list, openContent{Name: p.Name, Description: p.Doc, Required: p.Required, Schema: schema})
	}
	return list
}

// schema describes a result or the parameters of a notification.
func (d *openRPC) schema(t reflect.Type) *jsonschema.Schema {
	if t.Kind() == reflect.Interface {
		return &jsonschema.Schema{Type: "null"}
	}
	if t == reflect.TypeFor[json.RawMessage]() {
		return &jsonschema.Schema{Type: "object"}
	}
	r := reflector()
	structs := map[string]reflect.Type{}
	r.Namer = func(t reflect.Type) string {
		name := schemaName(t)
		if t.Kind() == reflect.Struct && !selfDescribed(t) {
			structs[name] = t
		}
		return name
	}
	s := r.ReflectFromType(t)
	for name, def := range s.Definitions {
		if t := structs[name]; t != nil {
			allowNulls(def, t)
		}
	}
	d.addDefinitions(s)
	return s
}

// addDefinitions moves the definitions of a schema into the document.
func (d *openRPC) addDefinitions(s *jsonschema.Schema) {
	for name, def := range s.Definitions {
		d.Components.Schemas[name] = def
	}
	s.Definitions, s.Version = nil, ""
}

// customSchema returns the schema of types with their own JSON form, or nil.
func customSchema(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[eval.Matrix]():
		return &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Type: "array"}}
	case reflect.TypeFor[surroundings.Network]():
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{
			{Type: "string", Enum: []any{"open", "none"}}, {Type: "array", Items: &jsonschema.Schema{Type: "string"}},
		}}
	}
	return nil
}

// reflector returns a reflector that uses the doc tags as descriptions.
func reflector() *jsonschema.Reflector {
	return &jsonschema.Reflector{
		Anonymous: true, AllowAdditionalProperties: true, Namer: schemaName, Mapper: customSchema,
		LookupComment: func(t reflect.Type, field string) string {
			if t.Kind() != reflect.Struct {
				return ""
			}
			f, _ := t.FieldByName(field)
			return f.Tag.Get("doc")
		},
	}
}

func selfDescribed(t reflect.Type) bool {
	_, ok := reflect.Zero(t).Interface().(interface{ JSONSchema() *jsonschema.Schema })
	return ok
}

// allowNulls adds the null type, which the reflector omits: encoding/json writes a nil as null,
// unless omitempty leaves it out.
func allowNulls(s *jsonschema.Schema, t reflect.Type) {
	for _, f := range membersOf(t) {
		property, ok := s.Properties.Get(f.name)
		if !ok || f.omitted {
			continue
		}
		switch f.Type.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			s.Properties.Set(f.name, &jsonschema.Schema{
				Description: property.Description,
				OneOf:       []*jsonschema.Schema{property, {Type: "null"}},
			})
		}
	}
}

// jsonMember is a field as encoding/json writes it.
type jsonMember struct {
	reflect.StructField
	name    string
	omitted bool // when empty
}

// membersOf lists the members that encoding/json writes for a struct. Of fields with the same
// name it lists the least deeply embedded one, or none if there are several of those.
func membersOf(t reflect.Type) []jsonMember {
	all := map[string][]jsonMember{}
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || !f.IsExported() || name == "-" || name == "" {
			continue
		}
		if all[name] == nil {
			names = append(names, name)
		}
		all[name] = append(all[name], jsonMember{f, name, strings.Contains(options, "omit")})
	}
	var list []jsonMember
	for _, name := range names {
		slices.SortStableFunc(all[name], func(a, b jsonMember) int { return len(a.Index) - len(b.Index) })
		if same := all[name]; len(same) == 1 || len(same[0].Index) < len(same[1].Index) {
			list = append(list, same[0])
		}
	}
	return list
}

// schemaName returns different names for types of the same name in different packages.
func schemaName(t reflect.Type) string {
	name := t.Name()
	if name == "" {
		return ""
	}
	name = strings.ToUpper(name[:1]) + name[1:]
	return prefixes[t.PkgPath()[strings.LastIndex(t.PkgPath(), "/")+1:]] + name
}

// prefixes maps the last element of a package's path to the prefix of its types' names. Types of
// other packages have no prefix.
var prefixes = map[string]string{
	"eval": "Eval", "decode": "Eval", "discover": "Eval", "executor": "Executor", "grader": "Grader",
	"journal": "Journal", "report": "Report", "stats": "Stats", "surroundings": "Eval",
}
