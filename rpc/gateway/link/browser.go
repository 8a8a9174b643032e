package link

import (
	"context"
	"errors"

	"waza/runner/executor/browser"
)

// The methods for browsers.
const (
	methodBrowserReserve = "browser.reserve"
	methodBrowserExecute = "browser.execute"
	methodBrowserStep    = "browser.step"
	methodExtensions     = "browser.extensions"
	methodAssistants     = "browser.assistants"
)

// browserMessage holds the parameters of the methods for browsers. Unused parameters are absent.
type browserMessage struct {
	Want        *browser.Want    `json:"want,omitempty"`
	Command     *browser.Command `json:"command,omitempty"`
	Step        *browser.Step    `json:"step,omitempty"`
	ExtensionID string           `json:"extensionId,omitempty"`
}

// browse answers a request about browsers.
func (c *peer) browse(ctx context.Context, method string, m *message) (any, error) {
	b := m.Browser
	if b == nil {
		b = &browserMessage{}
	}
	switch {
	case method == methodExtensions:
		return c.Browsers.Extensions(ctx)
	case method == methodAssistants:
		return c.Browsers.Assistants(ctx)
	case method == methodBrowserExecute:
		return c.execute(ctx, m.Key, b.Command)
	case b.Want == nil || m.Key == "":
		return nil, errors.New(method + ": key and want are required")
	}
	slot, err := c.Browsers.Reserve(ctx, b.Want)
	if err != nil {
		return nil, err
	}
	c.keys.Hold(m.Key, slot)
	return browserMessage{ExtensionID: slot.ExtensionID()}, nil
}

func (c *peer) execute(ctx context.Context, key string, command *browser.Command) (any, error) {
	slot, ok := c.keys.Place(key).(browser.Slot)
	if !ok || command == nil {
		return nil, errors.New("browser.execute: command and the key of a slot are required")
	}
	return slot.Execute(ctx, command, func(s browser.Step) {
		c.notify(methodBrowserStep, message{Key: key, Browser: &browserMessage{Step: &s}})
	})
}

// Browsers returns a hub for the extensions and assistants of the server.
func (c *Client) Browsers() browser.Hub { return browsers{c} }

// browsers implements [browser.Hub].
type browsers struct{ client *Client }

// Reserve implements [browser.Hub].
func (b browsers) Reserve(ctx context.Context, w *browser.Want) (browser.Slot, error) {
	var reply browserMessage
	p, err := b.client.reserve(ctx, methodBrowserReserve, &message{Browser: &browserMessage{Want: w}}, &reply)
	if err != nil {
		return nil, err
	}
	return &browserSlot{p, reply.ExtensionID}, nil
}

// Extensions implements [browser.Directory].
func (b browsers) Extensions(ctx context.Context) ([]*browser.Extension, error) {
	return list[*browser.Extension](ctx, b.client, methodExtensions)
}

// Assistants implements [browser.Directory].
func (b browsers) Assistants(ctx context.Context) ([]*browser.Assistant, error) {
	return list[*browser.Assistant](ctx, b.client, methodAssistants)
}

// browserSlot is an extension that the server has reserved for this process.
type browserSlot struct {
	*place
	extensionID string
}

func (s *browserSlot) ExtensionID() string { return s.extensionID }

// Execute implements [browser.Slot]. When the server ends, the error is an
// [*executor.RetryError].
func (s *browserSlot) Execute(ctx context.Context, c *browser.Command, step func(browser.Step)) (*browser.Answer, error) {
	m := &message{Browser: &browserMessage{Command: c}}
	return use[browser.Answer](ctx, s.place, methodBrowserExecute, m, step, func(m *message) *browser.Step {
		if m.Browser == nil {
			return nil
		}
		return m.Browser.Step
	})
}
