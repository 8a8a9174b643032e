package skillcreator

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"waza/runner/record"
	"waza/runner/report"
)

// headOf returns the metadata of a benchmark without the ids of its evals.
func headOf(h record.Handle) (benchmarkHead, error) {
	rec := h.Record()
	progress, err := h.Progress()
	if err != nil {
		return benchmarkHead{}, err
	}
	head := benchmarkHead{
		SkillName: cmp.Or(rec.Suite.Skill, rec.Suite.Name), ExecutorModel: modelsOf(rec), AnalyzerModel: rec.Config.JudgeModel,
		EvalsRun: []any{}, Runs: rec.Config.Trials,
	}
	if at := progress.StartedAt; !at.IsZero() {
		head.Timestamp = at.UTC().Format("2006-01-02T15:04:05Z")
	}
	return head, nil
}

// modelsOf names the models of a run's agents, or else the agent.
func modelsOf(rec *record.Run) string {
	var models []string
	for i := range rec.Tasks {
		if model := rec.ModelOf(&rec.Tasks[i]); model != "" && !slices.Contains(models, model) {
			models = append(models, model)
		}
	}
	return cmp.Or(strings.Join(models, ", "), rec.Config.Agent, rec.Config.Executor)
}

// summarize computes the statistics of each arm and their difference. Arms are in alphabetical order,
// and the difference is the first minus the second, as in the program of skill-creator.
func (b *benchmark) summarize() {
	arms := map[string]armSummary{}
	for _, name := range armsOf(b.Runs) {
		var rates, seconds, tokens []float64
		for i := range b.Runs {
			r := &b.Runs[i]
			if r.Configuration != name {
				continue
			}
			rates = append(rates, r.Result.PassRate)
			if r.Result.Seconds != nil {
				seconds = append(seconds, *r.Result.Seconds)
			}
			if r.Result.Tokens != nil {
				tokens = append(tokens, float64(*r.Result.Tokens))
			}
		}
		arms[name] = armSummary{spreadOf(rates), spreadOf(seconds), spreadOf(tokens)}
	}
	b.RunSummary = map[string]any{}
	for name, s := range arms {
		b.RunSummary[name] = s
	}
	if names := armsOf(b.Runs); len(names) == 2 {
		first, second := arms[names[0]], arms[names[1]]
		b.RunSummary["delta"] = delta{
			PassRate: difference("%+.2f", first.PassRate, second.PassRate),
			Seconds:  difference("%+.1f", first.Seconds, second.Seconds),
			Tokens:   difference("%+.0f", first.Tokens, second.Tokens),
		}
	}
}

// armsOf returns the names of the arms that have runs.
func armsOf(runs []benchmarkRun) []string {
	var names []string
	for i := range runs {
		if !slices.Contains(names, runs[i].Configuration) {
			names = append(names, runs[i].Configuration)
		}
	}
	slices.SortFunc(names, compareArms)
	return names
}

// compareArms orders the names of arms: with the skill first, so that differences are gains.
func compareArms(a, b string) int {
	rank := func(name string) int {
		if name == withSkill {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

func difference(format string, a, b *spread) string {
	if a == nil || b == nil {
		return ""
	}
	return fmt.Sprintf(format, a.Mean-b.Mean)
}

// spreadOf describes values, with the sample standard deviation; nil without values.
func spreadOf(values []float64) *spread {
	if len(values) == 0 {
		return nil
	}
	n := float64(len(values))
	sum, squares := 0.0, 0.0
	for _, x := range values {
		sum += x
	}
	mean := sum / n
	for _, x := range values {
		squares += (x - mean) * (x - mean)
	}
	s := &spread{Mean: rounded(mean), Min: rounded(slices.Min(values)), Max: rounded(slices.Max(values))}
	if n > 1 {
		s.StdDev = rounded(math.Sqrt(squares / (n - 1)))
	}
	return s
}

// rounded rounds to four digits, the exact value and not its shortest text.
func rounded(x float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(x, 'f', 4, 64), 64)
	if err != nil {
		return x
	}
	return r
}

// markdown writes benchmark.md.
func (b *benchmark) markdown(w io.Writer) error {
	names := armsOf(b.Runs)
	ids := make([]string, len(b.Metadata.EvalsRun))
	for i, id := range b.Metadata.EvalsRun {
		ids[i] = report.CodeSpan(fmt.Sprint(id))
	}
	var out strings.Builder
	fmt.Fprintf(&out, "# Skill Benchmark: %s\n\n", report.CodeSpan(b.Metadata.SkillName))
	fmt.Fprintf(&out, "**Model**: %s\n", report.CodeSpan(b.Metadata.ExecutorModel))
	fmt.Fprintf(&out, "**Date**: %s\n", b.Metadata.Timestamp)
	fmt.Fprintf(&out, "**Evals**: %s (%d runs each per configuration)\n\n## Summary\n\n",
		strings.Join(ids, ", "), b.Metadata.Runs)
	head, line := "| Metric |", "|--------|"
	for _, name := range names {
		head += " " + title(name) + " |"
		line += "--------|"
	}
	d, compared := b.RunSummary["delta"].(delta)
	if compared {
		head += " Delta |"
		line += "-------|"
	}
	out.WriteString(head + "\n" + line + "\n")
	for _, measure := range []struct {
		name, format, unit string
		scale              float64
		of                 func(armSummary) *spread
		delta              string
	}{
		{"Pass Rate", "%.0f", "%", 100, func(s armSummary) *spread { return s.PassRate }, d.PassRate},
		{"Time", "%.1f", "s", 1, func(s armSummary) *spread { return s.Seconds }, d.Seconds},
		{"Tokens", "%.0f", "", 1, func(s armSummary) *spread { return s.Tokens }, d.Tokens},
	} {
		row := "| " + measure.name + " |"
		for _, name := range names {
			arm, _ := b.RunSummary[name].(armSummary)
			cell := "—"
			if s := measure.of(arm); s != nil {
				cell = fmt.Sprintf(measure.format+"%s ± "+measure.format+"%s", s.Mean*measure.scale, measure.unit, s.StdDev*measure.scale, measure.unit)
			}
			row += " " + cell + " |"
		}
		if compared {
			row += " " + cmp.Or(measure.delta, "—") + " |"
		}
		out.WriteString(row + "\n")
	}
	if len(b.Notes) > 0 {
		out.WriteString("\n## Notes\n\n")
	}
	for _, note := range b.Notes {
		out.WriteString("- " + report.CodeSpan(note) + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// title returns the name of an arm for people.
func title(arm string) string {
	words := strings.Split(arm, "_")
	for i, word := range words {
		words[i] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, " ")
}
