package record

// DecideRequest asks a run whether its side B passes more trials than its side A. The run then
// starts only the trials that decide it.
type DecideRequest struct {
	// A and B name the sides: two cells of the suite's matrix or two models. They are [SideNone] or
	// a revision, and [SideFiles], for a comparison with the baseline.
	A string `json:"a"`
	B string `json:"b"`
	// BetterBy is the smallest gain worth having, as a share: 0.05 for 5 points.
	BetterBy float64 `json:"betterBy"`
	// Risk is the greatest chance of a wrong verdict.
	Risk float64 `json:"risk"`
	// MaxCost limits what the run can spend, in US dollars, and MaxTrials the number of trials
	// that it executes. Nil means no limit.
	MaxCost   *float64 `json:"maxCost,omitempty"`
	MaxTrials *int     `json:"maxTrials,omitempty"`
	// Pairs is the most pairs of trials of a task. Batch is the number of pairs that the run
	// chooses at once. 0 means the default; the record of a run has the effective values.
	Pairs int `json:"pairs,omitempty"`
	Batch int `json:"batch,omitempty"`
	// Seed decides the order of tasks. 0 means that of the newest run with the same question, unless
	// Fresh is set, and otherwise a random one; the record of a run has the effective value.
	Seed int `json:"seed,omitempty"`
	// Fresh executes all trials, and reuses none of earlier runs.
	Fresh bool `json:"fresh,omitempty"`
}

// A QuestionError reports why a run cannot decide a question.
type QuestionError struct {
	// Key is the wrong part of the question: a, b, better_by, risk, budget or seed. It is empty if no
	// single part is wrong.
	Key    string
	Reason string
}

func (e *QuestionError) Error() string { return "cannot decide: " + e.Reason }

// Parameter returns the parameter of a request that is wrong, such as decide.a.
func (e *QuestionError) Parameter() string {
	if e.Key == "" || e.Key == "budget" {
		return "decide"
	}
	return "decide." + e.Key
}

// The names of sides that are neither cells nor revisions.
const (
	SideNone  = "none" // the agent without skills
	SideFiles = "."    // the agent with the skills as they are
)

// DecideTrials is the default of [DecideRequest.Pairs].
const DecideTrials = 100

// DefaultRisk is the risk of a wrong verdict where nobody chooses one.
const DefaultRisk = 0.05

// Baseline reports whether side A is the baseline of side B.
func (d *DecideRequest) Baseline() bool { return d.B == SideFiles }

// DecideQuestion is the question that a run decides.
type DecideQuestion struct {
	// A and B are the names of the sides, as people read them.
	A string `json:"a"`
	B string `json:"b"`
	// BetterBy is the smallest gain worth having, as a share. Risk is the greatest chance of a
	// wrong verdict.
	BetterBy float64 `json:"betterBy"`
	Risk     float64 `json:"risk"`
	// Batch is the number of pairs that are chosen at once. Seed decides the order of tasks.
	Batch int `json:"batch"`
	Seed  int `json:"seed"`
	// MaxCost and MaxTrials are those of [DecideRequest].
	MaxCost   *float64 `json:"maxCost,omitempty"`
	MaxTrials *int     `json:"maxTrials,omitempty"`
}

// DecisionVerdict answers a question.
type DecisionVerdict string

// The verdicts about a question.
const (
	DecidedBetter    DecisionVerdict = "better"     // side B passes more trials
	DecidedNotBetter DecisionVerdict = "not_better" // side B does not gain the points asked for
	DecidedNothing   DecisionVerdict = "undecided"
)

// DecisionEnd is the reason why a run chose no more pairs.
type DecisionEnd string

// The reasons why a run chose no more pairs.
const (
	EndVerdict     DecisionEnd = "verdict"     // the verdict is known
	EndBudget      DecisionEnd = "budget"      // the next pairs could exceed the budget
	EndTrials      DecisionEnd = "trials"      // a task has no more trials
	EndInterrupted DecisionEnd = "interrupted" // some chosen pairs have not ended
)

