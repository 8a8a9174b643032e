package promptfoo

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"waza/eval/decode"
	"waza/eval/text"
)

// transformVars returns the variables of a test with those that code makes of them: JavaScript, or a function of a file. Code that did not run, or
// failed, blocks the cases of the test. The key identifies the test.
func (tr *translator) transformVars(vars []variable, code part, expand bool, key string) []variable {
	failed := func(err error) []variable {
		return append(slices.Clone(vars), variable{fault: fmt.Errorf("options.transformVars: %w", err)})
	}
	if !decode.IsText(code.Node) || strings.TrimSpace(code.text()) == "" {
		return failed(fmt.Errorf("it must be JavaScript or the name of a file, got %s", decode.Describe(code.Node)))
	}
	values := map[string]any{}
	for _, v := range vars {
		list := make([]any, len(v.values))
		for i, one := range v.values {
			if ref, isProgram := one.(fileProgram); isProgram {
				one = string(ref)
			}
			list[i] = one
		}
		if values[v.name] = firstItem(list); v.isList {
			values[v.name] = list
		}
	}
	var p *program
	var err error
	if body := code.text(); strings.HasPrefix(body, filePrefix) {
		p, err = tr.functionOf(body, useVars)
	} else {
		if !strings.Contains(body, "\n") {
			body = "return " + body
		}
		name := text.Clip(strings.Join(strings.Fields(code.text()), " "), 60)
		p = &program{name: name, command: []string{"node", "-e", loadModule + callNode, body, "", useInline}, timeout: callTimeout}
	}
	if err != nil {
		return failed(err)
	}
	result, err := tr.runFor(p, values, map[string]any{"prompt": map[string]any{}, "uuid": uuidOf(tr.Source.Name, key)})
	if err != nil {
		var notRun *errNotRun
		if errors.As(err, &notRun) {
			return append(slices.Clone(vars), variable{fault: err})
		}
		return failed(err)
	}
	made, isMap := result.(map[string]any)
	if !isMap {
		return failed(fmt.Errorf("it must return variables, got %s", text.Clip(literal(result), 60)))
	}
	for _, name := range slices.Sorted(maps.Keys(made)) {
		if !reflect.DeepEqual(literal(made[name]), literal(values[name])) || values[name] == nil {
			list, isList := made[name].([]any)
			if _, ofTexts := firstItem(list).(string); !isList || !ofTexts || !expand {
				list = []any{made[name]}
			}
			vars = setVariable(vars, variable{name: name, values: list})
		}
	}
	return vars
}

// uuidOf returns an identifier that is the same each time a test is planned.
func uuidOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	sum[6], sum[8] = sum[6]&0x0f|0x40, sum[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
