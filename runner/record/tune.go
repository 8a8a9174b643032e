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
}
