package record

import (
	"fmt"
	"maps"

	"waza/eval"
)

// Cell names a cell of a run's matrix: one combination of model and parameters.
type Cell struct {
	// Name is unique among the cells of the run.
	Name string `json:"name"`
	// Model is empty when the executor chooses the model.
	Model string `json:"model,omitempty"`
	// Generation and Proposal give the position of the cell's system prompt among the prompts
	// that a model proposed. Both count from 1; they are 0 for cells whose prompt is part of the
	// suite.
	Generation int `json:"generation,omitempty"`
	Proposal   int `json:"proposal,omitempty"`
	// Params holds the parameters by name: strings, numbers and booleans.
	Params map[string]any `json:"params,omitempty"`
}

// In reports whether c is the given cell. Every cell is in a nil cell.
func (c *Cell) In(cell *Cell) bool {
	return cell == nil || c != nil && c.Name == cell.Name
}

// WithoutPrompt identifies the model and the parameters other than the system prompt. Cells that
// differ only in their prompts have the same.
func (c *Cell) WithoutPrompt() string {
	params := map[string]any{}
	maps.Copy(params, c.Params)
	delete(params, eval.ParamSystemPrompt)
	return fmt.Sprintf("%q %#v", c.Model, params) // prints maps in order, and texts with quotes
}

// ParamContext is the matrix parameter that sets the length of the context.
const ParamContext = "context_tokens"

// BenchmarkRef describes what a run of kind benchmark measures.
type BenchmarkRef struct {
	// Tiers are the context lengths in tokens, in the order of the suite. They include lengths
	// that are skipped for a model.
	Tiers []int `json:"contextTokens"`
	// MaxTokens is the maximum number of tokens of an answer; 0 when the suite sets no maximum.
	MaxTokens int `json:"maxTokens,omitempty"`
	// Skipped lists the cells whose context is too long for their model. No task is planned for
	// them.
	Skipped []SkippedCell `json:"skipped,omitempty"`
}

// SkippedCell is a cell of the matrix that is not run.
type SkippedCell struct {
	Cell *Cell `json:"cell"`
	// ContextTokens is the length of the cell's context. Window is the number of tokens that the
	// model accepts.
	ContextTokens int    `json:"contextTokens"`
	Window        int    `json:"window"`
	Reason        string `json:"reason"`
}

// ContextOf returns the context length of a cell in tokens. A nil cell belongs to a run without
// a matrix.
func (b *BenchmarkRef) ContextOf(c *Cell) int {
	if c != nil {
		switch n := c.Params[ParamContext].(type) {
		case int:
			return n
		case int64:
			return int(n)
		case float64:
			return int(n)
		}
	}
	if b == nil || len(b.Tiers) == 0 {
		return 0
	}
	return b.Tiers[0]
}
