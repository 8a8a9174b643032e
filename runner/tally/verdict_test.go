package tally

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/grader/person"
	"waza/runner/record"
	"waza/runner/stats"
)

func gave(score float64, passed bool) record.Grade {
	return record.Grade{Name: "g", Type: "text", Score: score, Passed: passed, Weight: 1}
}

func waiting(typ string) record.Grade {
	return record.Grade{Name: "p", Type: typ, Weight: 3, NeedsReview: true, Details: record.Review{Threshold: 0.5, Calibrates: "g"}}
}

func reviewed(t *testing.T, typ string, score float64) record.Grade {
	t.Helper()
	r := waiting(typ)
	require.NoError(t, person.SetReview(&r, score, "", "", time.Now()))
	return r
}

func TestVerdictOf(t *testing.T) {
	t.Parallel()
	broken := record.Grade{Name: "b", Type: "program", Error: "no interpreter"}
	for name, c := range map[string]struct {
		results []record.Grade
		verdict record.Verdict
		score   float64 // negative for none
	}{
		"nothing":                     {nil, record.Passed, 1},
		"passed":                      {[]record.Grade{gave(1, true), gave(0.5, true)}, record.Passed, 0.75},
		"failed":                      {[]record.Grade{gave(1, true), gave(0.5, false)}, record.Failed, 0.75},
		"waits":                       {[]record.Grade{waiting("human")}, record.NeedsReview, -1},
		"passed but waits":            {[]record.Grade{gave(0.5, true), waiting("human")}, record.NeedsReview, 0.5},
		"failed whatever anyone says": {[]record.Grade{waiting("human"), gave(0.5, false)}, record.Failed, 0.5},
		"one of two waits":            {[]record.Grade{waiting("human"), reviewed(t, "human", 1)}, record.NeedsReview, 1},
		"reviewed, passed":            {[]record.Grade{gave(1, true), reviewed(t, "human", 0.6)}, record.Passed, 0.7},
		"reviewed, failed":            {[]record.Grade{gave(1, true), reviewed(t, "human", 0.2)}, record.Failed, 0.4},
		"error":                       {[]record.Grade{waiting("human"), broken, gave(0, false)}, record.Errored, -1},
		"calibration waits":           {[]record.Grade{gave(0.5, true), waiting("human_calibration")}, record.Passed, 0.5},
		"calibration says no":         {[]record.Grade{gave(0.5, true), reviewed(t, "human_calibration", 0)}, record.Passed, 0.5},
		"nothing but calibration":     {[]record.Grade{waiting("human_calibration")}, record.Passed, 1},
	} {
		verdict, score, message := VerdictOf(c.results, nil)
		require.Equal(t, c.verdict, verdict, name)
		require.Equal(t, c.verdict == record.Errored, message != "", name)
		if c.score < 0 {
			require.Nil(t, score, name)
			continue
		}
		require.NotNil(t, score, name)
		require.InDelta(t, c.score, *score, 1e-12, name)
	}
}

func weighing(weight, score float64, passed bool) record.Grade {
	g := gave(score, passed)
	g.Weight = weight
	return g
}

func in(group *record.GradeGroup, g record.Grade) record.Grade {
	g.Group = group
	return g
}

