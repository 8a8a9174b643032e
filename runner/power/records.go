package power

import (
	"context"
	"math"

	"waza/runner/catalog"
	"waza/runner/history"
	"waza/runner/record"
	"waza/runner/replay"
	"waza/runner/stats"
)

// PerTrial is the mean cost of a trial. Unknown figures are nil.
type PerTrial struct {
	Tokens  *float64 `json:"tokens"`
	CostUSD *float64 `json:"costUsd"`
	Seconds *float64 `json:"seconds"`
}

// Records is what the recorded runs of a suite know.
type Records struct {
	Runs     int
	Rates    map[string]stats.Share // of tasks, over all runs
	PerTrial PerTrial
	// A and B are the newest two runs whose agents differ; empty if all agents are the same.
	A, B Run
}

// A Run is a run of an agent.
type Run struct {
	ID    string
	Rates map[string]stats.Share
	agent string
}

// Read reads the newest runs of a suite, at most [history.DefaultRuns] of them. The suites are those
// of [history.Options]. Trials that a run took from an earlier one do not count, and runs that cannot be read
// are omitted. The error is that of the catalog or the cause of ctx.
func Read(ctx context.Context, c *catalog.Catalog, suites []string) (Records, error) {
	r := Records{Rates: map[string]stats.Share{}}
	var means costs
	err := c.Earlier("", func(h record.Handle) bool {
		rec := h.Record()
		if rec.Suite.Path == "" || !history.OfSuite(rec.Suite, suites) {
			return ctx.Err() == nil
		}
		run, own, err := read(h)
		if err != nil || len(run.Rates) == 0 {
			return ctx.Err() == nil
		}
		r.Runs++
		means.add(own)
		for id, share := range run.Rates {
			r.Rates[id] = plus(r.Rates[id], share)
		}
		switch {
		case r.B.ID == "":
			r.B = run
		case r.A.ID == "" && run.agent != r.B.agent:
			r.A = run
		}
		return r.Runs < history.DefaultRuns && ctx.Err() == nil
	})
	if err != nil {
		return Records{}, err
	}
	if ctx.Err() != nil {
		return Records{}, context.Cause(ctx)
	}
	r.PerTrial = means.perTrial()
	return r, nil
}

// costs sums up trials.
type costs struct {
	trials, withTokens, withCost int
	tokens, usd, seconds         float64
}

func (c *costs) add(o costs) {
	c.trials, c.withTokens, c.withCost = c.trials+o.trials, c.withTokens+o.withTokens, c.withCost+o.withCost
	c.tokens, c.usd, c.seconds = c.tokens+o.tokens, c.usd+o.usd, c.seconds+o.seconds
}

func (c *costs) perTrial() (p PerTrial) {
	mean := func(sum float64, n int) *float64 {
		m := sum / float64(n)
		if n == 0 || math.IsNaN(m) || math.IsInf(m, 0) {
			return nil
		}
		return &m
	}
	return PerTrial{Tokens: mean(c.tokens, c.withTokens), CostUSD: mean(c.usd, c.withCost), Seconds: mean(c.seconds, c.trials)}
}

// read reads the trials that a run executed itself.
func read(h record.Handle) (Run, costs, error) {
	journal, st, err := replay.StateOf(h)
	if err != nil {
		return Run{}, costs{}, err
	}
	rec := h.Record()
	run := Run{ID: h.ID(), Rates: map[string]stats.Share{}, agent: rec.Config.Executor + "\n" + rec.Config.Agent + "\n" + rec.ModelText(nil)}
	var sum costs
	err = replay.VisitLean(journal, st, func(task int, t *replay.LeanTrial) error {
		ref := rec.Tasks[task]
		if ref.Role != record.RoleTask || t.Cached != nil || !t.Verdict.Counted() {
			return nil
		}
		share := stats.Share{N: 1}
		if t.Verdict == record.Passed {
			share.Passed = 1
		}
		run.Rates[ref.ID] = plus(run.Rates[ref.ID], share)
		sum.trials++
		sum.seconds += float64(t.DurationMS) / 1000
		if u := t.Ledger().Total(); u != nil {
			if n := u.Total(); n > 0 {
				sum.tokens += float64(n)
				sum.withTokens++
			}
			if u.CostUSD > 0 {
				sum.usd += u.CostUSD
				sum.withCost++
			}
		}
		return nil
	})
	return run, sum, err
}

func plus(a, b stats.Share) stats.Share {
	return stats.Share{Passed: a.Passed + b.Passed, N: a.N + b.N}
}

// rates returns the pass rates of tasks: shrunken to their mean like two trials. Tasks without trials
// have that mean. Without any trials, the rates are spread as assumed.
func (r Records) rates(ids []string) []float64 {
	all := stats.Share{}
	for _, id := range ids {
		all = plus(all, r.Rates[id])
	}
	rates := make([]float64, len(ids))
	mean := (float64(all.Passed) + 2*AssumedRate) / float64(all.N+2)
	for i, id := range ids {
		s := r.Rates[id]
		if rates[i] = (float64(s.Passed) + 2*mean) / float64(s.N+2); all.N == 0 {
			at := (float64(i) + 0.5) / float64(len(ids))
			rates[i] = 1 / (1 + math.Exp(-1.1-float64(rateSD*math.Sqrt2*math.Erfinv(2*at-1))))
		}
	}
	return rates
}

// sources describes what the records know about the tasks. The variance between tasks of the gain is
// the observed one of two runs minus that within tasks (the method of moments; DerSimonian and Laird
// 1986, "Meta-analysis in clinical trials"), averaged with the assumption.
func (r Records) sources(ids []string) Sources {
	s := Sources{Runs: r.Runs, EffectSD: AssumedEffectSD}
	n, mean, within := 0.0, 0.0, 0.0
	var gains []float64
	for _, id := range ids {
		s.Trials += r.Rates[id].N
		a, b := r.A.Rates[id], r.B.Rates[id]
		if a.N < 2 || b.N < 2 {
			continue
		}
		n++
		gain := b.Rate() - a.Rate()
		gains = append(gains, gain)
		mean += gain
		within += float64(a.Rate()*(1-a.Rate()))/float64(a.N-1) + float64(b.Rate()*(1-b.Rate()))/float64(b.N-1)
	}
	if n < 2 {
		return s
	}
	mean /= n
	observed := 0.0
	for _, g := range gains {
		observed += float64((g - mean) * (g - mean))
	}
	between := max(observed/(n-1)-within/n, 0)
	assumed := AssumedEffectSD * AssumedEffectSD
	s.EffectSD = math.Sqrt((float64((n-1)*between) + float64(effectTasks*assumed)) / (n - 1 + effectTasks))
	s.EffectTasks = int(n)
	s.EffectRuns = []string{r.A.ID, r.B.ID}
	return s
}
