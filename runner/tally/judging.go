package tally

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"waza/eval"
	"waza/eval/text"
	"waza/runner/record"
	"waza/runner/stats"
)

// maxSummary limits the bytes of the reason in a case verdict.
const maxSummary = 500

// CaseVerdictOf returns the judgment of a trial. The quality score is
//
//	1 + 4 × s, rounded to an integer, half up
//
// where s is the mean of the scores of the trial's prompt graders, 0 to 1, by their weights. The
// verdict is pass when all of them passed, and fail when one did not.
//
// For example, scores of 0.9 with the weight 2 and 0.6 with the weight 1 have the mean (2 × 0.9
// + 0.6) / 3 = 0.8, and 1 + 4 × 0.8 = 4.2 is a quality score of 4. A score of 0.625 gives 3.5,
// which is 4.
func CaseVerdictOf(res *record.Trial) record.CaseVerdict {
	score, passed, judged := judgesScore(res)
	if !judged {
		return record.CaseVerdict{Verdict: unjudged(res.Verdict), Summary: summaryOf(res.Error)}
	}
	quality := int(math.Floor(1.5 + float64(4*score)))
	v := record.CaseVerdict{Verdict: passOrFail(passed), QualityScore: &quality}
	for i := range res.Graders {
		for _, o := range res.Graders[i].Opinions() {
			if v.Summary == "" && o.Passed == passed {
				v.Summary = summaryOf(o.Reason)
			}
		}
	}
	return v
}

// judgesScore returns the weighted mean of the scores of judges; judged is false without any.
func judgesScore(res *record.Trial) (score float64, passed, judged bool) {
	sum, weights := 0.0, 0.0
	passed = true
	for i := range res.Graders {
		g := &res.Graders[i]
		if g.Type != record.TypePrompt || !g.Scored() || g.AfterTurn > 0 {
			continue
		}
		w := cmp.Or(g.Weight, 1)
		sum += float64(w * g.Score)
		weights += w
		passed = passed && g.Passed
	}
	if weights == 0 {
		return 0, false, false
	}
	return sum / weights, passed, true
}

func passOrFail(passed bool) string {
	if passed {
		return "pass"
	}
	return "fail"
}

// unjudged returns the verdict of a case without a judge's score.
func unjudged(v record.Verdict) string {
	if v.Counted() {
		return passOrFail(v == record.Passed)
	}
	return string(v)
}

// summaryOf returns a reason on one line.
func summaryOf(reason string) string {
	return text.Clip(strings.Join(strings.Fields(reason), " "), maxSummary)
}

// judging collects the verdicts of judges in a run of kind judge.
type judging struct {
	cases, judged int
	quality       [5]int
	verdicts      uint64 // sum of the digests of the verdicts, independent of their order
}

// newJudging returns nil unless the suite is of kind judge. All methods accept nil.
func newJudging(rec *record.Run) *judging {
	if rec.Suite.KindName() != eval.Judge {
		return nil
	}
	return &judging{}
}

func (j *judging) addTrial(ref *record.TaskRef, res *record.Trial) {
	if j == nil {
		return
	}
	j.cases++
	v := CaseVerdictOf(res)
	if v.QualityScore != nil {
		j.judged++
		j.quality[min(max(*v.QualityScore, 1), 5)-1]++
	}
	score, _, _ := judgesScore(res)
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %d %s %x", ref.ID, res.TrialNum, v.Verdict, math.Float64bits(score)))
	j.verdicts += binary.BigEndian.Uint64(sum[:8])
}

// Verdicts returns a digest of the judges' verdicts so far, independent of their order. It is
// empty without verdicts, and for runs of other kinds.
func (t *Run) Verdicts() string { return t.judged.digest() }

func (j *judging) digest() string {
	if j == nil || j.judged == 0 {
		return ""
	}
	return hex.EncodeToString(binary.BigEndian.AppendUint64(nil, j.verdicts))
}

// judgedLedger returns the cost of judges besides their verdicts.
func (t *summing) judgedLedger() *record.Ledger {
	if t.Run.judged == nil {
		return nil
	}
	var sum *record.Usage
	for _, c := range t.comparisons() { // sums of floats depend on the order
		sum = record.AddUsage(sum, c.Usage)
	}
	if f := t.state.Judged.Findings; f != nil {
		sum = record.AddUsage(sum, f.Usage)
	}
	return &record.Ledger{Judges: sum}
}

// comparisons returns the comparisons of a run of kind judge in order.
func (t *summing) comparisons() []*record.CaseComparison {
	if t.Run.judged == nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(t.state.Judged.Comparisons), func(a, b *record.CaseComparison) int {
		return cmp.Or(cmp.Compare(a.Num, b.Num), cmp.Compare(a.TaskB, b.TaskB), cmp.Compare(a.TrialNum, b.TrialNum))
	})
}

// judgeResult returns the result of a run with the given score, and with the tasks that have one
// in all cells; nil for runs of other kinds.
func (t *summing) judgeResult(score *record.ScoreStats, common []string, cells []Side) *record.JudgeResult {
	j := t.Run.judged
	if j == nil {
		return nil
	}
	r := &record.JudgeResult{Cases: j.cases, Judged: j.judged, Quality: j.quality}
	made := t.comparisons()
	r.Comparisons, r.Ranking = pairsOf(made), rankingOf(made)
	count := 0
	for _, p := range r.Comparisons {
		count += p.Wins + p.Losses + p.Ties
	}
	comparing := t.state.Judged.Comparing
	r.Missing, r.LeftOut = max(0, comparing.Total-count), comparing.LeftOut
	if score != nil && j.judged > 0 {
		r.Report = j.report(t.state.Judged.Findings, common, cells)
	}
	return r
}