// With a threshold, the score decides. Groups count as one grader, and optional graders as none.
func TestVerdictOfScore(t *testing.T) {
	t.Parallel()
	half, most, all := 0.5, 0.8, 1.0
	optional := gave(0, false)
	optional.Optional = true
	broken := record.Grade{Name: "b", Type: "program", Weight: 1, Optional: true, Error: "no interpreter"}
	checkpoint := gave(0, false)
	checkpoint.AfterTurn = 1
	set := &record.GradeGroup{Name: "set", Weight: 3}
	easy := &record.GradeGroup{Name: "easy", Weight: 1, Threshold: &half}
	thirds := []record.Grade{weighing(0.1, 1, true), weighing(0.7, 1, true), weighing(0.2, 1, true)}
	for name, c := range map[string]struct {
		threshold *float64
		results   []record.Grade
		verdict   record.Verdict
		score     float64 // negative for none
	}{
		"reached":                         {&half, []record.Grade{gave(1, true), gave(0, false)}, record.Passed, 0.5},
		"not reached":                     {&most, []record.Grade{gave(1, true), gave(0, false)}, record.Failed, 0.5},
		"not reached, although all pass":  {&most, []record.Grade{gave(0.6, true), gave(0.8, true)}, record.Failed, 0.7},
		"weights":                         {&most, []record.Grade{weighing(4, 1, true), weighing(1, 0, false)}, record.Passed, 0.8},
		"the sum of floats":               {&all, thirds, record.Passed, 1},
		"nothing":                         {&all, nil, record.Passed, 1},
		"a checkpoint":                    {&half, []record.Grade{gave(1, true), checkpoint}, record.Failed, 1},
		"waits and decides":               {&half, []record.Grade{gave(0.4, false), waiting("human")}, record.NeedsReview, 0.4},
		"waits, enough anyway":            {&half, []record.Grade{weighing(3, 1, true), waiting("human")}, record.Passed, 1},
		"waits, never enough":             {&most, []record.Grade{weighing(3, 0, false), waiting("human")}, record.Failed, 0},
		"optional":                        {nil, []record.Grade{gave(1, true), optional}, record.Passed, 1},
		"only optional":                   {nil, []record.Grade{optional}, record.Passed, 1},
		"optional and broken":             {nil, []record.Grade{gave(0, false), broken}, record.Failed, 0},
		"a group passes":                  {nil, []record.Grade{in(set, gave(1, true)), in(set, gave(1, true))}, record.Passed, 1},
		"a member fails":                  {nil, []record.Grade{gave(1, true), in(set, gave(1, true)), in(set, gave(0, false))}, record.Failed, 0.625},
		"a member fails, enough pass":     {nil, []record.Grade{gave(1, true), in(easy, gave(1, true)), in(easy, gave(0, false))}, record.Passed, 0.75},
		"too few members pass":            {nil, []record.Grade{in(easy, gave(1, true)), in(easy, weighing(2, 0, false))}, record.Failed, 1. / 3},
		"a group is a grader":             {&most, []record.Grade{weighing(1, 0, false), in(set, gave(1, true)), in(set, gave(1, true))}, record.Failed, 0.75},
		"a group waits":                   {nil, []record.Grade{gave(1, true), in(set, waiting("human"))}, record.NeedsReview, 1},
		"a group waits, enough anyway":    {nil, []record.Grade{in(easy, weighing(3, 1, true)), in(easy, waiting("human"))}, record.Passed, 1},
		"a group waits, and is all":       {nil, []record.Grade{in(set, waiting("human"))}, record.NeedsReview, -1},
		"two groups that are interleaved": {nil, []record.Grade{in(set, gave(1, true)), in(easy, gave(0, false)), in(set, gave(0.5, true)), in(easy, gave(1, true))}, record.Passed, 0.6875},
	} {
		verdict, score, message := VerdictOf(c.results, c.threshold)
		require.Equal(t, c.verdict, verdict, name)
		require.Empty(t, message, name)
		if c.score < 0 {
			require.Nil(t, score, name)
			continue
		}
		require.NotNil(t, score, name)
		require.InDelta(t, c.score, *score, 1e-12, name)
	}
}

