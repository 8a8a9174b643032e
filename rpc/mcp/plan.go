package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"waza/runner/power"
)

type planInput struct {
	Path   string   `json:"path" jsonschema:"suite file, or a directory that holds one suite"`
	Tasks  []string `json:"tasks,omitempty" jsonschema:"plan only for tasks whose id or name matches one of these globs"`
	Tags   []string `json:"tags,omitempty" jsonschema:"plan only for tasks with a tag that matches one of these globs"`
	Detect *float64 `json:"detect,omitempty" jsonschema:"gain to detect, in points of the pass rate; 5 when absent"`
	Power  *float64 `json:"power,omitempty" jsonschema:"wanted chance to detect it, from 0.5 to 0.999; 0.8 when absent"`
}

type comparisonPlan struct {
	Detect  float64       `json:"detect" jsonschema:"gain to detect, as a difference of pass rates"`
	Power   float64       `json:"power" jsonschema:"wanted chance to detect it"`
	Tasks   int           `json:"tasks" jsonschema:"number of tasks that the plan is about"`
	Rows    []planRow     `json:"rows" jsonschema:"possible comparisons of two agents"`
	Decide  []neededPairs `json:"decide" jsonschema:"pairs of trials that waza_run with decide needs on average, by the true gain"`
	Origins []string      `json:"origins" jsonschema:"where the figures come from"`
	Advice  string        `json:"advice" jsonschema:"the cheapest ways to the wanted power"`
}

type planRow struct {
	Tasks     int      `json:"tasks"`
	Trials    int      `json:"trials" jsonschema:"trials of each agent per task"`
	AllTrials int      `json:"all_trials" jsonschema:"trials of both agents"`
	These     *float64 `json:"these_tasks,omitempty" jsonschema:"power of the question whether anything changed on exactly these tasks; absent if the row has more tasks than the suite"`
	Like      *float64 `json:"tasks_like_these,omitempty" jsonschema:"power of the question whether the mean changed over all tasks of this kind; absent for a single task"`
	CostUSD   *float64 `json:"cost_usd,omitempty" jsonschema:"absent when it is unknown"`
	Seconds   *float64 `json:"seconds,omitempty" jsonschema:"time of all trials one after the other; absent when it is unknown"`
}

type neededPairs struct {
	Gain    float64  `json:"gain"`
	Pairs   float64  `json:"pairs"`
	CostUSD *float64 `json:"cost_usd,omitempty" jsonschema:"absent when it is unknown"`
}

func (s suiteTools) planComparison(ctx context.Context, _ *sdk.CallToolRequest, in planInput) (*comparisonPlan, error) {
	path, err := s.within("path", in.Path)
	if err != nil {
		return nil, err
	}
	in.Path = path
	var p power.Plan
	if err := s.daemon.call(ctx, "eval.plan", in, &p); err != nil {
		return nil, err
	}
	r := &comparisonPlan{
		Detect: round(p.Detect), Power: round(p.Power), Tasks: len(p.Tasks), Rows: []planRow{}, Decide: []neededPairs{},
		Origins: p.Origins, Advice: shorten(p.Advice, 2*maxSentence),
	}
	for _, row := range p.Rows {
		r.Rows = append(r.Rows, planRow{
			row.Tasks, row.Trials, row.All, rounded(row.These), rounded(row.Like), rounded(row.CostUSD), rounded(row.Seconds),
		})
	}
	for _, d := range p.Decide {
		r.Decide = append(r.Decide, neededPairs{round(d.Gain), round(d.Pairs), rounded(d.CostUSD)})
	}
	return r, nil
}
