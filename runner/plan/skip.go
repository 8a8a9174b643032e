package plan

import (
	"fmt"
	"slices"
	"strings"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/provider"
	"waza/runner/record"
)

// skipCells removes the cells of a benchmark whose context is too long for their model, and
// records what the run measures. The error, a [*record.SelectionError], states that no cell
// remains.
func (d *draft) skipCells() error {
	p := d.Plan
	if p.Suite.Kind != eval.Benchmark {
		return nil
	}
	p.benchmark = &record.BenchmarkRef{}
	var kept []*Setup
	var reasons []string
	for _, c := range p.cells {
		tokens, most := c.context()
		if !slices.Contains(p.benchmark.Tiers, tokens) {
			p.benchmark.Tiers = append(p.benchmark.Tiers, tokens)
		}
		p.benchmark.MaxTokens = max(p.benchmark.MaxTokens, most)
		window, known := provider.Windows(p.Suite.Config.ContextWindows).Find(c.Settings.Model)
		if !known || tokens == 0 || tokens+most < window {
			kept = append(kept, c)
			continue
		}
		reason := fmt.Sprintf("a context of %d tokens leaves no room in the window of %s, which is %d tokens", tokens, c.Settings.Model, window)
		if most > 0 {
			reason = fmt.Sprintf("a context of %d tokens and an answer of %d leave no room in the window of %s, which is %d tokens",
				tokens, most, c.Settings.Model, window)
		}
		ref := c.ref
		if ref == nil {
			ref = &record.Cell{Name: c.Settings.Model, Model: c.Settings.Model}
		}
		reasons = append(reasons, reason)
		p.benchmark.Skipped = append(p.benchmark.Skipped, record.SkippedCell{Cell: ref, ContextTokens: tokens, Window: window, Reason: reason})
	}
	if len(kept) == 0 {
		return &record.SelectionError{Skipped: strings.Join(reasons[:min(len(reasons), 3)], "; ")}
	}
	p.cells = kept
	return nil
}

// context returns the number of tokens of filler text that is requested from the executor, and
// the maximum number of tokens of an answer; 0 when unknown.
func (c *Setup) context() (tokens, most int) {
	if o, ok := c.Settings.Options.(executor.ContextSizer); ok {
		return o.Context()
	}
	return 0, 0
}