// report contains the overall score, which is
//
//	100 × the mean score of the tasks that have one in all cells, rounded to one decimal, half up
//
// and its grade, see [GradeOf]. For example, tasks with the scores 0.9, 0.8 and 0.76 have the
// mean 0.82: the overall score is 82, the grade B+. If model A scores 0.2 in a hard task and 1 in
// an easy one, and the hard task of model B ended in error, only the easy task counts.
func (j *judging) report(f *record.Findings, common []string, cells []Side) *record.JudgeReport {
	r := &record.JudgeReport{}
	var counted []*record.Task
	for _, c := range cells {
		for _, task := range common {
			if res := c.Tasks[task]; scored(res) {
				counted = append(counted, res)
			}
		}
	}
	if s := ScoreOver(counted); s != nil {
		score := math.Floor(float64(1000*s.Mean)+0.5) / 10
		r.OverallScore, r.OverallGrade = &score, GradeOf(score)
	}
	switch {
	case f == nil:
		r.Missing = "the run ended before the judge wrote strengths and weaknesses"
	case f.Error != "":
		r.Missing, r.Judge = f.Error, f.Judge
	default:
		r.Judge, r.Strengths, r.Weaknesses, r.Stale = f.Judge, f.Strengths, f.Weaknesses, f.Of != j.digest()
	}
	return r
}

// GradeOf returns the grade of an overall score, 0 to 100:
//
//	A+ from 95   B+ from 80   C+ from 65   D+ from 50   F below 40
//	A  from 90   B  from 75   C  from 60   D  from 45
//	A- from 85   B- from 70   C- from 55   D- from 40
//
// For example, 82 is B+, and so is 80; 79.9 is B.
func GradeOf(score float64) string {
	for i, grade := range []string{"A+", "A", "A-", "B+", "B", "B-", "C+", "C", "C-", "D+", "D", "D-"} {
		if score >= float64(95-5*i) {
			return grade
		}
	}
	return "F"
}

// pairsOf summarizes comparisons by the models that they compare. The win rate of model A is the
// mean over tasks of its points for each comparison: 1 for a win, 0.5 for a tie, 0 for a loss.
// Its interval is computed like that of the run's score, see [ScoreOver].
//
// For example, of a task with two trials model A wins one and ties one, and it loses a task with
// one trial: (0.75 + 0) / 2 = 0.375.
func pairsOf(list []*record.CaseComparison) []record.PairResult {
	var pairs []record.PairResult
	var points []map[string][]float64 // of each pair, by task
	var tasks [][]string              // in order
	for _, c := range list {
		i := slices.IndexFunc(pairs, func(p record.PairResult) bool { return p.ModelA == c.ModelA && p.ModelB == c.ModelB })
		if i < 0 {
			i = len(pairs)
			pairs = append(pairs, record.PairResult{ModelA: c.ModelA, ModelB: c.ModelB})
			points, tasks = append(points, map[string][]float64{}), append(tasks, nil)
		}
		p := &pairs[i]
		shown := *c
		shown.Hash = ""
		p.Cases = append(p.Cases, &shown)
		switch c.Winner {
		case record.WinnerA:
			p.Wins++
		case record.WinnerB:
			p.Losses++
		case record.Tie:
			p.Ties++
		default:
			continue
		}
		if points[i][c.TaskA] == nil {
			tasks[i] = append(tasks[i], c.TaskA)
		}
		points[i][c.TaskA] = append(points[i][c.TaskA], c.Points())
	}
	for i := range pairs {
		var parts []stats.Part
		for _, task := range tasks[i] {
			parts = append(parts, stats.PartOf(points[i][task]))
		}
		if rate, ok := stats.MeanOver(parts, stats.DefaultConfidence); ok {
			pairs[i].WinRate, pairs[i].WinRateInterval = &rate.Value, &rate.Interval
		}
	}
	return pairs
}

// rankingOf ranks the models of comparisons; nil for fewer than three models. The comparisons of
// one case of the suite depend on each other: they name it by its task for each model, so that
// tasks that appear in one comparison are one case.
func rankingOf(list []*record.CaseComparison) []record.ModelStrength {
	var models []string
	var duels []stats.Duel
	cases := map[string]int{} // by the id of any of its tasks
	model := func(name string) int {
		i := slices.Index(models, name)
		if i < 0 {
			i = len(models)
			models = append(models, name)
		}
		return i
	}
	for i, c := range list {
		task, ok := cases[c.TaskA]
		if !ok {
			if task, ok = cases[c.TaskB]; !ok {
				task = i
			}
		}
		cases[c.TaskA], cases[c.TaskB] = task, task
		if c.Winner != "" {
			duels = append(duels, stats.Duel{A: model(c.ModelA), B: model(c.ModelB), Task: task, Points: c.Points()})
		}
	}
	if len(models) < 3 {
		return nil
	}
	var ranking []record.ModelStrength
	for i, r := range stats.RankModels(len(models), duels, stats.DefaultConfidence) {
		ranking = append(ranking, record.ModelStrength{
			Model: models[i], Rank: r.Rank, Group: r.Group + 1, Strength: r.Wins.Value, StrengthInterval: r.Wins.Interval,
		})
	}
	slices.SortStableFunc(ranking, func(a, b record.ModelStrength) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Model, b.Model))
	})
	return ranking
}
