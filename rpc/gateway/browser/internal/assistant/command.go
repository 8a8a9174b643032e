package assistant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"waza/eval/text"
	"waza/rpc/gateway/internal/lease"
	"waza/rpc/gateway/store"
)

// mostCommandID is the maximum size of a command's id in bytes.
const mostCommandID = 128

// Causes for ending commands early.
var (
	errCancelled = errors.New("cancelled")
	errDeleted   = errors.New("the assistant was deleted")
	errTooLate   = errors.New("no answer in time")
	errAway      = errors.New("the extension did not reconnect")
)

// command is an unfinished command. Assistants.mu guards it.
type command struct {
	*store.Command
	owner     *Assistants
	assistant *assistant
	client    Client   // client that sent it; nil after a restart
	watchers  []Client // clients that cancelled it

	cancel    context.CancelCauseFunc // nil while it waits
	clock     *clock                  // nil while it waits
	announced chan struct{}           // closed when its client has the status of its start; nil while it waits
	executing bool                    // its execution has started; false while it only waits for the model
	said      bool                    // its text is in the session
	use       *use                    // running tool; nil when none is running
	expiry    lease.Timer             // ends it while it waits for a model that does not answer
}

// Submission describes a command for [Assistants.Submit].
type Submission struct {
	ID   string // chosen by the client
	Text string
	// AssistantID is empty for the active assistant.
	AssistantID string
	// SessionID is empty for a new session.
	SessionID string
	// Stream requests the answer in parts.
	Stream bool
}

// Submit queues a command. The client gets [StatusChanged], [QueueChanged] and further events,
// some of them before Submit returns. A command with the id and text of an earlier one is a
// repetition: it is not executed again, and the client gets its status. The error is a [*Fault].
func (a *Assistants) Submit(by Client, s Submission) error {
	s.Text = strings.TrimSpace(Sanitize(s.Text))
	if n := utf8.RuneCountInString(s.Text); n < 1 || n > a.o.MaxTextChars {
		return &Fault{
			Code:    CodeInvalidText,
			Message: fmt.Sprintf("text must have 1 to %d characters, got %d", a.o.MaxTextChars, n),
			Data:    map[string]any{"length": n},
		}
	}
	if len(s.ID) > mostCommandID {
		return &Fault{
			Code: CodeInvalidMessage, Message: fmt.Sprintf("id must have at most %d bytes", mostCommandID),
			Data: map[string]any{"field": "id"},
		}
	}
	started, err := done(a.ledger, func() (*command, error) { return a.submit(by, s) })
	started.await()
	return err
}

