package record

// CommonTasks states on which tasks the cells of a run can be compared: those with a score in
// every cell. In a run without a matrix it states which tasks have a score.
type CommonTasks struct {
	// Tasks is their number.
	Tasks   int           `json:"tasks"`
	LeftOut []LeftOutTask `json:"leftOut,omitempty"`
	// Unscored names the cells without any score. They are not compared, and leave out no tasks.
	Unscored []string `json:"cellsWithoutScore,omitempty"`
}

// LeftOutTask is a task that has no score in some cell.
type LeftOutTask struct {
	// Task is its id in the suite.
	Task string `json:"task"`
	// Cells names the cells in which it has no score, at most three, and CellCount is their
	// number. Both are absent without a matrix.
	Cells     []string `json:"cells,omitempty"`
	CellCount int      `json:"cellCount,omitempty"`
	// Why is the reason in the first of them, such as "ended in error".
	Why string `json:"why"`
}

// TuneResult names the best cell of a param_tune or prompt_tune. The groups of the summary
// contain the numbers of the cells.
type TuneResult struct {
	// Best is the name of the cell with the highest mean score over the tasks that all cells
	// have in common, see [Summary]. On a tie, the cell with more passed trials wins, then the
	// first cell. It is empty when no task is common.
	Best string `json:"best,omitempty"`
	// Score estimates the true score of Best; nil without Best, and in records of older versions.
	Score *TuneScore `json:"score,omitempty"`
	// Rivals are the cells that may be as good, in the order of their scores. Their scores are
	// not statistically separated from that of Best, see [waza/runner/tally].
	Rivals []string `json:"rivals,omitempty"`
	// Note is the reason why cells are not ranked or rivals cannot be determined; empty
	// otherwise.
	Note string `json:"note,omitempty"`
	// Prompts are the prompts that a model proposed, in the order of their positions.
	Prompts []Prompt `json:"prompts,omitempty"`
}

// The values of TuneScore.Basis.
const (
	// BasisShrunk marks the score of a cell that was selected by the same trials. It is shrunk,
	// because the highest of several scores is too high on average. No fresh trials confirmed it.
	BasisShrunk = "shrunk"
	// BasisMeasured marks the score of the only cell. Nothing was selected.
	BasisMeasured = "measured"
)

// TuneScore is the mean score of the best cell over the tasks that all cells have in common.
type TuneScore struct {
	// Value estimates the true score. Interval is its 95 % interval; it allows for the selection
	// among Cells cells, and applies to these tasks only.
	Value    float64  `json:"value"`
	Interval Interval `json:"interval"`
	// Observed is the mean score of the trials.
	Observed float64 `json:"observed"`
	Basis    string  `json:"basis"`
	Cells    int     `json:"cells"`
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
