package tally

import (
	"math"
	"slices"

	"waza/runner/record"
	"waza/runner/stats"
)

// A ComparedSuite holds the compared tasks of one pair of sides, and the tests of both questions
// about all of them. [NewComparedSuite] creates one, and [Correct] makes its results valid.
type ComparedSuite struct {
	Tasks []*ComparedTask
	// Weight is the share of the level that the tests may spend, above 0 and at most 1, because of
	// earlier comparisons with the same baseline. 0 means 1.
	Weight float64
	// About is the question of the verdict, which [Correct] chooses.
	About record.Question
	// AtLeast is the number of clusters with which a test about tasks like these could show
	// something, at the level that [Correct] leaves to this suite.
	AtLeast int
	// Rates and Values are the changes of pass rates and scores as a sample of tasks like these.
	// Values is nil without scores.
	Rates, Values *stats.Population

	// Open reports whether one of the sides can still change. The suite then has figures and
	// intervals, but no tests, because looking at results while they arrive would count each look.
	Open bool

	these, like asked
}

// asked holds the tests of one question.
type asked struct {
	tests     []stats.Exact
	corrected []float64
}

// NewComparedSuite runs the tests of each task and those of both questions. Intervals have the given
// confidence.
//
// The tests about these tasks are whether any of them changed, by the sum of all changes in pass
// rate and, if scores carry more information, in score. The tests about tasks like these are
// whether the mean change of the clusters is 0, see [stats.LikeThese].
func NewComparedSuite(tasks []*ComparedTask, confidence float64) *ComparedSuite {
	s := &ComparedSuite{Tasks: tasks}
	for _, t := range tasks {
		t.test()
	}
	s.likeThese(confidence)
	if s.CouldStop() {
		s.these.tests = s.stoppedTests(confidence)
		return s
	}
	var strata []stats.Stratum
	var scores []stats.Scores
	for _, t := range tasks {
		strata = append(strata, stats.Stratum{A: t.A.Share, B: t.B.Share})
		if a, b := t.A.Scores(), t.B.Scores(); len(a) > 0 && len(b) > 0 {
			scores = append(scores, stats.Scores{A: a, B: b})
		}
	}
	s.these.tests = []stats.Exact{stats.TheseTasks(strata)}
	if s.Informative() {
		s.these.tests = append(s.these.tests, stats.PermutationStrata(scores, stats.DefaultSeed))
	}
	return s
}

// likeThese tests the tasks as a sample of tasks like these. Tasks that cannot be tested are left
// out. Pass rates and scores of tasks that could stop early are unbiased estimates.
func (s *ComparedSuite) likeThese(confidence float64) {
	var rates, scores []stats.Change
	for _, t := range s.Tasks {
		if t.Untestable() {
			continue
		}
		rates = append(rates, stats.Change{Cluster: t.Cluster, Pair: stats.PartPair{A: t.A.RatePart(), B: t.B.RatePart()}})
		if pair := (stats.PartPair{A: t.A.ScorePart(), B: t.B.ScorePart()}); pair.A.N > 0 && pair.B.N > 0 {
			c := stats.Change{Cluster: t.Cluster, Pair: pair}
			if !t.CouldStop() {
				c.A, c.B = slices.Sorted(slices.Values(t.A.Scores())), slices.Sorted(slices.Values(t.B.Scores()))
			}
			scores = append(scores, c)
		}
	}
	p := stats.LikeThese(rates, confidence)
	s.Rates, s.like.tests = &p, []stats.Exact{p.Test}
	if len(scores) == 0 {
		return
	}
	p = stats.LikeThese(scores, confidence)
	s.Values = &p
	if s.Informative() {
		s.like.tests = append(s.like.tests, p.Test)
	}
}

// Clusters returns the number of clusters of the tasks that can be tested.
func (s *ComparedSuite) Clusters() int { return s.Rates.Clusters }

// TooFew reports whether no test about tasks like these could show anything.
func (s *ComparedSuite) TooFew() bool { return s.Clusters() < s.AtLeast }

