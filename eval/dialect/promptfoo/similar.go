package promptfoo

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// similarMetrics are the ways in which vectors are compared, by what follows similar in the type of an assertion.
var similarMetrics = map[string]string{"": "cosine", "cosine": "cosine", "dot": "dot", "euclidean": "euclidean"}

// isSimilar reports whether assertions of a type compare the meaning of texts.
func isSimilar(kind string) bool { return kind == "similar" || strings.HasPrefix(kind, "similar:") }

// similarDefault is the least similarity, or the largest distance, of an assertion without a threshold.
const similarDefault = 0.75

// similar returns the grader of an assertion about the meaning of the output.
func (c *caseTranslator) similar(a part, kind string, value any) (s spec, ok bool) {
	_, suffix, _ := strings.Cut(kind, ":")
	metric, known := similarMetrics[suffix]
	references := textsOf(value, false)
	switch {
	case !known:
		c.block(a, "the assertion type %q: vectors are compared by cosine, dot or euclidean", text.Clip(kind, 60))
		return spec{}, false
	case len(references) == 0 || slices.ContainsFunc(references, func(s string) bool { return strings.TrimSpace(s) == "" }):
		c.block(firstPart(a.get("value"), a), "the value of %s must be a text that is not empty, or a list of such texts", kind)
		return spec{}, false
	}
	threshold, given := c.threshold(a.get("threshold"))
	if !given {
		threshold = similarDefault
	}
	at := c.place(a)
	config := dialect.NewMap(at)
	config.Set("references", dialect.Texts(at, references...))
	config.Set("metric", dialect.Scalar(at, metric))
	config.Set("threshold", dialect.Scalar(at, threshold))
	if err := c.embedder(config, at, firstPart(a.get("provider"), c.options["provider"])); err != nil {
		c.block(firstPart(a.get("provider"), c.options["provider"], a), "the embedding model: %v", err)
		return spec{}, false
	}
	return spec{kind: "similar", config: config}, true
}

// answerRelevance returns the grader of an assertion about the question that the output answers: the variable query, else
// the prompt.
func (c *caseTranslator) answerRelevance(a part) (s spec, ok bool) {
	if own := c.rubricPrompt(a); own.Node != nil && !decode.IsNull(own.Node) {
		c.block(own, "rubricPrompt: waza has its own prompt for answer-relevance")
		return spec{}, false
	}
	threshold, given := c.threshold(a.get("threshold"))
	if !given {
		threshold = relevanceDefault
		c.warn(a, "answer-relevance has the threshold %v, and older versions of promptfoo 0, which every score reaches; write a threshold", threshold)
	}
	at := c.place(a)
	config, embedding := dialect.NewMap(at), dialect.NewMap(at)
	if query, isText := c.vars["query"].(string); isText {
		config.Set("question", dialect.Scalar(at, query))
	}
	config.Set("threshold", dialect.Scalar(at, threshold))
	provider := firstPart(a.get("provider"), c.options["provider"])
	err := c.embedder(embedding, at, provider)
	if err == nil {
		config.Set("embedding", embedding.Node)
		err = c.chatJudge(config, at, provider)
	}
	if err != nil {
		c.block(firstPart(provider, a), "answer-relevance: %v", err)
		return spec{}, false
	}
	return spec{kind: "answer_relevance", config: config}, true
}

// relevanceDefault is the least score of answer-relevance without a threshold.
const relevanceDefault = 0.7

// chatJudge sets the judge that a provider means, unless it makes embeddings only.
func (c *caseTranslator) chatJudge(config dialect.Map, at *yaml.Node, provider part) error {
	_, rest, _ := strings.Cut(firstOf(provider.get("id").text(), provider.text()), ":")
	kind, _, _ := strings.Cut(rest, ":")
	switch {
	case provider.Node == nil || slices.Contains(embeddingKinds, kind):
		return nil
	case provider.get("embedding").Node != nil && provider.get("text").Node == nil:
		return nil
	}
	return c.judgeOf(config, at, provider)
}

// embeddingKinds are the parts of the id of a provider that makes embeddings.
var embeddingKinds = []string{"embedding", "embeddings"}

// The embedding model of assertions that name none.
const defaultEmbedder = "text-embedding-3-large"

// embedder sets the embedding model that a provider means. Like promptfoo, it takes the default model instead of a
// provider that makes no embeddings, such as the judge in the options of a test.
func (c *caseTranslator) embedder(config dialect.Map, at *yaml.Node, n part) error {
	if of := n.get("embedding"); of.Node != nil { // by the kind of question
		n = of
	} else if n.get("id").Node == nil && n.text() == "" {
		n = part{nil, n.src}
	}
	id := firstOf(n.get("id").text(), n.text())
	name, rest, _ := strings.Cut(id, ":")
	kind, model, _ := strings.Cut(rest, ":")
	switch {
	case strings.HasPrefix(id, filePrefix) || strings.HasPrefix(id, "python:") || strings.HasPrefix(id, "exec:"):
		return fmt.Errorf("waza asks no programs for embeddings, such as %s", text.Clip(id, 60))
	case name == "huggingface" || name == "local" || name == "transformers":
		return fmt.Errorf("the provider %q: waza has no such embedding API", text.Clip(id, 80))
	case !slices.Contains(embeddingKinds, kind):
		if id != "" {
			c.warn(n, "the provider %q makes no embeddings, so %s of OpenAI makes those of similar and answer-relevance; "+
				"write provider: {text: ..., embedding: ...}", text.Clip(id, 60), defaultEmbedder)
		}
		config.Set("provider", dialect.Scalar(at, "openai"))
		config.Set("model", dialect.Scalar(at, defaultEmbedder))
		c.ownAddress(config, at)
		return nil
	}
	p := &provider{at: at, render: c.ofEnvironment()}
	if err := p.read(name+":"+model, n.get("config")); err != nil {
		return fmt.Errorf("the provider %q: %w", text.Clip(id, 80), err)
	}
	if len(p.params) > 0 || p.settings.Get("system_prompt") != nil {
		return fmt.Errorf("the provider %q: its config has parameters of chats", text.Clip(id, 80))
	}
	if name != "ollama" {
		setEndpoint(config, p)
		c.ownAddress(config, at)
		return nil
	}
	config.Set("provider", dialect.Scalar(at, "ollama"))
	config.Set("model", dialect.Scalar(at, model))
	if base := p.settings.Get("base_url").Value; base != services["ollama"].url {
		config.Set("base_url", dialect.Scalar(at, strings.TrimSuffix(strings.TrimRight(base, "/"), "/v1")))
	}
	if key := p.settings.Get("api_key_env").Value; key != services["ollama"].keyEnv {
		config.Set("api_key_env", dialect.Scalar(at, key))
	}
	return nil
}

// setEndpoint sets the API of a grader that asks a model.
func setEndpoint(config dialect.Map, p *provider) {
	for _, pair := range dialect.Pairs(p.settings.Node) {
		key := pair.Key.Value
		if key == "executor" {
			key = "provider"
		}
		config.Set(key, pair.Value)
	}
}

// ownAddresses are those of the APIs that providers without an address have.
var ownAddresses = map[string]string{"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}

// ownAddress sets the address of a grader that asks a model, if it has none and the providers ask the same API at another
// address: graders without an address ask where the executor does.
func (tr *translator) ownAddress(config dialect.Map, at *yaml.Node) {
	if api := config.Get("provider").Value; slices.Contains(tr.elsewhere, api) && config.Get("base_url") == nil {
		config.Set("base_url", dialect.Scalar(at, ownAddresses[api]))
	}
}
