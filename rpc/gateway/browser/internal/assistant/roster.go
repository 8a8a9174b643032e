package assistant

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"waza/eval/text"
	"waza/rpc/gateway/store"
)

// roster holds the existing assistants, and knows the active one. Assistants.mu guards it.
type roster struct {
	byID   map[string]*assistant
	active *assistant // nil when no assistant is active
}

// add adds an assistant of the store.
func (r *roster) add(as *assistant) {
	r.byID[as.row.ID] = as
	if as.row.Active {
		r.active = as
	}
}

// sorted returns the assistants, oldest first.
func (r *roster) sorted() []*assistant {
	all := make([]*assistant, 0, len(r.byID))
	for _, as := range r.byID {
		all = append(all, as)
	}
	slices.SortFunc(all, func(x, y *assistant) int {
		return cmp.Or(x.row.CreatedAt.Compare(y.row.CreatedAt), strings.Compare(x.row.ID, y.row.ID))
	})
	return all
}

// find finds an assistant. The error is a [*Fault].
func (r *roster) find(id string) (*assistant, *Fault) {
	if as := r.byID[id]; as != nil {
		return as, nil
	}
	return nil, &Fault{Code: CodeAssistantNotFound, Message: "assistant not found", Data: map[string]any{"assistant_id": text.Clip(id, 100)}}
}

// target finds the assistant for a command.
func (r *roster) target(id string) (*assistant, *Fault) {
	if id == "" {
		if r.active == nil {
			return nil, &Fault{Code: CodeAssistantNotFound, Message: "no assistant is active"}
		}
		return r.active, nil
	}
	as, f := r.find(id)
	if f == nil && as != r.active {
		f = &Fault{Code: CodeAssistantInactive, Message: fmt.Sprintf("assistant %q is not active", as.row.Name)}
	}
	return as, f
}

// roomFor reports why no assistant with a name can be created.
func (r *roster) roomFor(name string, most int) *Fault {
	for _, as := range r.byID {
		if strings.EqualFold(as.row.Name, name) || store.NameKey(as.row.Name) == store.NameKey(name) {
			return &Fault{Code: CodeNameTaken, Message: fmt.Sprintf("an assistant named %q already exists", as.row.Name)}
		}
	}
	if len(r.byID) >= most {
		return &Fault{
			Code: CodeMaxAssistants, Message: fmt.Sprintf("too many assistants: the maximum is %d", len(r.byID)),
			Data: map[string]any{"max_allowed": most},
		}
	}
	return nil
}

// command finds an unfinished command, preferably of the extension; nil when none exists.
func (r *roster) command(id, extensionID string) *command {
	var found *command
	for _, as := range r.byID {
		for _, c := range slices.Concat(as.openLocked(), as.ending) {
			if c.ID == id && (found == nil || c.ExtensionID == extensionID) {
				found = c
			}
		}
	}
	return found
}

// setStatus changes the status of an assistant. It returns the changed assistants: when one becomes
// active, the previously active one first.
func (r *roster) setStatus(as *assistant, status string, now time.Time) (changed []*assistant) {
	before := r.active
	switch {
	case status == Active:
		if before != nil && before != as {
			before.row.Active, before.row.UpdatedAt = false, now
			changed = append(changed, before)
		}
		as.row.LastActiveAt, r.active = now, as
	case before == as:
		r.active = nil
	}
	if status == Deleted {
		as.row.Deleted = now
		delete(r.byID, as.row.ID)
	}
	as.row.Active, as.row.UpdatedAt = status == Active, now
	return append(changed, as)
}