// The rule of a group makes its score of those of its members. All numbers are computed by hand.
func TestRulesOfGroups(t *testing.T) {
	t.Parallel()
	half, most := 0.5, 0.8
	middle := &record.GradeGroup{Name: "g", Weight: 1, Threshold: &half, Aggregate: eval.Median}
	least := &record.GradeGroup{Name: "g", Weight: 1, Threshold: &half, Aggregate: eval.Min}
	votes := &record.GradeGroup{Name: "g", Weight: 1, Aggregate: eval.Majority}
	yes := func(score float64) record.Grade { return gave(score, true) }
	no := func(score float64) record.Grade { return gave(score, false) }
	broken := record.Grade{Name: "b", Type: "prompt", Weight: 1, Error: "no judge"}
	for name, c := range map[string]struct {
		group     *record.GradeGroup
		threshold *float64 // of the trial
		members   []record.Grade
		verdict   record.Verdict
		score     float64 // negative for none
	}{
		"median of three":                    {middle, nil, []record.Grade{no(0), yes(1), yes(0.75)}, record.Passed, 0.75},
		"median of three, too low":           {middle, nil, []record.Grade{no(0.25), yes(1), no(0.25)}, record.Failed, 0.25},
		"median of four":                     {middle, nil, []record.Grade{yes(1), no(0), no(0.4), yes(0.6)}, record.Passed, 0.5},
		"median of two, below":               {middle, nil, []record.Grade{yes(0.75), no(0)}, record.Failed, 0.375},
		"median of one":                      {middle, nil, []record.Grade{yes(0.5)}, record.Passed, 0.5},
		"median that waits":                  {middle, nil, []record.Grade{no(0), yes(1), waiting("h")}, record.NeedsReview, 0.5},
		"median that waits, enough anyway":   {middle, nil, []record.Grade{yes(0.5), yes(1), waiting("h"), yes(0.5)}, record.Passed, 0.5},
		"median that waits, never enough":    {middle, nil, []record.Grade{no(0.1), no(0.2), waiting("h")}, record.Failed, 0.15},
		"median of people":                   {middle, nil, []record.Grade{waiting("h")}, record.NeedsReview, -1},
		"median with an error":               {middle, nil, []record.Grade{yes(1), broken, yes(1)}, record.Errored, -1},
		"least":                              {least, nil, []record.Grade{yes(0.5), yes(1)}, record.Passed, 0.5},
		"least, too low":                     {least, nil, []record.Grade{yes(1), no(0.25), yes(1)}, record.Failed, 0.25},
		"least that waits":                   {least, nil, []record.Grade{yes(1), waiting("h")}, record.NeedsReview, 1},
		"least that waits, never enough":     {least, nil, []record.Grade{no(0.25), waiting("h")}, record.Failed, 0.25},
		"least with an error":                {least, nil, []record.Grade{no(0), broken}, record.Errored, -1},
		"majority of three":                  {votes, nil, []record.Grade{yes(0.5), no(0), yes(0.75)}, record.Passed, 2. / 3},
		"minority of three":                  {votes, nil, []record.Grade{yes(1), no(0.4), no(0.4)}, record.Failed, 1. / 3},
		"tie of two":                         {votes, nil, []record.Grade{yes(1), no(0)}, record.Failed, 0.5},
		"tie of four":                        {votes, nil, []record.Grade{yes(1), no(0), no(0), yes(1)}, record.Failed, 0.5},
		"majority of four":                   {votes, nil, []record.Grade{yes(1), no(0), yes(1), yes(1)}, record.Passed, 0.75},
		"majority that waits":                {votes, nil, []record.Grade{yes(1), no(0), waiting("h")}, record.NeedsReview, 0.5},
		"majority that waits for a tie":      {votes, nil, []record.Grade{yes(1), no(0), no(0), waiting("h")}, record.Failed, 1. / 3},
		"majority that waits, enough anyway": {votes, nil, []record.Grade{yes(1), yes(1), waiting("h")}, record.Passed, 1},
		"majority of people":                 {votes, nil, []record.Grade{waiting("h"), waiting("h")}, record.NeedsReview, -1},
		"majority with an error":             {votes, nil, []record.Grade{yes(1), yes(1), broken}, record.Errored, -1},
		"majority below the trial's least":   {votes, &most, []record.Grade{yes(1), yes(1), no(0)}, record.Failed, 2. / 3},
		"majority, with people":              {votes, &most, []record.Grade{yes(1), yes(1), waiting("h")}, record.NeedsReview, 1},
		"median below the trial's least":     {middle, &most, []record.Grade{yes(0.75)}, record.Failed, 0.75},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var grades []record.Grade
			for _, g := range c.members {
				grades = append(grades, in(c.group, g))
			}
			verdict, score, _ := VerdictOf(grades, c.threshold)
			require.Equal(t, c.verdict, verdict)
			if c.score < 0 {
				require.Nil(t, score)
				return
			}
			require.NotNil(t, score)
			require.InDelta(t, c.score, *score, 1e-12)
		})
	}
	require.ErrorContains(t, CheckTrial(&record.Trial{
		Verdict: record.Passed, Graders: []record.Grade{in(&record.GradeGroup{Name: "g", Aggregate: "mode"}, gave(1, true))},
	}), `group "g": unknown rule "mode"`)
}

