package record

// TuneResult names the best cell of a param_tune or prompt_tune. The groups of the summary
// contain the numbers of the cells.
type TuneResult struct {
	// Best is the name of the cell with the highest mean score over tasks. On a tie, the cell
	// with more passed trials wins, then the first cell.
	Best string `json:"best"`
	// Rivals are the cells that may be as good, in the order of their scores. Their scores are
	// not statistically separated from that of Best, see [waza/runner/tally].
	Rivals []string `json:"rivals,omitempty"`
	// Note is the reason why rivals cannot be determined; empty otherwise.
	Note string `json:"note,omitempty"`
	// Prompts are the prompts that a model proposed, in the order of their positions.
	Prompts []Prompt `json:"prompts,omitempty"`
}

// Prompt is a system prompt that a model proposed for the cells at one position.
type Prompt struct {
	// Generation and Number are the position; both count from 1.
	Generation int `json:"generation"`
	Number     int `json:"number"`
	// Style is the model's name for the kind of prompt, in a few words.
	Style string `json:"style,omitempty"`
	Text  string `json:"text"`
	// Usage is the cost of proposing the generation. Only the first prompt of a generation has
	// it; nil when it is unknown.
	Usage *Usage `json:"usage,omitempty"`
}
