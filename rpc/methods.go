package rpc

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"waza/rpc/internal/dispatch"
	"waza/rpc/internal/doors"
	"waza/rpc/internal/language"
)

// A method is an entry of the method table. Its handler gets a context, which ends when the
// request is cancelled, the call and the parameters.
type method = dispatch.Method[*call]

// A call is a request or notification until the server has replied to it.
type call struct {
	*dispatch.Call
	server *Server
	conn   *connection
	asked  *language.Request
}

// table lists all methods, in the order of the reference documents. It is a function because
// rpc.discover describes the table that contains it.
func table() []*method {
	return slices.Concat(
		evalMethods(), watchMethods(), attackMethods(), taskMethods(), runMethods(), resumeMethods(), cleanupMethods(), gradeMethods(), reviewMethods(),
		trialMethods(), compareMethods(), exportMethods(), pageMethods(), doorMethods(), lifecycleMethods(), discoverMethods(),
	)
}

// doorMethods lists the methods for clients of waza serve.
func doorMethods() []*method {
	return dispatch.Adapt(doors.Methods(), func(c *call) *doors.Request { return &doors.Request{Call: c.Call, Client: c.conn.doors} })
}

// languageTable lists the methods of the Language Server Protocol.
func languageTable() []*method {
	return dispatch.Adapt(language.Methods(), func(c *call) *language.Request { return c.asked })
}

func discoverMethods() []*method {
	return []*method{
		dispatch.Define("rpc.discover", dispatch.Quick, "Describe all methods and notifications as an OpenRPC document.", describeProtocol),
	}
}

var discoveries sync.Map // version → json.RawMessage

func describeProtocol(_ context.Context, c *call, _ *noParams) (json.RawMessage, error) {
	version := c.server.o.Version
	if raw, ok := discoveries.Load(version); ok {
		return raw.(json.RawMessage), nil
	}
	raw, err := Protocol().OpenRPC(version)
	if err != nil {
		return nil, err
	}
	discoveries.Store(version, raw)
	return raw, nil
}

// Protocol returns the documentation of the protocol, made from the tables that the server uses.
func Protocol() *dispatch.Protocol {
	return &dispatch.Protocol{
		Methods: dispatch.Entries(table()), Spoken: dispatch.Entries(languageTable()), Commands: dispatch.Entries(commandTable()),
		Notifications: notifications,
	}
}
