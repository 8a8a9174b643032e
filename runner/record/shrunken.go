package record

// ShrunkenRates are estimates of the pass rates of a run's tasks that are moved toward their mean,
// because the extreme ones of many rates are extreme by chance, too; see [stats.Shrink]. Their
// squared error over all tasks is smaller on average in the designs that docs/statistics.md measures.
type ShrunkenRates struct {
	// Mean is the mean of the pass rates of these tasks.
	Mean float64 `json:"mean"`
	// Weight is the mean over tasks of the part of its distance to the mean by which each rate moved,
	// from 0 to 1.
	Weight float64 `json:"weight"`
	// Tasks lists the tasks in their order.
	Tasks []ShrunkenRate `json:"tasks"`
}

// ShrunkenRate is the estimate of one task.
type ShrunkenRate struct {
	ID       string  `json:"id"`
	PassRate float64 `json:"passRate"`
}

// Of returns the estimate of a task by its id; nil if it has none.
func (s *ShrunkenRates) Of(id string) *float64 {
	if s == nil {
		return nil
	}
	for i := range s.Tasks {
		if s.Tasks[i].ID == id {
			return &s.Tasks[i].PassRate
		}
	}
	return nil
}
