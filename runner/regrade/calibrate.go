package regrade

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"

	"waza/runner/grader/person"
	"waza/runner/record"
	"waza/runner/replay"
	"waza/runner/stats"
)

// A Calibration asks people about trials that are drawn at random, to correct the pass rate of a
// judge.
type Calibration struct {
	// Grader is the name of the judge. It can be empty if the run has only one.
	Grader string
	// Labels is the number of trials to draw, including those that were drawn before; at least 1.
	Labels int
}

// Drawn is the state of a calibration.
type Drawn struct {
	RunID  string `json:"runId"`
	Grader string `json:"grader"`
	// Trials is the number of trials that the judge scored. Drawn is the number of trials that are
	// drawn, Added those that were drawn now, and Labeled those that people have scored.
	Trials  int `json:"trials"`
	Drawn   int `json:"drawn"`
	Added   int `json:"added"`
	Labeled int `json:"labeled"`
}

// drawnBy is the end of the names of questions about drawn trials, after the name of the judge.
const drawnBy = " (people)"

// Calibrate draws trials of a run that is over, and adds a question to people to each. It draws at
// random, but the same trials each time. A later call with more labels keeps the drawn trials and
// adds others. Answers are those of [Amender.Review]. Trials that people score without being
// asked this way are no random part, so they do not correct the pass rate.
//
// The trials are divided by the judge's verdict, and each part gets its share of the labels, see
// [stats.AllotLabels]. The order of the questions mixes the parts, so that the first answers are
// a random part, too. If the judge was asked again in the meantime and its verdicts changed, no
// trials can be added. The error is [record.ErrRunNotFound], a [*ReviewError], a
// [*record.BusyError], or an error of reading or writing the record.
func (r *Amender) Calibrate(ctx context.Context, runID string, c Calibration) (*Drawn, error) {
	var done *Drawn
	err := r.amendPatiently(ctx, runID, func(_ context.Context, a *Amendment) (err error) {
		a.Redact(environmentSecrets())
		done, err = a.calibrate(c)
		return err
	})
	return done, err
}

// A judgedTrial is a trial with the grade of the judge.
type judgedTrial struct {
	task, num int
	name      string // id of the task
	passed    bool
	score     float64
	drawn     *record.LabelDraw // nil if it was not drawn
	labeled   bool
}

func (a *Amendment) calibrate(c Calibration) (*Drawn, error) {
	if c.Labels < 1 {
		return nil, &ReviewError{RunID: a.rec.RunID, What: "labels", Given: fmt.Sprint(c.Labels),
			msg: fmt.Sprintf("the number of trials to draw must be at least 1, got %d", c.Labels)}
	}
	name, trials, err := a.judgedTrials(c.Grader)
	if err != nil {
		return nil, err
	}
	var parts [2][]*judgedTrial // failed and passed by the judge
	done := &Drawn{RunID: a.rec.RunID, Grader: name, Trials: len(trials)}
	drawn, changed := [2]int{}, false
	draw := record.LabelDraw{Seed: seedOf(a.rec.RunID, name), Trials: len(trials), Verdicts: digestOf(trials)}
	var scores []float64
	for i := range trials {
		t := &trials[i]
		part := 0
		if t.passed {
			part = 1
		}
		parts[part] = append(parts[part], t)
		scores = append(scores, t.score)
		if t.drawn == nil {
			continue
		}
		changed = changed || t.drawn.Verdicts != draw.Verdicts
		drawn[part]++
		done.Drawn++
		if t.labeled {
			done.Labeled++
		}
	}
	if c.Labels <= done.Drawn {
		return done, nil
	}
	if changed {
		return nil, &ReviewError{RunID: a.rec.RunID, What: "grader", Given: name, msg: fmt.Sprintf(
			"the verdicts of grader %q changed after %d trials were drawn, so that no more can be added to them", name, done.Drawn)}
	}
	draw.TrialsPassed, draw.MeanScore = len(parts[1]), stats.Describe(scores).Mean
	var added []*judgedTrial
	for part, n := range stats.AllotLabels([]int{len(parts[0]), len(parts[1])}, c.Labels) {
		rng := rand.New(rand.NewPCG(uint64(draw.Seed), uint64(part)))
		list := parts[part]
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		for i := drawn[part]; i < n; i++ {
			added = append(added, list[i])
		}
	}
	rng := rand.New(rand.NewPCG(uint64(draw.Seed), 2+uint64(done.Drawn)))
	rng.Shuffle(len(added), func(i, j int) { added[i], added[j] = added[j], added[i] })
	for _, t := range added {
		draw.Place = done.Drawn + 1
		if err := a.ask(t, name, draw); err != nil {
			return nil, err
		}
		done.Drawn++
		done.Added++
	}
	return done, nil
}