// submit is the job of Submit. Meanwhile, no other job adds commands or changes assistants. It
// returns the command if it has started.
func (a *Assistants) submit(by Client, s Submission) (*command, error) {
	if again, err := a.repeated(by, s); again || err != nil {
		return nil, err
	}
	a.mu.Lock()
	as, f := a.roster.target(s.AssistantID)
	if f == nil && len(as.waiting) >= a.o.MaxWaiting {
		f = &Fault{
			Code:    CodeQueueFull,
			Message: fmt.Sprintf("the queue of this assistant is full: %d commands are waiting", len(as.waiting)),
			Data:    map[string]any{"max_waiting": a.o.MaxWaiting},
		}
	}
	a.mu.Unlock()
	if f != nil {
		return nil, f
	}
	session, err := a.Sessions.open(s.SessionID, as.row.ID)
	if err != nil {
		return nil, err
	}
	c := &command{owner: a, assistant: as, client: by, Command: &store.Command{
		ID: s.ID, ExtensionID: by.ExtensionID(), AssistantID: as.row.ID, SessionID: session, Text: s.Text,
		Stream: s.Stream, Status: Queued, QueuedAt: time.Now(),
	}}
	if f := a.ledger.saved(func() error { return a.o.Store.AddCommand(a.ctx, c.Command) }); f != nil {
		return nil, f
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	as.waiting = append(as.waiting, c)
	c.sendLocked(c.statusLocked())
	as.queueChangedLocked(c)
	c.expireLocked()
	return as.pumpLocked(), nil
}

// repeated reports whether a command is a repetition, and then sends its status. The error is a
// [*Fault].
func (a *Assistants) repeated(by Client, s Submission) (bool, error) {
	a.mu.Lock()
	if c := a.roster.command(s.ID, by.ExtensionID()); c != nil && c.ExtensionID == by.ExtensionID() {
		same, status := c.Text == s.Text, c.statusLocked()
		a.mu.Unlock()
		if !same {
			return false, &Fault{
				Code: CodeInvalidMessage, Message: "id is already used by a different command",
				Data: map[string]any{"field": "id"},
			}
		}
		by.Happened(status)
		return true, nil
	}
	a.mu.Unlock()
	ended, err := a.o.Store.EndedCommand(a.ctx, s.ID, by.ExtensionID())
	if err != nil {
		return false, a.ledger.unread(err)
	}
	if ended == nil || ended.ExtensionID != by.ExtensionID() || ended.Text != s.Text {
		return false, nil
	}
	by.Happened(statusOf(ended))
	return true, nil
}

// openLocked returns the unfinished commands, the active one first.
func (as *assistant) openLocked() []*command {
	if as.current == nil {
		return as.waiting
	}
	return append([]*command{as.current}, as.waiting...)
}

// Cancel cancels a command. Its client and by get its status. For a finished command, only by
// gets the status. The error is a [*Fault].
func (a *Assistants) Cancel(by Client, id string) error {
	if a.cancelOpen(by, id) {
		return nil
	}
	ended, err := a.o.Store.EndedCommand(a.ctx, id, by.ExtensionID())
	if err != nil {
		return a.ledger.unread(err)
	}
	if ended == nil {
		return &Fault{Code: CodeCommandNotFound, Message: "command not found", Data: map[string]any{"command_id": text.Clip(id, 100)}}
	}
	by.Happened(statusOf(ended))
	return nil
}

// cancelOpen cancels an unfinished command; false when none has the id.
func (a *Assistants) cancelOpen(by Client, id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.roster.command(id, by.ExtensionID())
	if c == nil {
		return false
	}
	if !slices.Contains(c.watchers, by) && len(c.watchers) < 10 {
		c.watchers = append(c.watchers, by)
	}
	switch {
	case slices.Contains(c.assistant.ending, c):
	case c.cancel != nil:
		c.cancel(errCancelled)
	default:
		c.removeLocked()
		c.endLocked(outcome{status: Cancelled, err: errCancelled})
	}
	return true
}

// Queue returns the commands of an assistant; an empty id means the active one. The error is a
// [*Fault].
func (a *Assistants) Queue(assistantID string) (*Queue, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if assistantID == "" && a.roster.active != nil {
		assistantID = a.roster.active.row.ID
	}
	as, f := a.roster.find(assistantID)
	if f != nil {
		return nil, f
	}
	return as.queueLocked(), nil
}

func (as *assistant) queueLocked() *Queue {
	q := &Queue{AssistantID: as.row.ID, Waiting: []Waiting{}}
	at := time.Now()
	if c := as.current; c != nil {
		at = at.Add(c.clock.remaining())
		if c.executing {
			q.Executing = &Running{CommandID: c.ID, Text: c.Text, StartedAt: c.StartedAt}
		} else {
			q.Waiting = append(q.Waiting, Waiting{CommandID: c.ID, Text: c.Text, QueuedAt: c.QueuedAt, TimeoutAt: at})
		}
	}
	for _, c := range as.waiting {
		at = at.Add(c.owner.o.CommandTimeout)
		q.Waiting = append(q.Waiting, Waiting{CommandID: c.ID, Text: c.Text, QueuedAt: c.QueuedAt, TimeoutAt: at})
	}
	return q
}

// clientLocked returns the client that gets the events of the command; nil when none is connected.
// It implements [observer].
func (c *command) clientLocked() Client {
	return c.owner.extensionLocked(c.ExtensionID).client(c.client)
}

// sendLocked sends an event to the client of the command, if one is connected.
func (c *command) sendLocked(e any) {
	if client := c.clientLocked(); client != nil {
		client.Happened(e)
	}
}

// queueChangedLocked sends the queue of the assistant to the clients with commands in it, and to
// the client of also.
func (as *assistant) queueChangedLocked(also *command) {
	var clients []Client
	add := func(client Client) {
		if client != nil && !slices.Contains(clients, client) {
			clients = append(clients, client)
		}
	}
	add(also.clientLocked())
	for _, c := range append(slices.Clone(as.waiting), as.current) {
		if c != nil {
			add(c.clientLocked())
		}
	}
	for _, w := range also.watchers {
		if as.owner.extensionLocked(w.ExtensionID()).has(w) {
			add(w)
		}
	}
	q := as.queueLocked()
	for _, client := range clients {
		client.Happened(QueueChanged{q})
	}
}

// statusLocked returns the status of the command.
func (c *command) statusLocked() StatusChanged { return statusOf(c.Command) }

// statusOf returns the status of a stored command.
func statusOf(row *store.Command) StatusChanged {
	s := StatusChanged{
		CommandID: row.ID, SessionID: row.SessionID, AssistantID: row.AssistantID, Status: row.Status,
		Result: row.Result, Error: row.Error,
	}
	switch row.Status {
	case Queued:
		s.Message = "The command is queued"
	case Executing:
		s.Message = "The command is being executed"
	case Completed:
		s.Message = "The command is completed"
	case Cancelled:
		s.Message = "The command was cancelled"
	case TimedOut:
		s.Message = "The command timed out"
	default:
		s.Message = "The command failed: " + row.Error
	}
	return s
}
