package promptfoo

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/parser"

	"waza/eval/jsonwalk"
	"waza/eval/text"
)

// maxCode is the most bytes of code that graders of waza take.
const maxCode = 15 << 10

// functionBody returns the body of the function that an inline expression means: several lines as they
// are, and one line with return before its last expression.
func functionBody(code string) string {
	code = strings.TrimRight(code, " \t\r\n")
	if strings.Contains(code, "\n") {
		return code
	}
	code = strings.TrimRight(strings.TrimSpace(code), "; ")
	if !declares().MatchString(code) {
		return "return " + code
	}
	program, err := parser.ParseFile(nil, "", code, 0, parser.WithDisableSourceMaps)
	if err != nil || len(program.Body) < 2 {
		return code
	}
	last, ok := program.Body[len(program.Body)-1].(*ast.ExpressionStatement)
	if !ok {
		return code
	}
	at := int(last.Idx0()) - 1
	return code[:at] + "return " + code[at:]
}

var declares = text.Pattern(`^(?:const|let|var)\s`)

// checkBody returns the reason why waza cannot run a function.
func checkBody(body string) error {
	if len(body) > maxCode {
		return &nodeError{fmt.Sprintf("its code is longer than %d KiB", maxCode>>10)}
	}
	code := withoutComments(body, false)
	if importsModule().MatchString(code) {
		return errImports
	}
	found := needsNode().FindString(code)
	if found == "" {
		found = globalOfNode(withoutTexts(body))
	}
	if found != "" {
		return &nodeError{fmt.Sprintf("its code needs Node.js for %s", text.Clip(strings.TrimSpace(found), 40))}
	}
	if found := needsResponse().FindStringSubmatch(code); found != nil {
		return responseError(found)
	}
	source := "(function () {" + body + "\n})"
	_, err := parser.ParseFile(nil, "", source, 0, parser.WithDisableSourceMaps)
	if list := (parser.ErrorList)(nil); errors.As(err, &list) && len(list) > 0 {
		return &nodeError{fmt.Sprintf("its code cannot be parsed: %s in line %d", text.Clip(list[0].Message, 100), list[0].Position.Line)}
	}
	if err == nil {
		if _, err = goja.Compile("", source, false); err != nil {
			err = &nodeError{fmt.Sprintf("its code cannot be compiled: %s", text.Clip(err.Error(), 100))}
		}
	}
	return err
}

var (
	importsModule = text.Pattern(`(?m:(?:^|\{)\s*import(?:\s*[{"'*]|\s+[\w$]+\s*(?:,|from\b)))|(?m:^\s*export\s*(?:\{[^}]*\}|\*[^"']*)\s*from\b)`)
	needsNode     = text.Pattern(`\brequire\s*\(|\bimport\s*\(|\bfetch\s*\(|\bprocess\.(?:env|cwd|argv|mainModule)\b|\bBuffer\.|\bnew URL\b` +
		`|\\[pP]\{|\btoLocale\w*String\s*\(|\bIntl\b|\bObject\.groupBy\b`)
	needsResponse = text.Pattern(`\b(providerResponse|logProbs)\b|\bcontext\s*\??\.\s*(provider|trace|metadata|test\s*\??\.\s*(?:assert|options|threshold))\b`)
)

// globalName matches names that Node.js has and waza has not, where they can be variables.
var globalName = text.Pattern(`(^|[^.\w$])(__dirname|__filename|AbortController|AbortSignal|Blob|Buffer|Event|EventTarget|FormData|Headers|Intl|` +
	`MessageChannel|ReadableStream|Request|Response|TextDecoder|TextEncoder|URL|URLSearchParams|WebAssembly|WebSocket|atob|btoa|` +
	`clearImmediate|clearInterval|clearTimeout|crypto|fetch|global|globalThis|navigator|performance|process|queueMicrotask|require|` +
	`setImmediate|setInterval|setTimeout|structuredClone)\b(\s*:)?`)

// globalOfNode returns the first name that Node.js has and waza has not; empty if code without texts uses none.
func globalOfNode(code string) string {
	for _, m := range globalName().FindAllStringSubmatch(code, -1) {
		if m[3] == "" { // else it is a key
			return m[2]
		}
	}
	return ""
}

var errImports = &nodeError{"its code imports modules, which waza does not load"}

