package inspect

import (
	"encoding/json"

	"waza/runner/importing/source"
	"waza/runner/record"
)

// A header is a log without its samples.
type header struct {
	Status string `json:"status"`
	Error  struct {
		Message source.Text `json:"message"`
	} `json:"error"`
	Eval struct {
		Task    string      `json:"task"`
		RunID   string      `json:"run_id"`
		Created source.Time `json:"created"`
		Model   string      `json:"model"`
		Dataset struct {
			Name      string     `json:"name"`
			SampleIDs []sampleID `json:"sample_ids"`
		} `json:"dataset"`
		Config struct {
			Epochs source.Number `json:"epochs"`
		} `json:"config"`
		ModelRoles map[string]modelRole `json:"model_roles"`
	} `json:"eval"`
	Stats struct {
		StartedAt   source.Time `json:"started_at"`
		CompletedAt source.Time `json:"completed_at"`
	} `json:"stats"`
}

// maxEpochs limits the trials that a log can promise.
const maxEpochs = 10_000

func (h *header) epochs() int {
	return int(min(max(h.Eval.Config.Epochs.Count(), 1), maxEpochs))
}

// state returns the status in Inspect's words.
func (h *header) state(finished bool) string {
	if !finished || h.Status == "" {
		return "started"
	}
	return h.Status
}

func (h *header) status(finished bool) record.Status {
	switch h.state(finished) {
	case "success":
		return record.StatusCompleted
	case "cancelled":
		return record.StatusCancelled
	case "error":
		return record.StatusFailed
	}
	return record.StatusInterrupted
}

// judges reports whether a model serves only graders.
func (h *header) judges(model string) bool {
	role, ok := h.Eval.ModelRoles["grader"]
	return ok && role.model == model && model != h.Eval.Model
}

// A modelRole is a model, as text or as an object.
type modelRole struct{ model string }

// UnmarshalJSON implements [encoding/json.Unmarshaler]. Other values name no model.
func (r *modelRole) UnmarshalJSON(raw []byte) error {
	var object struct {
		Model string `json:"model"`
	}
	if json.Unmarshal(raw, &r.model) != nil && json.Unmarshal(raw, &object) == nil {
		r.model = object.Model
	}
	return nil
}

// A sampleID is the id of a sample: a number or a text.
type sampleID struct{ text, json string }

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (id *sampleID) UnmarshalJSON(raw []byte) error {
	id.json = string(raw)
	if raw[0] == '"' {
		return json.Unmarshal(raw, &id.text)
	}
	var n json.Number
	err := json.Unmarshal(raw, &n)
	id.text = n.String()
	return err
}
