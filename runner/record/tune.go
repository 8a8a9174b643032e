package record

// TuneResult says which cell of a param_tune or prompt_tune is best. The numbers of the
// cells are in the groups of the summary.
type TuneResult struct {
	// Best is the name of the cell with the highest mean score over tasks; of several, the
	// one that passed more trials, then the first.
	Best string `json:"best"`
	// Rivals are the cells that may be as good, in the order of their scores: their scores
	// are not separated from those of Best, see [waza/runner/tally].
	Rivals []string `json:"rivals,omitempty"`
	// Note says why there are no rivals to name; empty otherwise.
	Note string `json:"note,omitempty"`
	// Prompts are those that a model proposed, in the order of their places.
	Prompts []Prompt `json:"prompts,omitempty"`
}

// Prompt is a system prompt that a model proposed for the cells at a place.
type Prompt struct {
	// Generation and Number are the place, both from 1.
	Generation int `json:"generation"`
	Number     int `json:"number"`
	// Style is how the model calls the kind of prompt, in a few words.
	Style string `json:"style,omitempty"`
	Text  string `json:"text"`
	// Usage is what the proposal of the generation cost, in that of its first prompt; nil
	// when nothing is known of it.
	Usage *Usage `json:"usage,omitempty"`
}
