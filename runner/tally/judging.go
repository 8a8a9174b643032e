package tally

import (
	"cmp"
	"math"
	"strings"

	"waza/eval"
	"waza/eval/text"
	"waza/runner/record"
)

// maxSummary bounds the bytes of the reason in a verdict on a case.
const maxSummary = 500

// CaseVerdictOf returns what judges make of a trial. The quality score is
//
//	1 + 4 × s, rounded to an integer, half up
//
// where s is the mean of the scores of the trial's prompt graders, 0 to 1, by their
// weights. The verdict is pass when all of them passed, and fail when one did not.
//
// For example, scores of 0.9 with the weight 2 and 0.6 with the weight 1 have the mean
// (2 × 0.9 + 0.6) / 3 = 0.8, and 1 + 4 × 0.8 = 4.2 is a quality score of 4. A score of
// 0.625 gives 3.5, which is 4.
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

// judgesScore is the weighted mean of the scores of judges; judged is false without any.
func judgesScore(res *record.Trial) (score float64, passed, judged bool) {
	sum, weights := 0.0, 0.0
	passed = true
	for i := range res.Graders {
		g := &res.Graders[i]
		if g.Type != record.TypePrompt || !g.Scored() {
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

// unjudged is the verdict on a case that no judge has seen.
func unjudged(v record.Verdict) string {
	if v.Counted() {
		return passOrFail(v == record.Passed)
	}
	return string(v)
}

// summaryOf is a reason in one line.
func summaryOf(reason string) string {
	return text.Clip(strings.Join(strings.Fields(reason), " "), maxSummary)
}

// judging gathers what judges say in a run of the kind judge. Its tally guards it.
type judging struct {
	cases, judged int
	quality       [5]int
}

// newJudging is nil unless the suite is of the kind judge. All methods take nil.
func newJudging(rec *record.Run) *judging {
	if rec.Suite.KindName() != eval.Judge {
		return nil
	}
	return &judging{}
}

func (j *judging) addTrial(res *record.Trial) {
	if j == nil {
		return
	}
	j.cases++
	v := CaseVerdictOf(res)
	if v.QualityScore != nil {
		j.judged++
		j.quality[min(max(*v.QualityScore, 1), 5)-1]++
	}
}

// result is nil for nil. score is that of the run.
func (j *judging) result(score *record.ScoreStats) *record.JudgeResult {
	if j == nil {
		return nil
	}
	r := &record.JudgeResult{Cases: j.cases, Judged: j.judged, Quality: j.quality}
	if score != nil && j.judged > 0 {
		r.Report = reportOf(score.Mean)
	}
	return r
}

// reportOf has the overall score, which is
//
//	100 × the mean score of the tasks, as the run's, rounded to one decimal, half up
//
// and the grade of [GradeOf] for it. For example, tasks with the scores 0.9, 0.8 and 0.76
// have the mean 0.82: the overall score is 82, the grade B+.
func reportOf(mean float64) *record.JudgeReport {
	score := math.Floor(float64(1000*mean)+0.5) / 10
	return &record.JudgeReport{OverallScore: score, OverallGrade: GradeOf(score)}
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
