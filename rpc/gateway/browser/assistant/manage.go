package assistant

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"waza/rpc/gateway/store"
)

// leastInstructions is the minimum length of instructions, in characters.
const leastInstructions = 10

// mostModel is the maximum length of a model's name, in bytes.
const mostModel = 200

// public returns the assistant in the form for clients.
func (as *assistant) public() *Assistant {
	r := &as.row
	status := Inactive
	switch {
	case !r.Deleted.IsZero():
		status = Deleted
	case r.Active:
		status = Active
	}
	return &Assistant{
		ID: r.ID, Name: r.Name, Instructions: r.Instructions, Model: r.Model, Capabilities: slices.Clone(r.Capabilities), Status: status,
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, LastActiveAt: r.LastActiveAt,
	}
}

// List returns the assistants, oldest first.
func (a *Assistants) List() []*Assistant {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := []*Assistant{}
	for _, as := range a.sortedLocked() {
		all = append(all, as.public())
	}
	return all
}

// Draft describes an assistant for [Assistants.Create].
type Draft struct {
	Name, Instructions, Model string
	Capabilities              []string
}

// Create creates an inactive assistant. The error is a [*Fault].
func (a *Assistants) Create(d Draft) (*Assistant, error) {
	d.Name, d.Instructions, d.Model = strings.TrimSpace(Sanitize(d.Name)), strings.TrimSpace(Sanitize(d.Instructions)), strings.TrimSpace(Sanitize(d.Model))
	if f := a.check(&d); f != nil {
		return nil, f
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, as := range a.byID {
		if strings.EqualFold(as.row.Name, d.Name) || store.NameKey(as.row.Name) == store.NameKey(d.Name) {
			return nil, &Fault{Code: CodeNameTaken, Message: fmt.Sprintf("an assistant named %q already exists", as.row.Name)}
		}
	}
	if len(a.byID) >= a.o.MaxAssistants {
		return nil, &Fault{Code: CodeMaxAssistants, Message: fmt.Sprintf("too many assistants: the maximum is %d", len(a.byID)), Details: map[string]any{"max_allowed": a.o.MaxAssistants}}
	}
	now := time.Now()
	as := &assistant{row: store.Assistant{
		ID: newID(), Name: d.Name, Instructions: d.Instructions, Model: d.Model, Capabilities: d.Capabilities, CreatedAt: now, UpdatedAt: now,
	}}
	if f := a.saved(func() error { return a.o.Store.Add(a.ctx, as.row) }); f != nil {
		return nil, f
	}
	a.byID[as.row.ID] = as
	return as.public(), nil
}

// check validates a draft.
func (a *Assistants) check(d *Draft) *Fault {
	switch n := utf8.RuneCountInString(d.Name); {
	case n < 1 || n > a.o.MaxNameChars:
		return &Fault{Code: CodeInvalidName, Message: fmt.Sprintf("name must have 1 to %d characters, got %d", a.o.MaxNameChars, n)}
	case strings.ContainsFunc(d.Name, func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.M, unicode.N) && r != ' ' && r != '-'
	}):
		return &Fault{Code: CodeInvalidName, Message: "name can contain only letters, digits, spaces and hyphens"}
	}
	if n := utf8.RuneCountInString(d.Instructions); n < leastInstructions || n > a.o.MaxInstructionsChars {
		return &Fault{Code: CodeInvalidInstructions, Message: fmt.Sprintf("instructions must have %d to %d characters, got %d", leastInstructions, a.o.MaxInstructionsChars, n)}
	}
	if len(d.Model) > mostModel {
		return &Fault{Code: CodeInvalidMessage, Message: fmt.Sprintf("name of the model must have at most %d bytes", mostModel), Details: map[string]any{"field": "payload.model"}}
	}
	return a.checkCapabilities(d.Capabilities)
}

