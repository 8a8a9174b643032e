package record

// Cell names a cell of a run's matrix: one combination of model and parameters.
type Cell struct {
	// Name tells the cell from the others of its run.
	Name string `json:"name"`
	// Model is empty when the executor chooses.
	Model string `json:"model,omitempty"`
	// Generation and Proposal are the place of the cell's system prompt among those that a
	// model proposes, both from 1; 0 of cells whose prompt the suite gives.
	Generation int `json:"generation,omitempty"`
	Proposal   int `json:"proposal,omitempty"`
	// Params are the parameters by name: texts, numbers and truth values.
	Params map[string]any `json:"params,omitempty"`
}

// In reports whether it is that cell; anything is in nil.
func (c *Cell) In(cell *Cell) bool {
	return cell == nil || c != nil && c.Name == cell.Name
}
