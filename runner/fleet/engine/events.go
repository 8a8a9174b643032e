package engine

import (
	"errors"

	"github.com/nats-io/nats.go"
)

// eventOptions returns the handlers of connection events. nats.go calls them one after the other
// in one goroutine.
func (c *Conn) eventOptions() []nats.Option {
	log := c.options.Log
	return []nats.Option{
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if c.closing.Load() {
				return
			}
			if err == nil {
				err = errors.New("the server closed the connection")
			}
			c.refused.Store(nil)
			log.Warn("connection to the fleet lost, reconnecting", "error", err.Error())
			c.changed(err)
		}),
		nats.ReconnectHandler(func(conn *nats.Conn) {
			if c.closing.Load() {
				return
			}
			log.Info("reconnected to the fleet", "server", conn.ConnectedServerName())
			c.changed(nil)
		}),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { c.logRefusal(err) }),
		nats.LameDuckModeHandler(func(conn *nats.Conn) {
			log.Info("server of the fleet is about to shut down", "server", conn.ConnectedServerName())
		}),
		nats.ErrorHandler(func(_ *nats.Conn, subscription *nats.Subscription, err error) {
			switch {
			case c.closing.Load():
			case hint(err) != "":
				c.logRefusal(err)
			case errors.Is(err, nats.ErrPermissionViolation):
				log.Error("the user of the fleet address lacks a permission that waza needs, see docs/fleet-security.md", "error", err.Error())
			case subscription != nil:
				log.Warn("fleet connection error", "error", err.Error(), "subject", subscription.Subject)
			default:
				log.Warn("fleet connection error", "error", err.Error())
			}
		}),
		nats.ClosedHandler(func(*nats.Conn) { close(c.closed) }),
	}
}

func (c *Conn) changed(lost error) {
	if c.options.Changed != nil {
		c.options.Changed(lost)
	}
}

// logRefusal logs why a server rejects the process, but each reason only once per loss of the
// connection. It does not log that no server is reachable.
func (c *Conn) logRefusal(err error) {
	why := hint(err)
	var own *hostError
	if errors.As(err, &own) {
		why = own.Error()
	}
	if why == "" || c.home != nil && own == nil {
		c.options.Log.Debug("cannot reconnect to the fleet yet", "error", err.Error())
		return
	}
	if last := c.refused.Swap(&why); last == nil || *last != why {
		c.options.Log.Error("cannot reconnect to the fleet", "error", why)
	}
}