// ask adds the question about a drawn trial.
func (a *Amendment) ask(t *judgedTrial, judge string, draw record.LabelDraw) error {
	res, err := a.Trial(t.task, t.num)
	if err != nil {
		return err
	}
	draw.Passed = t.passed
	res.Graders = append(res.Graders, record.Grade{
		Name: judge + drawnBy, Type: record.TypeHumanCalibration, Weight: 1, NeedsReview: true,
		Details: record.Review{Instructions: askedOf(res, judge), Threshold: record.DefaultPass, Calibrates: judge, Drawn: &draw},
	})
	person.Compare(res.Graders)
	return a.Replace(t.task, res.Verdict, res)
}

// judgedTrials returns the trials of the suite's tasks that a judge scored, in the order of the
// run, and the judge's name.
func (a *Amendment) judgedTrials(name string) (string, []judgedTrial, error) {
	found := map[string][]judgedTrial{}
	var judges, all []string
	for task, ref := range a.rec.Tasks {
		if ref.Role != record.RoleTask {
			continue
		}
		for i := range ref.Trials {
			a.mu.Lock()
			at := a.placeLocked(task, i)
			a.mu.Unlock()
			if at.Size == 0 {
				continue
			}
			var res replay.LeanTrial
			if err := res.Read(a.files, at); err != nil {
				return "", nil, err
			}
			for j := range res.Graders {
				g := &res.Graders[j]
				if g.AsksPerson() || !g.Scored() || g.AfterTurn > 0 || slices.ContainsFunc(res.Graders[:j], func(o record.Grade) bool { return o.Name == g.Name }) {
					continue
				}
				if !slices.Contains(all, g.Name) {
					all = append(all, g.Name)
				}
				if g.Type == record.TypePrompt && !slices.Contains(judges, g.Name) {
					judges = append(judges, g.Name)
				}
				t := judgedTrial{task: task, num: res.TrialNum, name: ref.ID, passed: g.Passed, score: g.Score}
				for k := range res.Graders {
					if o := &res.Graders[k]; o.Drawn() && o.Review().Calibrates == g.Name {
						t.drawn, t.labeled = o.Review().Drawn, o.Scored()
					}
				}
				found[g.Name] = append(found[g.Name], t)
			}
		}
	}
	fault := &ReviewError{RunID: a.rec.RunID, What: "grader", Given: name, Known: judges}
	switch {
	case name == "" && len(judges) == 1:
		name = judges[0]
	case name == "" && len(judges) == 0:
		fault.msg = fmt.Sprintf("no grader of run %s asks a judge; name another grader to calibrate", a.rec.RunID)
		return "", nil, fault
	case name == "":
		fault.msg = fmt.Sprintf("several graders of run %s ask a judge, name one of them: %s", a.rec.RunID, strings.Join(judges, ", "))
		return "", nil, fault
	case found[name] == nil:
		fault.Known = all
		fault.msg = fmt.Sprintf("no grader %q scored a trial of run %s; graders that did: %s", name, a.rec.RunID, strings.Join(all, ", "))
		return "", nil, fault
	}
	return name, found[name], nil
}

// seedOf returns the seed of the draw: the same for each call, and different for each run.
func seedOf(runID, grader string) uint32 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%q %q", runID, grader)
	return h.Sum32()
}

// digestOf identifies the verdicts of a judge.
func digestOf(trials []judgedTrial) string {
	h := sha256.New()
	for _, t := range trials {
		fmt.Fprintf(h, "%q %d %t\n", t.name, t.num, t.passed)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// askedOf returns the question to the person: the judge's criteria where the trial holds them.
func askedOf(res *record.Trial, judge string) string {
	for i := range res.Graders {
		g := &res.Graders[i]
		if g.Name != judge {
			continue
		}
		var details struct {
			Prompt string `json:"prompt"`
		}
		b, err := json.Marshal(g.Details)
		if err == nil && json.Unmarshal(b, &details) == nil && strings.TrimSpace(details.Prompt) != "" {
			return strings.TrimSpace(details.Prompt)
		}
	}
	return fmt.Sprintf("Does the trial meet the criteria of grader %q?", judge)
}
