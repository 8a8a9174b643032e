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
// them. isAnswer means that no transform changed the output.
func (c *caseTranslator) withResponse(code string, isAnswer bool) (rest, before string) {
	rest = code
	if isAnswer && answerPart().MatchString(rest) {
		before = setResponse
		rest = answerPart().ReplaceAllString(rest, "output")
	}
	if !c.hasMetadata {
		return rest, before
	}
	if metadataPart().MatchString(rest) {
		before += setMetadata
		rest = metadataPart().ReplaceAllString(rest, "output")
	}
	found := responsePart().FindAllStringSubmatch(rest, -1)
	known := func(m []string) bool { return slices.Contains([]string{"", "output", "cached", "metadata"}, m[1]) }
	if isAnswer && len(found) > 0 && !slices.ContainsFunc(found, func(m []string) bool { return !known(m) }) {
		before = setResponse + setMetadata
		rest = strings.ReplaceAll(rest, "providerResponse", "response")
	}
	return rest, before
}
