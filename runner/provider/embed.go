package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"

	"waza/runner/record"
)

// Embedder turns texts into vectors with one model. It is safe for concurrent use.
type Embedder interface {
	// Embed returns a vector for each text. It blocks until it has all of them, and returns promptly when
	// ctx ends. All vectors of a model have the same length, and finite numbers. The usage is set also
	// beside an error.
	Embed(ctx context.Context, texts []string) (vectors [][]float64, usage record.Usage, err error)
}

// Embedder returns an embedder for a model of the API [OpenAI] or [Ollama]. It reads the key, which can
// run a program, but sends no request yet. The error is of kind [Refused] if there is no key.
func (p *Pool) Embedder(ctx context.Context, api API, e Endpoint, model string) (Embedder, error) {
	c, s, err := p.connect(ctx, api, e, model)
	if err != nil {
		return nil, err
	}
	if api != OpenAI && api != Ollama {
		return nil, &Error{Kind: Invalid, Message: fmt.Sprintf("the API %q has no embeddings; APIs with embeddings: openai, ollama", api)}
	}
	return &embedder{c, embeddingAPI{s, api}}, nil
}

// embedder adds budget, limiter and retries to the requests of an API.
type embedder struct {
	client *client
	api    embeddingAPI
}

// maxEmbedBytes limits the texts of one request.
const maxEmbedBytes = 8 << 20

func (e *embedder) Embed(ctx context.Context, texts []string) (vectors [][]float64, usage record.Usage, err error) {
	size := 0
	for _, t := range texts {
		size += len(t)
	}
	if size > maxEmbedBytes {
		return nil, usage, e.client.public(&Error{
			Kind: Invalid, Status: http.StatusRequestEntityTooLarge,
			Message: fmt.Sprintf("the texts have %d bytes, and a request at most %d", size, maxEmbedBytes),
		})
	}
	most := record.Usage{InputTokens: int64(size/bytesPerToken) + 1}
	if e.client.priced {
		most.CostUSD = cost(e.client.price, most, Cached{})
	}
	reply, err := e.client.persist(ctx, 0, most, func() (reply *Reply, final bool, err error) {
		reply = &Reply{}
		if vectors, reply.Usage, err = e.api.embed(ctx, texts); err == nil && reply.Usage.Total() == 0 {
			reply.Usage.InputTokens, reply.Estimated = most.InputTokens, true
		}
		if e.client.priced && reply.Usage.CostUSD == 0 {
			reply.Usage.CostUSD = cost(e.client.price, reply.Usage, Cached{})
		}
		return reply, false, err
	})
	if err != nil {
		return nil, reply.Usage, err
	}
	return vectors, reply.Usage, nil
}

// embeddingAPI sends requests for embeddings to the API of OpenAI and compatible servers, or to Ollama's own.
type embeddingAPI struct {
	settings
	api API
}

// embed sends one request.
func (c embeddingAPI) embed(ctx context.Context, texts []string) ([][]float64, record.Usage, error) {
	req, err := c.request(ctx, texts)
	if err != nil {
		return nil, record.Usage{}, &Error{Kind: Invalid, Where: c.where, Message: err.Error()}
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, record.Usage{}, transportError(ctx, c.where, err)
	}
	defer res.Body.Close()
	if res.StatusCode < 200 || res.StatusCode >= 300 {
		return nil, record.Usage{}, transportError(ctx, c.where, failed(res, c.where))
	}
	data, err := io.ReadAll(res.Body) // the transport limits it
	if err != nil {
		return nil, record.Usage{}, transportError(ctx, c.where, err)
	}
	return c.vectors(data, len(texts))
}

func (c embeddingAPI) request(ctx context.Context, texts []string) (*http.Request, error) {
	base, err := url.Parse(c.settings.address)
	if err != nil {
		return nil, errors.New("the address of the API must be a URL")
	}
	body, path := object{"model": c.model, "input": texts}, []string{"api", "embed"}
	if c.api == OpenAI {
		body["encoding_format"], path = "float", []string{"embeddings"}
	}
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		return nil, err
	}
	address := openAI{c.settings}.versioned(base.JoinPath(path...))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), &data)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "waza")
	openAI{c.settings}.sign(req.Header)
	return req, nil
}

// embedded is the answer of either API.
type embedded struct {
	Data []struct {
		Index     *int      `json:"index"`
		Embedding []float64 `json:"embedding"`
	} `json:"data"`
	Usage struct {
		PromptTokens count   `json:"prompt_tokens"`
		TotalTokens  count   `json:"total_tokens"`
		Cost         float64 `json:"cost"` // in US dollars, from OpenRouter
	} `json:"usage"`

	Embeddings      [][]float64 `json:"embeddings"` // of Ollama
	PromptEvalCount count       `json:"prompt_eval_count"`
}

// vectors reads the answer to a request with a number of texts.
func (c embeddingAPI) vectors(data []byte, texts int) ([][]float64, record.Usage, error) {
	invalid := func(format string, args ...any) error {
		return &Error{Kind: Invalid, Where: c.where, Message: fmt.Sprintf(format, args...)}
	}
	var answer embedded
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, record.Usage{}, invalid("the answer is no list of embeddings")
	}
	tokens := max(int64(answer.Usage.PromptTokens), int64(answer.Usage.TotalTokens), int64(answer.PromptEvalCount))
	usage := record.Usage{InputTokens: tokens, CostUSD: max(0, answer.Usage.Cost)}
	vectors := answer.Embeddings
	if c.api == OpenAI {
		vectors = make([][]float64, len(answer.Data))
		for i, d := range answer.Data {
			if d.Index != nil {
				i = *d.Index
			}
			if i < 0 || i >= len(vectors) || vectors[i] != nil {
				return nil, usage, invalid("the answer has an embedding with the index %d, and %d embeddings", i, len(vectors))
			}
			vectors[i] = d.Embedding
		}
	}
	if len(vectors) != texts {
		return nil, usage, invalid("the answer has %d embeddings for %d texts", len(vectors), texts)
	}
	for _, v := range vectors {
		if len(v) == 0 || len(v) != len(vectors[0]) {
			return nil, usage, invalid("the answer has embeddings with %d and %d numbers", len(vectors[0]), len(v))
		}
		for _, x := range v {
			if math.Abs(x) > math.MaxFloat32 { // squares must be finite
				return nil, usage, invalid("the answer has an embedding with the number %g", x)
			}
		}
	}
	return vectors, usage, nil
}
