package record

// Class says what became of a task from one run to another.
type Class string

// The classes of tasks.
const (
	// Improved and Regressed were shown: that chance alone shows as much in any
	// task of the comparison is less likely than its confidence allows.
	Improved  Class = "improved"
	Regressed Class = "regressed"
	// Unchanged was shown: the interval of the difference lies within the margin.
	Unchanged Class = "unchanged"
	// NoDifference: both sides agree, but a difference beyond the margin is not ruled out.
	NoDifference Class = "no_difference"
	// Undecided: a difference was seen, and could be chance.
	Undecided Class = "undecided"
)

// ClassCounts counts tasks by what became of them.
type ClassCounts struct {
	Improved     int `json:"improved"`
	Regressed    int `json:"regressed"`
	Unchanged    int `json:"unchanged"`
	NoDifference int `json:"noDifference"`
	Undecided    int `json:"undecided"`
}

// Add counts a task of a class.
func (n *ClassCounts) Add(c Class) {
	switch c {
	case Improved:
		n.Improved++
	case Regressed:
		n.Regressed++
	case Unchanged:
		n.Unchanged++
	case NoDifference:
		n.NoDifference++
	case Undecided:
		n.Undecided++
	}
}

// Contrast is a number in two runs.
type Contrast struct {
	Reference float64 `json:"reference"`
	Run       float64 `json:"run"`
	// Difference is Run less Reference.
	Difference float64 `json:"difference"`
	// Interval of the difference, see [stats.Estimate.Minus] and, for a suite,
	// [stats.Mean]: it is about these tasks. Nil where trials that stopped early allow
	// for none.
	Interval *Interval `json:"interval"`
}

// The tests of tasks.
const (
	TestFisher      = "fisher"      // of pass rates, trials having nothing in common
	TestMcNemar     = "mcnemar"     // of pairs of trials with equal number
	TestPermutation = "permutation" // of scores, where they say more than verdicts do
	TestStopped     = "stopped"     // of pass rates, where trials could stop early
)

// TaskTest is a test of one task.
type TaskTest struct {
	Name string `json:"name"`
	// P is two-sided: twice the smaller tail, at most 1. Programs that add up the
	// probabilities of all less likely tables print smaller values of Fisher's test.
	P float64 `json:"p"`
	// Corrected is P corrected for the number of all tests of all tasks.
	Corrected float64 `json:"corrected"`
}

// Pairs counts pairs of counted trials with equal number.
type Pairs struct {
	Same   int `json:"same"`
	Worse  int `json:"worse"`
	Better int `json:"better"`
}
