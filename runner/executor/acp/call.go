package acp

import (
	"encoding/json"
	"path"
	"path/filepath"
	"strings"
	"time"

	"waza/eval/text"
	"waza/runner/record"
)

// call is a tool call as reported by the agent until now. The protocol sends it in parts, and
// each part can change earlier ones.
type call struct {
	record.ToolCall
	sentName  string // name of the tool, if the agent sends it
	first     string // the first title, which some agents set to the tool's name
	meta      map[string]json.RawMessage
	locations []string
	content   []content
	start     time.Time
	announced bool // the agent has reported the call itself
	refused   bool // the agent asked for permission and did not get it
	update    func(record.ToolCall)
}

// part is the content of one update, or of a permission request, about a tool call.
type part struct {
	ToolCallID string                     `json:"toolCallId"`
	Name       string                     `json:"name"`
	Title      *string                    `json:"title"`
	Kind       string                     `json:"kind"`
	Status     string                     `json:"status"`
	RawInput   json.RawMessage            `json:"rawInput"`
	RawOutput  json.RawMessage            `json:"rawOutput"`
	Content    json.RawMessage            `json:"content"`
	Locations  []location                 `json:"locations"`
	Meta       map[string]json.RawMessage `json:"_meta"`
	// announces means that this is the agent's first report of the call. A permission request
	// can precede it.
	announces bool
}

type location struct {
	Path string `json:"path"`
}

// content is a block of a tool's result.
type content struct {
	Type    string `json:"type"`
	Path    string `json:"path"` // set for a diff
	Content struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
}

// merge merges a part into the call.
func (c *call) merge(p *part, pre *preset) {
	if p.Title != nil && *p.Title != "" {
		c.Title = *p.Title
		if c.first == "" || p.announces && !c.announced {
			c.first = c.Title
		}
		c.announced = c.announced || p.announces
	}
	if p.Name != "" {
		c.sentName = p.Name
	}
	if p.Kind != "" {
		c.Kind = p.Kind
	}
	if p.Status != "" {
		c.Status = p.Status
	}
	if given(p.RawInput) && string(p.RawInput) != "{}" {
		c.Arguments = p.RawInput
	}
	for _, l := range p.Locations {
		c.locations = append(c.locations, l.Path)
	}
	if p.Meta != nil {
		c.meta = p.Meta
	}
	c.setResult(p)
	c.Name = c.name(pre)
	if c.DurationMS == 0 && (c.Status == "completed" || c.Status == "failed") {
		c.DurationMS = max(1, time.Since(c.start).Milliseconds())
	}
}

// setResult sets the result from the raw output or else from the content.
func (c *call) setResult(p *part) {
	if given(p.Content) {
		var blocks []content
		if json.Unmarshal(p.Content, &blocks) == nil {
			c.content = blocks
		}
	}
	if given(p.RawOutput) {
		c.Result = p.RawOutput
		return
	}
	if !given(p.Content) {
		return
	}
	var text strings.Builder
	for _, b := range c.content {
		if b.Content.Type != "text" {
			c.Result = p.Content
			return
		}
		text.WriteString(b.Content.Text)
	}
	if b, err := json.Marshal(text.String()); err == nil && text.Len() > 0 {
		c.Result = b
	}
}

func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

var word = text.Pattern(`^[\w.-]+$`)

// toolsByKind maps the kind of a tool call to a tool name, for agents that send no name.
var toolsByKind = map[string]string{"execute": "bash", "read": "read", "edit": "edit", "delete": "delete",
	"move": "move", "search": "search", "fetch": "fetch", "think": "think"}

// name returns the name of the tool. Few agents send it. Otherwise it comes from the metadata, a
// rule of the preset, the first title or the kind, in this order.
func (c *call) name(pre *preset) string {
	if name := metaName(c.meta); name != "" {
		return name
	}
	if c.sentName != "" {
		return c.sentName
	}
	if pre.tool != nil {
		if name := pre.tool(c); name != "" {
			return name
		}
	} else if word().MatchString(c.first) {
		return c.first
	}
	if name := toolsByKind[c.Kind]; name != "" {
		return name
	}
	if c.first != "" {
		return c.first
	}
	return "tool"
}

func metaName(meta map[string]json.RawMessage) string {
	var name string
	for _, key := range []string{"toolName", "tool_name"} {
		if json.Unmarshal(meta[key], &name) == nil && name != "" {
			return name
		}
	}
	for _, raw := range meta { // {"claudeCode": {"toolName": …}}
		var inner struct {
			ToolName string `json:"toolName"`
		}
		if json.Unmarshal(raw, &inner) == nil && inner.ToolName != "" {
			return inner.ToolName
		}
	}
	return ""
}

// input returns the arguments if they are an object.
func (c *call) input() map[string]any {
	var in map[string]any
	_ = json.Unmarshal(c.Arguments, &in) // invalid arguments have no keys
	return in
}

// text returns the first of the arguments that is a non-empty string.
func (c *call) text(keys ...string) string {
	in := c.input()
	for _, k := range keys {
		if s, ok := in[k].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// skillName returns the skill that the call invokes, or "" if it invokes none. A preset can name
// it; otherwise the call reads the SKILL.md of a skill that the agent was given.
func (c *call) skillName(pre *preset, given []string) string {
	if pre.skill != nil {
		if name := pre.skill(c); name != "" {
			return name
		}
	}
	if c.Kind != "read" && c.Kind != "execute" {
		return ""
	}
	for _, name := range given {
		file := path.Join(filepath.ToSlash(pre.skills), name, "SKILL.md")
		for _, l := range c.locations {
			if strings.HasSuffix(filepath.ToSlash(l), file) {
				return name
			}
		}
		if strings.Contains(string(c.Arguments), file) {
			return name
		}
	}
	return ""
}