// fileBody returns the body of the function in a file: module.exports, export default or a named one. It is
// called with the arguments.
func (tr *translator) fileBody(ref, arguments string) (string, error) {
	file, function := splitFunction(ref)
	switch filepath.Ext(file) {
	case ".js", ".cjs", ".mjs":
	case ".ts", ".cts", ".mts":
		return "", &nodeError{fmt.Sprintf("%s is TypeScript, which Node.js runs", text.Clip(ref, 80))}
	default:
		return "", fmt.Errorf("%s is not JavaScript", text.Clip(ref, 80))
	}
	source, err := tr.read(tr.path(file))
	if err == nil && importsModule().MatchString(source) {
		err = errImports
	}
	if err != nil {
		return "", err
	}
	if !hasFunction().MatchString(source) {
		return "", fmt.Errorf("%s exports no function", text.Clip(file, 80))
	}
	chosen := "exported.default ?? exported"
	if function != "" && !regexp.MustCompile(`(?:^|[^\w$])`+regexp.QuoteMeta(function)+`(?:$|[^\w$])`).MatchString(source) {
		return "", fmt.Errorf("%s exports no function %s", text.Clip(file, 80), text.Clip(function, 60))
	}
	if function != "" {
		chosen = fmt.Sprintf("exported[%q] ?? exported.default?.[%q]", function, function)
	}
	return "const module = {exports: {}};\n(function (module, exports) {" + withoutExports(source) +
		"\n})(module, module.exports);\nconst exported = module.exports, chosen = " + chosen +
		";\nreturn typeof chosen === \"function\" ? chosen(" + arguments + ") : chosen;", nil
}

// hasFunction matches code that can contain a function, or load one.
var hasFunction = text.Pattern(`=>|\bfunction\b|\bFunction\b|\)\s*\{|\brequire\b|\bimport\b`)

var (
	exportDefault = text.Pattern(`(?m)^export\s+default\s+`)
	exportNamed   = text.Pattern(`(?m)^export\s+((?:async\s+)?function\s*\*?|const|let|var|class)\s+([\w$]+)`)
	exportList    = text.Pattern(`(?m)^export\s*\{([^}]*)\}\s*;?`)
)

// withoutExports replaces the exports of a module by those that CommonJS has.
func withoutExports(source string) string {
	var names []string
	source = exportNamed().ReplaceAllStringFunc(source, func(s string) string {
		m := exportNamed().FindStringSubmatch(s)
		names = append(names, fmt.Sprintf("exports.%s = %s;", m[2], m[2]))
		return m[1] + " " + m[2]
	})
	source = exportList().ReplaceAllStringFunc(source, func(s string) string {
		for name := range strings.SplitSeq(exportList().FindStringSubmatch(s)[1], ",") {
			from, to, renamed := strings.Cut(strings.TrimSpace(name), " as ")
			if !renamed {
				to = from
			}
			if identifier().MatchString(from) && identifier().MatchString(to) {
				names = append(names, fmt.Sprintf("exports.%s = %s;", to, from))
			}
		}
		return ""
	})
	source = exportDefault().ReplaceAllString(source, "exports.default = ")
	return source + "\n" + strings.Join(names, "\n")
}

var identifier = text.Pattern(`^[\pL_$][\pL\pN_$]*$`)

// chain returns the body of the function that passes the output through several functions, which can be
// asynchronous.
func chain(bodies []string) string {
	if len(bodies) == 1 {
		return bodies[0]
	}
	var b strings.Builder
	b.WriteString("return (async () => {\nlet value = output;\n")
	for _, body := range bodies {
		fmt.Fprintf(&b, "value = await (function (output, context) {%s\n})(value, context);\n", body)
		b.WriteString("if (value == null) throw new Error(\"a transform returned nothing\");\n")
	}
	b.WriteString("return value;\n})();")
	return b.String()
}

// literal returns a value as JavaScript.
func literal(v any) string {
	data, err := jsonwalk.Encode(v)
	if err != nil {
		return "null"
	}
	return string(data)
}

// asText precedes functions that need the output as text.
const asText = "const text = typeof output === 'string' ? output : JSON.stringify(output);\n"

// containsAll returns the body of a function that looks for all texts.
func containsAll(values []string, folds bool) string {
	fold := ""
	if folds {
		fold = ".toLowerCase()"
	}
	return asText + fmt.Sprintf("const missing = %s.filter(v => !text%s.includes(v%s));\n", literal(values), fold, fold) +
		"return {pass: missing.length === 0, score: missing.length === 0 ? 1 : 0, reason: missing.length ? 'missing: ' + missing.join(', ') : ''};"
}

// equalsJSON returns the body of a function that compares the output with a value as JSON.
func equalsJSON(v any) string {
	return fmt.Sprintf(`const same = (a, b) => a === b || typeof a === "object" && typeof b === "object" && a !== null && b !== null &&
	Array.isArray(a) === Array.isArray(b) && Object.keys(a).length === Object.keys(b).length &&
	Object.keys(a).every(k => Object.prototype.hasOwnProperty.call(b, k) && same(a[k], b[k]));
let got = output;
if (typeof output === "string") {
	try { got = JSON.parse(output); } catch (e) { return {pass: false, score: 0, reason: "the output is no JSON: " + e.message}; }
}
return same(got, %s);`, literal(v))
}

const (
	// isJSON passes if the whole output is JSON.
	isJSON = `if (typeof output === "string") {
	try { JSON.parse(output); } catch (e) { return {pass: false, score: 0, reason: "the output is no JSON: " + e.message}; }
}
return true;`
	// strictJSON makes an output that is no JSON one that no schema fits.
	strictJSON = `if (typeof output !== "string") return output;
try { JSON.parse(output); return output; } catch (e) { return "no JSON (" + e.message + "): " + output; }`
)
