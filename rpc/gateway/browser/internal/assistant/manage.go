package assistant

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"waza/eval/text"
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
	return &Assistant{*r, status}
}

// List returns the assistants, oldest first.
func (a *Assistants) List() []*Assistant {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := []*Assistant{}
	for _, as := range a.roster.sorted() {
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
	for _, text := range []*string{&d.Name, &d.Instructions, &d.Model} {
		*text = strings.TrimSpace(Sanitize(*text))
	}
	if f := a.o.check(&d); f != nil {
		return nil, f
	}
	return done(a.ledger, func() (*Assistant, error) { return a.create(d) })
}

// create is the job of Create.
func (a *Assistants) create(d Draft) (*Assistant, error) {
	a.mu.Lock()
	f := a.roster.roomFor(d.Name, a.o.MaxAssistants)
	a.mu.Unlock()
	if f != nil {
		return nil, f
	}
	now := time.Now()
	as := &assistant{owner: a, row: store.Assistant{
		ID: uuid.NewString(), Name: d.Name, Instructions: d.Instructions, Model: d.Model, Capabilities: d.Capabilities,
		CreatedAt: now, UpdatedAt: now,
	}}
	if f := a.ledger.saved(func() error { return a.o.Store.Add(a.ctx, as.row) }); f != nil {
		return nil, f
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.roster.add(as)
	return as.public(), nil
}

// check validates a draft.
func (o *Options) check(d *Draft) *Fault {
	switch n := utf8.RuneCountInString(d.Name); {
	case n < 1 || n > o.MaxNameChars:
		return &Fault{Code: CodeInvalidName, Message: fmt.Sprintf("name must have 1 to %d characters, got %d", o.MaxNameChars, n)}
	case strings.ContainsFunc(d.Name, func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.M, unicode.N) && r != ' ' && r != '-'
	}):
		return &Fault{Code: CodeInvalidName, Message: "name can contain only letters, digits, spaces and hyphens"}
	}
	if n := utf8.RuneCountInString(d.Instructions); n < leastInstructions || n > o.MaxInstructionsChars {
		return &Fault{
			Code:    CodeInvalidInstructions,
			Message: fmt.Sprintf("instructions must have %d to %d characters, got %d", leastInstructions, o.MaxInstructionsChars, n),
		}
	}
	if len(d.Model) > mostModel {
		return &Fault{
			Code:    CodeInvalidMessage,
			Message: fmt.Sprintf("name of the model must have at most %d bytes", mostModel),
			Data:    map[string]any{"field": "payload.model"},
		}
	}
	return o.checkCapabilities(d.Capabilities)
}

func (o *Options) checkCapabilities(names []string) *Fault {
	if n := len(names); n < 1 || n > o.MaxCapabilities {
		return &Fault{Code: CodeInvalidCapabilities, Message: fmt.Sprintf("capabilities must have 1 to %d entries, got %d", o.MaxCapabilities, n)}
	}
	all, _ := tools()
	for i, name := range names {
		if _, ok := all[name]; !ok {
			return &Fault{
				Code: CodeInvalidCapabilities, Message: fmt.Sprintf("unknown capability %q", text.Clip(name, 100)),
				Data: map[string]any{"known": Tools()},
			}
		}
		if slices.Contains(names[:i], name) {
			return &Fault{Code: CodeInvalidCapabilities, Message: fmt.Sprintf("capability %q is listed twice", name)}
		}
	}
	return nil
}

// SetStatus makes an assistant [Active], [Inactive] or [Deleted]. It returns the changed assistants:
// when one becomes active, the previously active one first. The commands of an inactive assistant
// continue; those of a deleted one are cancelled, and its sessions are deleted. All clients except
// by get [AssistantChanged]. The error is a [*Fault].
func (a *Assistants) SetStatus(by Client, id, status string) (changed []*Assistant, err error) {
	err = a.ledger.do(func() error {
		a.mu.Lock()
		as, f := a.roster.find(id)
		same := status == Inactive && as != a.roster.active
		a.mu.Unlock()
		if f != nil {
			return f
		}
		now := time.Now()
		if !same {
			if f := a.ledger.saved(func() error { return a.saveStatus(id, status, now) }); f != nil {
				return f
			}
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		all := []*assistant{as}
		if !same {
			all = a.roster.setStatus(as, status, now)
		}
		changed = a.changedLocked(by, all...)
		if status == Deleted {
			as.endAllLocked()
		}
		return nil
	})
	return changed, err
}

// saveStatus writes the status of an assistant, which is the active one if it becomes inactive.
func (a *Assistants) saveStatus(id, status string, now time.Time) error {
	switch status {
	case Deleted:
		return a.o.Store.Delete(a.ctx, id, now)
	case Inactive:
		id = ""
	}
	return a.o.Store.Activate(a.ctx, id, now)
}

// endAllLocked cancels the commands of a deleted assistant.
func (as *assistant) endAllLocked() {
	for _, c := range slices.Clone(as.waiting) {
		c.removeLocked()
		c.endLocked(outcome{status: Cancelled, err: errDeleted})
	}
	if as.current != nil {
		as.current.cancel(errDeleted)
	}
}

// changedLocked sends changes to all clients but one, and returns them.
func (a *Assistants) changedLocked(by Client, changed ...*assistant) []*Assistant {
	var all []*Assistant
	for _, as := range changed {
		all = append(all, as.public())
	}
	for _, m := range a.pool.All() {
		for _, c := range m.Offer.clients {
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
