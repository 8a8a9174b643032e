package browser

import (
	"context"
	"errors"

	"waza/runner/executor"
)

// Closed is the hub of a server that accepts no browser assistants. Reserve fails at once,
// because there will never be an extension.
var Closed Hub = closed{}

type closed struct{}

func (closed) Reserve(context.Context, *Want) (Slot, error) {
	return nil, executor.Permanent(errors.New("the waza server accepts no browser assistants: it runs with --browser off"))
}

func (closed) Extensions(context.Context) ([]*Extension, error) { return nil, nil }
func (closed) Assistants(context.Context) ([]*Assistant, error) { return nil, nil }
