package record

// CachedFrom says where a trial was taken over from.
type CachedFrom struct {
	// RunID is the run whose executor did the trial. It may be gone.
	RunID string `json:"runId"`
	// Spent is what was spent on the trial before it was taken over.
	Spent *Ledger `json:"spent,omitempty"`
}
