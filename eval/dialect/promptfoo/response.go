package promptfoo

import (
	"slices"
	"strings"

	"waza/eval/text"
)

// setResponse and setMetadata precede code that reads the response of a provider: the answer, if no transform changed it, and the metadata
// that a provider in a file reported.
const (
	setResponse = "context.providerResponse = {output, cached: false};\n"
	setMetadata = `for (const e of transcript) {
	if (e.type === "metadata") context.metadata = JSON.parse(e.text);
}
context.providerResponse = {...context.providerResponse, metadata: context.metadata};
`
)

var (
	// answerPart matches the parts of the response of a provider that an output without transforms has.
	answerPart = text.Pattern(`\bcontext\s*(?:\?\s*)?\.\s*providerResponse\s*(?:\?\s*)?\.\s*(?:output|cached)\b`)
	// metadataPart matches the metadata of a response, in JavaScript and Python.
	metadataPart = text.Pattern(`\bcontext\s*(?:\?\s*)?(?:\.\s*providerResponse\s*(?:\?\s*)?)?\.\s*metadata\b|\bcontext\s*(?:\.get\(|\[)\s*["']metadata["']`)
	// responsePart matches the response of a provider, perhaps with the name of a part.
	responsePart = text.Pattern(`\bproviderResponse\b(?:["']\s*(?:\]|\)|,\s*(?:\{\}|None)\s*\)))?(?:\s*or\s*\{\}\s*\))?` +
		`(?:\s*(?:\?\s*)?(?:\.\s*(?:get\(\s*["'])?|\[\s*["'])(\w+))?`)
	// pythonContext matches other parts of the context that Python code can read.
	pythonContext = text.Pattern(`\bcontext\s*(?:\.get\(|\[)\s*["'](provider|trace|logProbs)["']`)
)

// withResponse returns code without the parts of the response of a provider that waza has, and what must precede the code so that it finds
// them. isAnswer means that no transform changed the output. isOpen means that the code can read other parts, too, in a way that only
// running it shows.
func (c *caseTranslator) withResponse(code string, isAnswer bool) (rest, before string, isOpen bool) {
	rest = code
	if isAnswer && answerPart().MatchString(rest) {
		before = setResponse
		rest = answerPart().ReplaceAllString(rest, "output")
	}
	if !c.hasMetadata {
		return rest, before, false
	}
	if metadataPart().MatchString(rest) {
		before += setMetadata
		rest = metadataPart().ReplaceAllString(rest, "output")
	}
	found := responsePart().FindAllStringSubmatch(rest, -1)
	isKnown := func(m []string) bool {
		return m[1] == "" || m[1] == "metadata" || isAnswer && (m[1] == "output" || m[1] == "cached")
	}
	if isOpen = len(found) > 0 && !slices.ContainsFunc(found, func(m []string) bool { return !isKnown(m) }); isOpen {
		rest = strings.ReplaceAll(rest, "providerResponse", "response")
	}
	return rest, before, isOpen
}

var (
	// safePart matches the uses of the context that read only parts which waza has.
	safePart = text.Pattern(`\bcontext\s*(?:\?\s*)?\.\s*(?:(?:vars|prompt|config)\b|test\s*(?:\?\s*)?\.\s*(?:vars|description|metadata)\b)` +
		`|\{\s*(?:(?:vars|prompt|config)\s*,?\s*)*\}\s*=\s*context\b|[\w$\])]\s*(?:\?\s*)?\.\s*context\b|[{,]\s*context\s*:`)
	// anyPart matches the names with which code can read any part of the context.
	anyPart = text.Pattern(`\b(?:context|arguments|eval)\b`)
	// ofTest matches parts of variables and tests that have names as parts of the context do.
	ofTest = text.Pattern(`\b(?:vars|test)\s*(?:\?\s*)?\.\s*(?:metadata|provider|trace|vars|description)\b`)
	// partName matches names of parts of the context and of tests that waza does not have, or not always.
	partName = text.Pattern(`\b(?:metadata|providerResponse|logProbs|arguments|eval)\b|(?:[.{,]\s*|\[\s*["'])(?:provider|trace)\b` +
		`|\.\s*test\b\s*(?:[^\s(]|$)|[{,]\s*test\s*[,}:=]|\.\.\.\s*\w*(?:context|ctx)\b|\b(?:context|ctx)\s*(?:\?\s*\.\s*)?\[|\bstringify\(\s*(?:context|ctx)\b`)
)

// endOfFile is the end of the body that calls the function of a file.
const endOfFile = "chosen(output, context) : chosen;"

// readsAnyPart reports whether JavaScript can read parts of the context that waza does not have, in a way that only running it shows.
// Functions of files name the context as they want.
func readsAnyPart(code string, isFile bool) bool {
	if isFile || strings.HasSuffix(strings.TrimSpace(code), endOfFile) { // waza convert writes code of files
		return partName().MatchString(ofTest().ReplaceAllString(withoutComments(code, false), "output"))
	}
	return anyPart().MatchString(safePart().ReplaceAllString(withoutTexts(code), "output"))
}

// errOpen is the reason why only Node.js runs code: there waza notices access to parts that it does not have.
var errOpen = &nodeError{"its code can read parts of the context that waza does not have, which only Node.js notices"}

// lackingContext and lackingTest are the parts of the context, and of its test, that waza does not have, or not always.
var (
	lackingContext = []string{"provider", "logProbs", "trace", "providerResponse", "metadata"}
	lackingTest    = []string{"assert", "options", "threshold", "provider", "providerOutput", "assertScoringFunction", "prompts", "providers"}
)