// Decision is what the pairs of a run say about its question.
type Decision struct {
	DecideQuestion
	Verdict DecisionVerdict `json:"verdict"`
	// Gain is the estimated gain of side B over side A, as a difference of pass rates over exactly
	// these tasks, with an interval that holds at every look at once, with confidence 1 - Risk.
	Gain     float64  `json:"gain"`
	Interval Interval `json:"interval"`
	// Tasks is the number of tasks that both sides have. Pairs is the number of pairs that the
	// verdict uses, and Missing the number of those without a counted trial on both sides.
	Tasks   int `json:"tasks"`
	Pairs   int `json:"pairs"`
	Missing int `json:"missing,omitempty"`
	// Executed is the number of trials of these pairs that the run executed, and Reused the
	// number of those that it took from earlier runs.
	Executed int `json:"executed"`
	Reused   int `json:"reused,omitempty"`
	// SpentUSD is the known cost of all trials of the run, without that of reused trials.
	SpentUSD float64     `json:"spentUsd,omitempty"`
	Ended    DecisionEnd `json:"ended"`
	// More predicts what would decide the question; nil once it is decided, and if no sensible
	// number of trials would.
	More *MorePairs `json:"more,omitempty"`
	// Text is the answer in one line, the same everywhere.
	Text string `json:"text"`
}

// MorePairs predicts what would decide a question.
type MorePairs struct {
	Pairs int `json:"pairs"`
	// CostUSD is the predicted cost; 0 when no trial reported a cost.
	CostUSD float64 `json:"costUsd,omitempty"`
}

// DecisionProgress is the state of a question while its run is active.
type DecisionProgress struct {
	// Pairs is the number of pairs that the run has looked at, and MostPairs the most that it can have. Most
	// runs need far fewer. Missing is the number of pairs without a counted trial on both sides.
	Pairs     int `json:"pairs" doc:"Pairs of trials that the run has looked at."`
	MostPairs int `json:"mostPairs" doc:"The most pairs that the run can have. Most runs need far fewer."`
	Missing   int `json:"missing,omitempty" doc:"Pairs without a counted trial on both sides, which count as the worst case."`
	// Gain and Interval are those of [Decision] if the run ended now.
	Gain     float64  `json:"gain" doc:"Estimated gain of side B over side A so far, as a difference of pass rates."`
	Interval Interval `json:"interval" doc:"Interval of the gain, which holds at every look at once."`
	// Executed and Reused count the trials of these pairs. MaxTrials limits the former; nil means no limit.
	Executed  int  `json:"executed" doc:"Executed trials of these pairs."`
	Reused    int  `json:"reused,omitempty" doc:"Trials of these pairs that come from earlier runs."`
	MaxTrials *int `json:"maxTrials,omitempty" doc:"The most trials that the run can execute; absent without such a limit."`
	// SpentUSD is the known cost of the trials of these pairs. MaxCost limits that of the run; nil means no limit.
	SpentUSD float64  `json:"spentUsd,omitempty" doc:"Known cost of the trials of these pairs in US dollars; absent if it is 0."`
	MaxCost  *float64 `json:"maxCost,omitempty" doc:"The most that the run can cost; absent without such a limit."`
	// Text describes the progress in one line, the same everywhere.
	Text string `json:"text" doc:"All this in one line for people."`
}

// Share returns the used share of the budget or, if it is larger, the share of the pairs that the run can have.
// The run ends when it is 1 or earlier.
func (p *DecisionProgress) Share() float64 {
	share := 0.0
	if p.MostPairs > 0 {
		share = float64(p.Pairs) / float64(p.MostPairs)
	}
	if p.MaxTrials != nil && *p.MaxTrials > 0 {
		share = max(share, float64(p.Executed)/float64(*p.MaxTrials))
	}
	if p.MaxCost != nil && *p.MaxCost > 0 {
		share = max(share, p.SpentUSD / *p.MaxCost)
	}
	return min(share, 1)
}
