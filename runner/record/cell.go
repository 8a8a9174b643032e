package record

// Cell names a cell of a run's matrix: one combination of model and parameters.
type Cell struct {
	// Name tells the cell from the others of its run.
	Name string `json:"name"`
	// Model is empty when the executor chooses.
	Model string `json:"model,omitempty"`
	// Params are the parameters by name: texts, numbers and truth values.
	Params map[string]any `json:"params,omitempty"`
}

// In reports whether it is that cell; anything is in nil.
func (c *Cell) In(cell *Cell) bool {
	return cell == nil || c != nil && c.Name == cell.Name
}