func TestTaskThatWaits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		counts    record.Counts
		threshold float64
		want      record.Verdict
	}{
		{record.Counts{NeedsReview: 3}, 1, record.NeedsReview},
		{record.Counts{Passed: 2, NeedsReview: 1}, 1, record.NeedsReview},
		{record.Counts{Failed: 1, NeedsReview: 1}, 1, record.Failed}, // whatever people score
		{record.Counts{Timeouts: 1, NeedsReview: 1}, 1, record.TimedOut},
		{record.Counts{Failed: 1, NeedsReview: 1}, 0.5, record.NeedsReview},
		{record.Counts{Failed: 2, NeedsReview: 1}, 0.5, record.Failed},
		{record.Counts{Errors: 1, NeedsReview: 1}, 1, record.NeedsReview},
		{record.Counts{Cancelled: 1, NeedsReview: 1}, 1, record.Cancelled},
		{record.Counts{Skipped: 1, NeedsReview: 1}, 1, record.NeedsReview},
		{record.Counts{Failed: 1, Skipped: 1, NeedsReview: 1}, 1, record.Failed},
	} {
		require.Equal(t, c.want, TaskVerdict(c.counts, c.threshold, false), "%+v", c)
		require.Equal(t, record.Errored, TaskVerdict(c.counts, c.threshold, true), "%+v", c)
		require.Equal(t, c.counts.Passed+c.counts.Failed+c.counts.Timeouts, c.counts.Counted())
	}
}

// A trial that waits for a person's score is not counted and has no score anywhere.
func TestWaitingTrialsAreNotCounted(t *testing.T) {
	t.Parallel()
	rec := &record.Run{Tasks: []record.TaskRef{{ID: "a", Groups: []string{"g"}}}, Metrics: []record.MetricRef{{Name: "human"}, {Name: "p"}}}
	tally, task := NewDraft(rec), &Task{}
	half := 0.5
	res := &record.Trial{
		Verdict: record.NeedsReview, Score: &half,
		Graders: []record.Grade{gave(0.5, true), waiting("human"), waiting("human_calibration")},
	}
	failed := &record.Trial{Verdict: record.Failed, Score: &half, Graders: []record.Grade{gave(0.5, false), waiting("human")}}
	for _, r := range []*record.Trial{res, failed, res} {
		tally.AddTrial(0, r)
		task.Add(r)
	}
	result := task.Result(1)
	require.Equal(t, []record.Reason{
		{Verdict: record.NeedsReview, Grader: "p", Message: WaitsForPerson, Trials: 2},
		{Verdict: record.Failed, Grader: "g", Trials: 1},
	},
		result.Reasons)
	require.Nil(t, result.Score)
	require.Nil(t, result.PassK)
	require.Equal(t, 2, result.Trials.NeedsReview)
	require.Equal(t, 3, result.Trials.Done())
	require.Nil(t, result.Trials.PassRate)
	require.Equal(t, &record.Interval{Low: 0, High: 2.0 / 3}, result.Trials.PassRateBounds)
	tally.AddTask(0, result)
	sum := tally.Summary(rec.Metrics)
	require.Nil(t, sum.Metrics[0].Value)
	require.Nil(t, sum.Metrics[1].Value)
	require.Equal(t, 2, sum.Groups[0].NeedsReview)
	require.Equal(t, result.Trials.PassRateBounds, sum.Groups[0].PassRateBounds)
	require.Equal(t, result.Trials.PassRateBounds, sum.Trials.PassRateBounds)
	require.Nil(t, sum.Score)
	require.Nil(t, sum.PassK)
	require.Equal(t, "g", sum.Calibrations[0].Grader)
	require.Equal(t, 2, sum.Calibrations[0].Pending)
	require.Zero(t, sum.Calibrations[0].N)
}

func TestCalibration(t *testing.T) {
	t.Parallel()
	tally := NewDraft(&record.Run{Tasks: []record.TaskRef{{ID: "a"}}})
	for _, p := range []float64{1, 0.5, 0.25, 0} {
		results := []record.Grade{gave(0.75, true), reviewed(t, "human_calibration", p)}
		person.Compare(results)
		tally.AddTrial(0, &record.Trial{Verdict: record.Passed, Graders: results})
	}
	c := tally.Summary(nil).Calibrations[0]
	require.Equal(t, 4, c.N)
	require.Zero(t, c.Pending)
	require.Equal(t, 0.5, c.Agreed)
	require.InDelta(t, 0.3125, c.MeanDifference, 1e-12)
	require.InDelta(t, 0.4375, c.MeanAbsoluteDifference, 1e-12)
	require.Zero(t, *c.Kappa)
}

