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

// call is a tool call as far as the agent has told of it. The protocol sends it
// in parts, and each part may change what an earlier one said.
type call struct {
	record.ToolCall
	told      string // the tool's name, from agents that tell it
	first     string // the first title: with some agents the tool's name
	meta      map[string]json.RawMessage
	locations []string
	content   []content
	start     time.Time
	skill     string // the skill it invokes
	announced bool   // the agent has said that it calls the tool
	refused   bool   // leave for it was asked for, and refused
	update    func(record.ToolCall)
}

// part is what one update, or a request for permission, says of a tool call.
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
	// announces: it is the first that the agent says of the call, though a
	// request for permission may have overtaken it.
	announces bool
}

type location struct {
	Path string `json:"path"`
}

// content is a block of what a tool made.
type content struct {
	Type    string `json:"type"`
	Path    string `json:"path"` // of a diff
	Content struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
}

// take merges a part into the call.
func (c *call) take(p *part, pre *preset) {
	if p.Title != nil && *p.Title != "" {
		c.Title = *p.Title
		if c.first == "" || p.announces && !c.announced {
			c.first = c.Title
		}
		c.announced = c.announced || p.announces
	}
	if p.Name != "" {
		c.told = p.Name
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
	c.takeResult(p)
	c.Name = c.name(pre)
	if c.DurationMS == 0 && (c.Status == "completed" || c.Status == "failed") {
		c.DurationMS = max(1, time.Since(c.start).Milliseconds())
	}
}

// takeResult prefers the raw output, and makes one of the content where there is none.
func (c *call) takeResult(p *part) {
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

// toolsByKind name a tool by what it does where the agent tells no name.
var toolsByKind = map[string]string{"execute": "bash", "read": "read", "edit": "edit", "delete": "delete",
	"move": "move", "search": "search", "fetch": "fetch", "think": "think"}

// name is the tool's name. Few agents tell it; else it stands in the metadata, in
// something only the preset knows, or in the first title, and else the kind must do.
func (c *call) name(pre *preset) string {
	if name := metaName(c.meta); name != "" {
		return name
	}
	if c.told != "" {
		return c.told
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
	_ = json.Unmarshal(c.Arguments, &in) // else it has no keys
	return in
}

// text returns the first of the arguments that is a text.
func (c *call) text(keys ...string) string {
	in := c.input()
	for _, k := range keys {
		if s, ok := in[k].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// skillName is the skill that the call invokes, "" if none: as the preset knows,
// or because it reads the SKILL.md of a skill the agent was given.
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
