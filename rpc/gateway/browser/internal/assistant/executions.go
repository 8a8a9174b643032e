package assistant

import "sync"

// use is a tool call for an extension.
type use struct {
	Execution   // has no ID until it is sent; executions.mu guards the ID
	extensionID string
	done        chan ToolResult // has a capacity of one
}

// executions are the tool calls that extensions work on. It owns a mutex, which may be locked
// while Assistants.mu is held, and is safe for concurrent use.
type executions struct {
	mu   sync.Mutex // guards the field below
	byID map[string]*use
}

// send sends a tool call once. It does nothing without a call or a client.
func (e *executions) send(u *use, c Client) {
	if u == nil || c == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if u.ID != "" {
		return
	}
	u.ID = c.NewID()
	if e.byID == nil {
		e.byID = map[string]*use{}
	}
	e.byID[u.ID] = u
	c.Happened(u.Execution)
}

// remove removes a tool call that nobody waits for.
func (e *executions) remove(u *use) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.byID, u.ID)
}

// Result passes the result of a tool to the waiting command; false when none waits. The id is
// that of the [Execution] or of the command.
func (a *Assistants) Result(by Client, id string, r ToolResult) bool {
	return a.executions.end(by.ExtensionID(), id, r)
}

func (e *executions) end(extensionID, id string, r ToolResult) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	u := e.byID[id]
	if u == nil || u.extensionID != extensionID {
		u = nil
		for _, other := range e.byID {
			if other.CommandID == id && other.extensionID == extensionID {
				u = other
			}
		}
	}
	if u == nil {
		return false
	}
	delete(e.byID, u.ID)
	u.done <- r
	return true
}