// A worker or another process can send any number.
func TestCheckTrial(t *testing.T) {
	t.Parallel()
	half, seven := 0.5, 7.0
	weighs := func(w float64) record.Grade { return record.Grade{Name: "g", Passed: true, Weight: w} }
	for want, res := range map[string]record.Trial{
		"":                     {Verdict: record.Passed, Score: &half, Graders: []record.Grade{gave(0.5, true)}},
		`unknown verdict "so"`: {Verdict: "so"},
		"the score is 7":       {Verdict: record.Passed, Score: &seven},
		`grader "g": the score is -1, expected a number from 0 to 1`: {Verdict: record.Failed, Graders: []record.Grade{gave(-1, false)}},
		`grader "g": the score is NaN, expected a number from 0 to 1`: {
			Verdict: record.Failed, Graders: []record.Grade{gave(math.NaN(), false)},
		},
		`grader "g": the weight is -2, expected 0 or more`:   {Verdict: record.Passed, Graders: []record.Grade{weighs(-2)}},
		`grader "g": the weight is +Inf, expected 0 or more`: {Verdict: record.Passed, Graders: []record.Grade{weighs(math.Inf(1))}},
		"the verdict is passed, but that of its graders is failed": {
			Verdict: record.Passed, Score: &half, Graders: []record.Grade{gave(0.5, false)},
		},
		"the verdict is passed, but that of its graders is needs_review": {Verdict: record.Passed, Graders: []record.Grade{waiting("human")}},
	} {
		if err := CheckTrial(&res); want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
}

// Scores that only repeat the verdicts have the contrast of the pass rates, with the same interval.
func TestScoreOfVerdicts(t *testing.T) {
	t.Parallel()
	side := func(passed, other []float64) TaskSide {
		return TaskSide{Share: stats.Share{Passed: len(passed), N: len(passed) + len(other)}, Passed: passed, Other: other}
	}
	same := &ComparedTask{A: side([]float64{1, 1}, []float64{0}), B: side([]float64{1}, []float64{0, 0, 0})}
	require.Equal(t, same.Rate(stats.DefaultConfidence), *same.Score(stats.DefaultConfidence))
	e, ok := stats.Difference([]stats.PartPair{{A: stats.PartOf(same.A.Scores()), B: stats.PartOf(same.B.Scores())}}, stats.DefaultConfidence)
	require.True(t, ok)
	require.InDelta(t, e.Interval.Low, same.Score(stats.DefaultConfidence).Interval.Low, 1e-9)
	require.InDelta(t, e.Interval.High, same.Score(stats.DefaultConfidence).Interval.High, 1e-9)

	other := &ComparedTask{A: side([]float64{1, 0.9}, []float64{0}), B: side([]float64{1}, []float64{0, 0, 0})}
	require.InDelta(t, 0.25-1.9/3, other.Score(stats.DefaultConfidence).Difference, 1e-12)
	unscored := &ComparedTask{A: side(nil, nil), B: side([]float64{1}, nil)}
	require.Nil(t, unscored.Score(stats.DefaultConfidence))
}

// Some suite of a command seems to harm more often if there are more. Only p-values that hold for
// all of them together decide.
func TestOutcomesTogether(t *testing.T) {
	t.Parallel()
	of := func(outcome record.Outcome, p float64) *record.BaselineResult {
		return &record.BaselineResult{Measured: true, Outcome: outcome, P: p}
	}
	worse, better, undecided := record.OutcomeWorse, record.OutcomeBetter, record.OutcomeUndecided
	require.Equal(t, []record.Outcome{worse}, OutcomesTogether([]*record.BaselineResult{of(worse, 0.05)}))
	require.Equal(t, []record.Outcome{undecided, undecided}, OutcomesTogether([]*record.BaselineResult{of(worse, 0.03), of(undecided, 0.5)}))
	require.Equal(t, []record.Outcome{worse, worse, ""},
		OutcomesTogether([]*record.BaselineResult{of(worse, 0.03), of(worse, 0.02), nil}),
		"after the first rejection, one test is left")
	require.Equal(t, []record.Outcome{"", worse},
		OutcomesTogether([]*record.BaselineResult{{Note: "no skills"}, of(worse, 0.03)}),
		"a suite without a measurement has no test")
	require.Equal(t, []record.Outcome{better, undecided}, OutcomesTogether([]*record.BaselineResult{of(better, 0.03), of(undecided, 0.9)}))
}
