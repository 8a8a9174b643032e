package report

import (
	"time"

	"waza/runner/figure"
	"waza/runner/record"
)

// benchmarkDocument returns a benchmark's measurements, by model and length of the context, and
// its skipped cells. It returns nil for other runs.
func (r *Report) benchmarkDocument() *document {
	rec, sum := r.Record, r.Summary
	if rec.Benchmark == nil {
		return nil
	}
	d := &document{}
	first, total, s := d.section(""), d.section(""), d.section("")
	const trials, firstInterval, speedInterval, read, written = 2, 3, 5, 6, 7
	first.spare, total.spare = []int{trials}, []int{trials} // the percentiles stay
	s.spare = []int{read, speedInterval, firstInterval, written}
	var notes [][]item
	row := func(cell *record.Cell, name string, b *record.BenchmarkResult) {
		if b == nil {
			return
		}
		if len(s.rows) == 0 {
			first.title = "Speed: time to the first token, in percentiles of trials"
			total.title = "Speed: total time of an answer, in percentiles of trials"
			for _, times := range []*section{first, total} {
				times.add(heads("Model", "Context", "Trials", "p50", "p90", "p95")...)
			}
			s.title = "Speed: means over trials, with 95 % intervals"
			s.add(heads("Model", "Context", "Mean first token", "95 % interval", "Mean tokens/s", "95 % interval",
				"Mean tokens read", "Mean tokens written", "Mean cost")...)
		}
		context := plain(figure.Tokens(float64(rec.Benchmark.ContextOf(cell))))
		if b.Note != "" {
			notes = append(notes, []item{code(name), plain(" at "), context, plain(": " + b.Note)})
		}
		n := plain(figure.Tokens(float64(b.Trials)))
		first.add(append([]item{code(name), context, n}, spread(b.FirstTokenMS)...)...)
		total.add(append([]item{code(name), context, n}, spread(b.TotalMS)...)...)
		s.add(
			code(name), context,
			plain(mean(b.FirstTokenMS, firstToken)), plain(meanInterval(b.FirstTokenMS, func(low, high float64) string {
				return figure.NumberInterval(low, high) + " ms"
			})),
			plain(mean(b.TokensPerSecond, figure.Number)), plain(meanInterval(b.TokensPerSecond, figure.NumberInterval)),
			plain(mean(b.InputTokens, figure.Tokens)), plain(mean(b.OutputTokens, figure.Tokens)), plain(mean(b.CostUSD, figure.Cost)),
		)
	}
	if sum != nil {
		row(nil, targetName(rec), sum.Benchmark)
		for _, g := range sum.Groups {
			if g.CellResult != nil {
				row(g.Cell, nameBesideContext(rec, g.Cell), g.Benchmark)
			}
		}
	}
	for _, note := range notes {
		s.line(note...)
	}
	for _, skipped := range rec.Benchmark.Skipped {
		s.line(item{text: "Skipped ", colour: yellow}, code(skipped.Cell.Name), plain(": "+skipped.Reason))
	}
	return d
}

// targetName names the model or executor that a run without a matrix measures.
func targetName(rec *record.Run) string {
	if model := rec.ModelText(nil); model != "" {
		return model
	}
	return rec.Config.Executor
}

// nameBesideContext returns the model of a cell. If cells differ in more than model and context,
// it returns the cell's name.
func nameBesideContext(rec *record.Run, c *record.Cell) string {
	n := len(c.Params)
	if _, ok := c.Params[record.ParamContext]; ok {
		n--
	}
	switch {
	case n > 0:
		return c.Name
	case c.Model != "":
		return c.Model
	}
	return targetName(rec)
}

// spread formats the percentiles of a time.
func spread(m *record.Measure) []item {
	if m == nil {
		return []item{plain("–"), plain("–"), plain("–")}
	}
	return []item{plain(firstToken(m.Median)), plain(firstToken(m.P90)), plain(firstToken(m.P95))}
}

// mean formats the mean of a measure, or returns a dash if there is no measure.
func mean(m *record.Measure, form func(float64) string) string {
	if m == nil {
		return "–"
	}
	return form(m.Mean)
}

func meanInterval(m *record.Measure, form func(low, high float64) string) string {
	if m == nil || m.MeanInterval == nil {
		return "–"
	}
	return form(m.MeanInterval.Low, m.MeanInterval.High)
}

// firstToken formats milliseconds; short times, as from local servers, need decimals.
func firstToken(ms float64) string {
	if ms < 10_000 {
		return figure.Number(ms) + " ms"
	}
	return Duration(time.Duration(ms * float64(time.Millisecond)))
}