func (a *Assistants) checkCapabilities(names []string) *Fault {
	if n := len(names); n < 1 || n > a.o.MaxCapabilities {
		return &Fault{Code: CodeInvalidCapabilities, Message: fmt.Sprintf("capabilities must have 1 to %d entries, got %d", a.o.MaxCapabilities, n)}
	}
	for i, name := range names {
		if _, ok := tools[name]; !ok {
			return &Fault{Code: CodeInvalidCapabilities, Message: fmt.Sprintf("unknown capability %q", clip(name, 100)), Details: map[string]any{"known": Tools()}}
		}
		if slices.Contains(names[:i], name) {
			return &Fault{Code: CodeInvalidCapabilities, Message: fmt.Sprintf("capability %q is listed twice", name)}
		}
	}
	return nil
}

// findLocked finds an assistant. The error is a [*Fault].
func (a *Assistants) findLocked(id string) (*assistant, *Fault) {
	if as := a.byID[id]; as != nil {
		return as, nil
	}
	return nil, &Fault{Code: CodeAssistantNotFound, Message: "assistant not found", Details: map[string]any{"assistant_id": clip(id, 100)}}
}

// Activate makes an assistant the active one. It returns the changed assistants: the previously
// active one first, if any. All clients except by get [AssistantChanged] for them. The error is
// a [*Fault].
func (a *Assistants) Activate(by Client, id string) ([]*Assistant, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	as, f := a.findLocked(id)
	if f != nil {
		return nil, f
	}
	now := time.Now()
	if f := a.saved(func() error { return a.o.Store.Activate(a.ctx, id, now) }); f != nil {
		return nil, f
	}
	changed := []*assistant{as}
	if before := a.active; before != nil && before != as {
		before.row.Active, before.row.UpdatedAt = false, now
		changed = []*assistant{before, as}
	}
	as.row.Active, as.row.UpdatedAt, as.row.LastActiveAt = true, now, now
	a.active = as
	return a.changedLocked(by, changed...), nil
}

// Deactivate makes an assistant inactive. Its commands continue. All clients except by get
// [AssistantChanged]. The error is a [*Fault].
func (a *Assistants) Deactivate(by Client, id string) (*Assistant, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	as, f := a.findLocked(id)
	if f != nil {
		return nil, f
	}
	if as == a.active {
		now := time.Now()
		if f := a.saved(func() error { return a.o.Store.Activate(a.ctx, "", now) }); f != nil {
			return nil, f
		}
		as.row.Active, as.row.UpdatedAt = false, now
		a.active = nil
	}
	return a.changedLocked(by, as)[0], nil
}

// Delete deletes an assistant with its sessions, and cancels its commands. All clients except by
// get [AssistantChanged]. The error is a [*Fault].
func (a *Assistants) Delete(by Client, id string) (*Assistant, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	as, f := a.findLocked(id)
	if f != nil {
		return nil, f
	}
	now := time.Now()
	if f := a.saved(func() error { return a.o.Store.Delete(a.ctx, id, now) }); f != nil {
		return nil, f
	}
	as.row.Active, as.row.UpdatedAt, as.row.Deleted = false, now, now
	delete(a.byID, id)
	if a.active == as {
		a.active = nil
	}
	deleted := a.changedLocked(by, as)[0]
	for _, c := range slices.Clone(as.waiting) {
		c.removeLocked()
		c.endLocked(outcome{status: Cancelled, err: errDeleted})
	}
	if as.current != nil {
		as.current.cancel(errDeleted)
	}
	return deleted, nil
}

// changedLocked sends changes to all clients but one, and returns them.
func (a *Assistants) changedLocked(by Client, changed ...*assistant) []*Assistant {
	var all []*Assistant
	for _, as := range changed {
		all = append(all, as.public())
	}
	for _, x := range a.extensions {
		for _, c := range x.clients {
			if c == by {
				continue
			}
			for _, one := range all {
				c.Happened(AssistantChanged{one})
			}
		}
	}
	return all
}

// Sanitize removes control characters from a text, except line ends and tabs.
func Sanitize(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' || r == utf8.RuneError || r == '\u2028' || r == '\u2029' {
			return -1
		}
		return r
	}, s)
}
