package record

// Cell names a cell of a run's matrix: one combination of model and parameters.
type Cell struct {
	// Name tells the cell from the others of its run.
	Name string `json:"name"`
	// Model is empty when the executor chooses.
	Model string `json:"model,omitempty"`
	// Generation and Proposal are the place of the cell's system prompt among those that a
	// model proposes, both from 1; 0 of cells whose prompt the suite gives.
	Generation int `json:"generation,omitempty"`
	Proposal   int `json:"proposal,omitempty"`
	// Params are the parameters by name: texts, numbers and truth values.
	Params map[string]any `json:"params,omitempty"`
}

// In reports whether it is that cell; anything is in nil.
func (c *Cell) In(cell *Cell) bool {
	return cell == nil || c != nil && c.Name == cell.Name
}

// ParamContext is the parameter of a matrix that chooses the length of the context.
const ParamContext = "context_tokens"

// BenchmarkRef reports what a run of the kind benchmark measures.
type BenchmarkRef struct {
	// Tiers are the lengths of the context, in tokens, in the order of the suite; those that
	// are skipped for a model are among them.
	Tiers []int `json:"contextTokens"`
	// MaxTokens is how many tokens an answer may have; 0 when the suite does not say.
	MaxTokens int `json:"maxTokens,omitempty"`
	// Skipped are the cells whose context is too long for their model. No task is planned
	// for them.
	Skipped []SkippedCell `json:"skipped,omitempty"`
}

// SkippedCell is a cell of the matrix that is not run.
type SkippedCell struct {
	Cell *Cell `json:"cell"`
	// ContextTokens is the length of its context, Window how many tokens the model takes.
	ContextTokens int    `json:"contextTokens"`
	Window        int    `json:"window"`
	Reason        string `json:"reason"`
}

// ContextOf is the length of the context of a cell, in tokens; nil is a run without a
// matrix.
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
