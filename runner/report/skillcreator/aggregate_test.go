package skillcreator

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type writerOf = io.Writer

// An aggregated is a benchmark that was computed from the files of the trials.
type aggregated struct {
	summary map[string]any
	ids     []any
	runs    map[string]any // results by folder, arm and number
}

// aggregate computes a benchmark as the program of skill-creator does, with exact sums. It shares no
// code with this package. Differing from that program, it leaves out unknown numbers.
func aggregate(t *testing.T, all map[string]string) aggregated {
	t.Helper()
	out := aggregated{summary: map[string]any{}, runs: map[string]any{}, ids: []any{}}
	values := map[string]map[string][]float64{} // by arm and measure
	for _, name := range slices.Sorted(maps.Keys(all)) {
		folder, isGrading := strings.CutSuffix(name, "/grading.json")
		if !isGrading {
			continue
		}
		parts := strings.Split(folder, "/")
		require.Len(t, parts, 3)
		require.Regexp(t, `^eval-`, parts[0])
		require.Regexp(t, `^run-\d+$`, parts[2])
		graded, timing, meta := object(t, all[name]), object(t, all[folder+"/timing.json"]), object(t, all[parts[0]+"/eval_metadata.json"])
		require.Equal(t, graded["execution_metrics"], object(t, all[folder+"/outputs/metrics.json"]))
		if times, ok := graded["timing"].(map[string]any); ok {
			require.NotContains(t, times, "total_duration_seconds", "readers would then ignore the tokens")
		}
		passed := 0.
		list := graded["expectations"].([]any)
		for _, e := range list {
			require.ElementsMatch(t, []string{"text", "passed", "evidence"}, slices.Collect(maps.Keys(e.(map[string]any))))
			if e.(map[string]any)["passed"].(bool) {
				passed++
			}
		}
		total := float64(len(list))
		rate := passed / total
		require.Equal(t, map[string]any{"passed": passed, "failed": total - passed, "total": total, "pass_rate": rate}, graded["summary"])
		metrics := graded["execution_metrics"].(map[string]any)
		result := map[string]any{
			"pass_rate": rate, "passed": passed, "failed": total - passed, "total": total,
			"tool_calls": metrics["total_tool_calls"], "errors": metrics["errors_encountered"],
		}
		arm := values[parts[1]]
		if arm == nil {
			arm = map[string][]float64{}
			values[parts[1]] = arm
		}
		arm["pass_rate"] = append(arm["pass_rate"], rate)
		for key, from := range map[string]string{"time_seconds": "total_duration_seconds", "tokens": "total_tokens"} {
			if x, ok := timing[from].(float64); ok {
				result[key] = x
				arm[key] = append(arm[key], x)
			}
		}
		out.runs[parts[0]+"/"+parts[1]+"/"+strings.TrimPrefix(parts[2], "run-")] = result
		if !slices.Contains(out.ids, meta["eval_id"]) {
			out.ids = append(out.ids, meta["eval_id"])
		}
	}
	arms := slices.Sorted(maps.Keys(values))
	for _, arm := range arms {
		measures := map[string]any{}
		for key, list := range values[arm] {
			measures[key] = described(list)
		}
		out.summary[arm] = measures
	}
	if len(arms) == 2 {
		diff := map[string]any{}
		for key, format := range map[string]string{"pass_rate": "%+.2f", "time_seconds": "%+.1f", "tokens": "%+.0f"} {
			a, _ := out.summary[arms[0]].(map[string]any)[key].(map[string]any)
			b, _ := out.summary[arms[1]].(map[string]any)[key].(map[string]any)
			if a != nil && b != nil {
				diff[key] = fmt.Sprintf(format, a["mean"].(float64)-b["mean"].(float64))
			}
		}
		out.summary["delta"] = diff
	}
	slices.SortFunc(out.ids, func(a, b any) int {
		x, isNumber := a.(float64)
		if y, ok := b.(float64); ok && isNumber {
			return int(x - y)
		}
		return strings.Compare(a.(string), b.(string))
	})
	return out
}

// described returns mean, sample deviation and extremes with four digits.
func described(list []float64) map[string]any {
	const bits = 300
	exact := func(x float64) *big.Float { return new(big.Float).SetPrec(bits).SetFloat64(x) }
	four := func(x *big.Float) float64 {
		var y float64
		f, _ := x.Float64()
		_, _ = fmt.Sscan(fmt.Sprintf("%.4f", f), &y)
		return y
	}
	n, sum, squares := exact(float64(len(list))), exact(0), exact(0)
	for _, x := range list {
		sum.Add(sum, exact(x))
	}
	mean := new(big.Float).SetPrec(bits).Quo(sum, n)
	for _, x := range list {
		d := exact(x)
		d.Sub(d, mean)
		squares.Add(squares, d.Mul(d, d))
	}
	deviation := exact(0)
	if len(list) > 1 {
		deviation.Sqrt(squares.Quo(squares, exact(float64(len(list)-1))))
	}
	return map[string]any{
		"mean": four(mean), "stddev": four(deviation), "min": four(exact(slices.Min(list))), "max": four(exact(slices.Max(list))),
	}
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &m), text)
	return m
}

// folderOf returns the folder whose metadata have an id.
func folderOf(all map[string]string, id any) string {
	for name, text := range all {
		folder, ok := strings.CutSuffix(name, "/eval_metadata.json")
		var meta struct {
			ID any `json:"eval_id"`
		}
		if ok && json.Unmarshal([]byte(text), &meta) == nil && meta.ID == id {
			return folder
		}
	}
	return ""
}

func number(x any) string { return fmt.Sprint(x) }
