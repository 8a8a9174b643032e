package provider

import (
	"encoding/json"
	"strings"
)

// takeAnswer moves the call that contains the answer to Reply.Answer. A model can also write the
// JSON as text.
func (r *Reply) takeAnswer(a *Answer) {
	if a == nil {
		return
	}
	for _, c := range r.Message.Calls {
		if c.Name == a.Name && !c.Malformed && len(c.Arguments) > 0 && c.Arguments[0] == '{' {
			r.Answer = c.Arguments
			return
		}
	}
	r.Answer = jsonObject(r.Message.Text)
}

// jsonObject returns the JSON object that is the whole text, with or without a Markdown fence.
// It returns nil for any other text.
func jsonObject(text string) json.RawMessage {
	text = strings.TrimSpace(text)
	if rest, ok := strings.CutPrefix(text, "```"); ok {
		_, body, _ := strings.Cut(rest, "\n")
		text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(body), "```"))
	}
	if strings.HasPrefix(text, "{") && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return nil
}