// Informative reports whether the scores of some task carry more information than its verdicts.
func (s *ComparedSuite) Informative() bool {
	return slices.ContainsFunc(s.Tasks, func(t *ComparedTask) bool { return t.ScoresInformative })
}

// CouldStop reports whether some task could stop early.
func (s *ComparedSuite) CouldStop() bool {
	return slices.ContainsFunc(s.Tasks, (*ComparedTask).CouldStop)
}

// Tests returns the number of tests of the tasks.
func (s *ComparedSuite) Tests() int {
	n := 0
	for _, t := range s.Tasks {
		n += len(t.Tests)
	}
	return n
}

// leastForSigns is the least number of tasks with which exchanging the sides within tasks can
// show a change at 95 %: 2/2⁶ is the first p-value below 5 %.
const leastForSigns = 6

// stoppedTests returns the tests of a suite with tasks that could stop early. The first is
// whether the sharpest test of a task shows a change. If both sides followed the same rules, the
// second is whether more tasks move in one direction than in the other. If nothing changed,
// exchanging a task's two outcomes does not change their distribution, whatever rule stopped its
// trials.
func (s *ComparedSuite) stoppedTests(confidence float64) []stats.Exact {
	var all []stats.Exact
	var rates, scores []stats.Scores
	same := true
	for _, t := range s.Tasks {
		if t.Untestable() {
			continue
		}
		all = append(all, t.Tests...)
		same = same && t.SameRule
		rate := t.Rate(confidence)
		rates = append(rates, stats.Scores{A: []float64{rate.Reference}, B: []float64{rate.Run}})
		if c := t.Score(confidence); c != nil {
			scores = append(scores, stats.Scores{A: []float64{c.Reference}, B: []float64{c.Run}})
		}
	}
	tests := []stats.Exact{stats.Sharpest(all)}
	if same && len(rates) >= leastForSigns {
		tests = append(tests, stats.PermutationStrata(rates, stats.DefaultSeed))
		if s.Informative() {
			tests = append(tests, stats.PermutationStrata(scores, stats.DefaultSeed))
		}
	}
	return tests
}

// Correct chooses the question of each suite's verdict, and corrects the p-values of all tests by
// [stats.Holm]. The suites must be all that one decision depends on, such as the exit code of a
// command.
//
// The verdict is about the wanted question. If that is empty, it is about tasks like these, or
// about these tasks where a suite has too few clusters for any test of the former. That depends on
// the numbers of clusters and suites alone, not on results.
//
// The verdicts of all suites are corrected together, and so are the tests of all tasks of all
// suites, each by themselves: if nothing changed, the verdict of any suite is wrong with a
// probability of at most 1 - confidence, and any task is called changed with at most that
// probability. The p-values are two-sided, with half for each direction. A gate that fails if any
// verdict is worse or any task regressed therefore fails with at most that probability, too. The
// answers to the other questions, which no verdict is about, are corrected together as well.
func Correct(confidence float64, want record.Question, suites ...*ComparedSuite) {
	var tasks []stats.Exact
	var verdicts, others family
	tested := 0
	for _, s := range suites {
		if s.Open {
			s.withoutTests()
			continue
		}
		tested++
	}
	for _, s := range suites {
		level := (1 - confidence) * s.weight() / float64(max(1, tested))
		s.AtLeast = stats.LeastClusters(1 - level)
		if s.About = want; want == "" {
			s.About = record.TasksLikeThese
			if s.TooFew() {
				s.About = record.TheseTasks
			}
		}
		for _, t := range s.Tasks {
			tasks = s.weighted(tasks, t.Tests)
		}
		verdict, other := &s.like, &s.these
		if s.About == record.TheseTasks {
			verdict, other = other, verdict
		}
		verdicts.add(s, verdict)
		others.add(s, other)
	}
	verdicts.correct()
	others.correct()
	corrected := stats.Holm(tasks)
	for _, s := range suites {
		for _, t := range s.Tasks {
			t.corrected, corrected = corrected[:len(t.Tests)], corrected[len(t.Tests):]
			for j := range t.Out {
				t.Out[j].Corrected = t.corrected[j]
			}
		}
	}
}

