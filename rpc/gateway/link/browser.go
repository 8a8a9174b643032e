package link

import (
	"context"
	"errors"

	"waza/runner/executor"
	"waza/runner/executor/browser"
	"waza/runner/executor/remote"
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

// OfferBrowsers lets other processes use the extensions and assistants of hub. Call it before
// [Server.Serve].
func (s *Server) OfferBrowsers(hub browser.Hub) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.browsers = hub
}

// browse answers a request about browsers.
func (c *peer) browse(ctx context.Context, method string, m *message) (any, error) {
	b := m.Browser
	if b == nil {
		b = &browserMessage{}
	}
	switch {
	case method == methodExtensions:
		return c.browsers.Extensions(ctx)
	case method == methodAssistants:
		return c.browsers.Assistants(ctx)
	case method == methodBrowserExecute:
		return c.execute(ctx, m.Key, b.Command)
	case b.Want == nil || m.Key == "":
		return nil, errors.New(method + ": key and want are required")
	}
	slot, err := c.browsers.Reserve(ctx, b.Want)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests[m.Key].slot = slot
	return browserMessage{ExtensionID: slot.ExtensionID()}, nil
}

func (c *peer) execute(ctx context.Context, key string, command *browser.Command) (any, error) {
	c.mu.Lock()
	r := c.requests[key]
	c.mu.Unlock()
	if r == nil || command == nil {
		return nil, errors.New("browser.execute: command and the key of a slot are required")
	}
	slot, ok := r.slot.(browser.Slot)
	if !ok {
		return nil, errors.New("browser.execute: key does not belong to a slot")
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
	for {
		conn, err := b.client.await(ctx)
		if err != nil {
			return nil, noBrowsers(err)
		}
		s := &browserSlot{conn: conn, key: b.client.newKey()}
		var reply browserMessage
		err = conn.call(ctx, methodBrowserReserve, &message{Key: s.key, Browser: &browserMessage{Want: w}}, &reply)
		if err == nil {
			s.extensionID = reply.ExtensionID
			return s, nil
		}
		if !errors.Is(err, errGone) {
			return nil, err
		}
	}
}

// Extensions implements [browser.Directory].
func (b browsers) Extensions(ctx context.Context) ([]*browser.Extension, error) {
	list := []*browser.Extension{}
	return list, noBrowsers(b.client.ask(ctx, methodExtensions, &message{}, &list))
}

// Assistants implements [browser.Directory].
func (b browsers) Assistants(ctx context.Context) ([]*browser.Assistant, error) {
	list := []*browser.Assistant{}
	return list, noBrowsers(b.client.ask(ctx, methodAssistants, &message{}, &list))
}

// noBrowsers converts the error of a missing server to that of a browser hub.
func noBrowsers(err error) error {
	if errors.Is(err, remote.ErrNoServer) {
		return browser.ErrNoServer
	}
	return err
}

// browserSlot is an extension that the server has reserved for this process.
type browserSlot struct {
	conn        *connection
	key         string
	extensionID string
}

func (s *browserSlot) ExtensionID() string { return s.extensionID }

// Execute implements [browser.Slot]. When the server ends, the error is an
// [*executor.RetryError].
func (s *browserSlot) Execute(ctx context.Context, c *browser.Command, step func(browser.Step)) (*browser.Answer, error) {
	if step != nil {
		s.conn.on(s.key, func(m *message) {
			if m.Browser != nil && m.Browser.Step != nil {
				step(*m.Browser.Step)
			}
		})
		defer s.conn.on(s.key, nil)
	}
	a := new(browser.Answer)
	err := s.conn.call(ctx, methodBrowserExecute, &message{Key: s.key, Browser: &browserMessage{Command: c}}, a)
	switch {
	case err == nil:
		return a, nil
	case errors.Is(err, errGone):
		return nil, &executor.RetryError{Reason: errGone.Error()}
	}
	return nil, err
}

func (s *browserSlot) Release() {
	_ = s.conn.rpc.Notify(context.Background(), methodRelease, message{Key: s.key}) // a broken connection holds no slot
}