// withoutTests removes the tests of a suite that can still change.
func (s *ComparedSuite) withoutTests() {
	s.these, s.like = asked{}, asked{}
	for _, t := range s.Tasks {
		t.Tests, t.Out = nil, []record.TaskTest{}
	}
}

// A family holds tests that are corrected together.
type family struct {
	tests []stats.Exact
	of    []*asked
}

func (f *family) add(s *ComparedSuite, a *asked) {
	f.tests, f.of = s.weighted(f.tests, a.tests), append(f.of, a)
}

func (f *family) correct() {
	corrected := stats.Holm(f.tests)
	for _, a := range f.of {
		a.corrected, corrected = corrected[:len(a.tests)], corrected[len(a.tests):]
	}
}

func (s *ComparedSuite) weight() float64 {
	if s.Weight > 0 && s.Weight < 1 {
		return s.Weight
	}
	return 1
}

// weighted appends the suite's tests with the weight of the suite.
func (s *ComparedSuite) weighted(list, tests []stats.Exact) []stats.Exact {
	w := s.weight()
	if w == 1 {
		return append(list, tests...)
	}
	for _, e := range tests {
		list = append(list, e.Weighted(w))
	}
	return list
}

// Outcome returns what the tests of a question show at the confidence, of pass rates before
// scores, and the smallest corrected p-value. It is better or worse for the second side, else
// undecided; only intervals can show that both are the same.
func (s *ComparedSuite) Outcome(q record.Question, confidence float64) (outcome record.Outcome, p float64) {
	a := &s.these
	if q == record.TasksLikeThese {
		a = &s.like
	}
	outcome, p = record.OutcomeUndecided, 1
	for i := len(a.tests) - 1; i >= 0; i-- {
		p = min(p, a.corrected[i])
		switch {
		case a.corrected[i] > 1-confidence:
		case a.tests[i].Better:
			outcome = record.OutcomeBetter
		default:
			outcome = record.OutcomeWorse
		}
	}
	return outcome, p
}

// Answers returns the answers to both questions. rate and score are the contrasts about these
// tasks; nil without values. The outcome is the same if the intervals of the mean differences are
// within the margin.
func (s *ComparedSuite) Answers(rate, score *record.Contrast, confidence, margin float64) (record.Answer, record.LikeAnswer) {
	these := s.answer(record.TheseTasks, rate, score, confidence, margin)
	like := record.LikeAnswer{Clusters: s.Clusters(), AtLeast: s.AtLeast, TooFew: s.TooFew()}
	like.Answer = s.answer(record.TasksLikeThese, s.alike(rate, s.Rates), s.alike(score, s.Values), confidence, margin)
	if like.Outcome == record.OutcomeUndecided && !s.Open && len(s.Tasks) > 0 {
		n := s.TasksNeeded(confidence)
		like.TasksNeeded = &n
	}
	if total := s.Rates.Between + s.Rates.Within; s.Rates.Split && total > 0 {
		like.Variance = &record.Variance{
			Between: s.Rates.Between, Within: s.Rates.Within, Share: s.Rates.Between / total, MoreTrials: s.Rates.MoreTrials(),
		}
	}
	return these, like
}

// alike returns a contrast with the interval about tasks like these; no interval with too few
// clusters. The interval contains that about these tasks, because similar tasks are not better known. Tasks that all agree would otherwise have an interval
// without a width. A limit does not move across 0 if the test shows a change.
func (s *ComparedSuite) alike(c *record.Contrast, p *stats.Population) *record.Contrast {
	if c == nil || p == nil {
		return nil
	}
	x := *c
	x.Interval = nil
	if !p.TooFew && !slices.ContainsFunc(s.Tasks, (*ComparedTask).Untestable) {
		i := p.Difference.Interval.Including(x.Difference)
		if c.Interval != nil {
			i = widened(i, *c.Interval)
		}
		x.Interval = &i
	}
	return &x
}

// widened returns the interval with the limits of another one, unless it excludes 0 and they do not.
func widened(i, other record.Interval) record.Interval {
	wide := i.Including(other.Low).Including(other.High)
	if i.ExcludesZero() {
		if i.Low > 0 && wide.Low <= 0 {
			wide.Low = i.Low
		}
		if i.High < 0 && wide.High >= 0 {
			wide.High = i.High
		}
	}
	return wide
}

func (s *ComparedSuite) answer(q record.Question, rate, score *record.Contrast, confidence, margin float64) record.Answer {
	a := record.Answer{PassRate: rate, Score: score}
	telling := s.Informative()
	a.Outcome, a.P = s.Outcome(q, confidence)
	if a.Outcome != record.OutcomeUndecided || s.Open || rate == nil || telling && score == nil {
		return a
	}
	if q == record.TasksLikeThese {
		rate, score = s.withUnseen(rate, confidence), s.withUnseen(score, confidence)
	}
	if Within(*rate, margin) && (!telling || Within(*score, margin)) {
		a.Outcome = record.OutcomeSame
	}
	return a
}

// withUnseen returns a contrast whose interval allows for clusters that change by the largest
// possible amount, and of which none is among the compared ones: their share can be as large as it
// is for no success in as many draws (Clopper and Pearson 1934). Without this, six tasks that agree
// would rule out that one of ten tasks breaks.
func (s *ComparedSuite) withUnseen(c *record.Contrast, confidence float64) *record.Contrast {
	if c == nil || c.Interval == nil {
		return c
	}
	share := stats.ClopperPearson(0, s.Clusters(), confidence).High
	low, high := float64((1-share)*c.Interval.Low)-share, float64((1-share)*c.Interval.High)+share
	x := *c
	x.Interval = &record.Interval{Low: low, High: high}
	return &x
}

// Verdict returns the answer to the question that the verdict is about.
func (s *ComparedSuite) Verdict(these record.Answer, like record.LikeAnswer) record.Answer {
	if s.About == record.TasksLikeThese {
		return like.Answer
	}
	return these
}

// TasksNeeded returns how many tasks with as many trials would show the mean difference of the pass
// rates about tasks like these at the level of one suite, or that of the scores if the pass rates do
// not differ. It is 0 if they are too many, or if nothing differs.
func (s *ComparedSuite) TasksNeeded(confidence float64) int {
	population := s.Rates
	if math.Abs(population.Difference.Value) < SameNumber && s.Values != nil && s.Informative() {
		population = s.Values
	}
	if math.Abs(population.Difference.Value) < SameNumber {
		return 0
	}
	n, ok := population.TasksNeeded((1-confidence)*s.weight(), Power)
	if !ok {
		return 0
	}
	return max(n, s.AtLeast, s.Clusters()+1) // the present tasks did not decide
}

// needed returns how many trials of each task would show the mean difference of the pass rates
// of these tasks, by the normal approximation of the test. It returns nil without a difference,
// which no number of trials shows.
func (s *ComparedSuite) needed(difference, confidence float64) *record.Needed {
	if math.Abs(difference) < SameNumber {
		return nil
	}
	variance, have := 0.0, 0
	for i, t := range s.Tasks {
		a, b := t.A.Share, t.B.Share
		rate := stats.Share{Passed: a.Passed + b.Passed, N: a.N + b.N}.Rate()
		variance += rate * (1 - rate)
		if n := min(a.N, b.N); i == 0 || n < have {
			have = n
		}
	}
	spread := math.Sqrt(variance) / float64(len(s.Tasks))
	n, ok := stats.ScoreTrialsNeeded(difference, spread, spread, 1-confidence, Power)
	if !ok {
		return &record.Needed{}
	}
	n = max(n, have+1) // the present trials did not decide
	return &record.Needed{Trials: n, More: n - have}
}
