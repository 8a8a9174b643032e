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
		evalMethods(), watchMethods(), taskMethods(), runMethods(), resumeMethods(), cleanupMethods(), gradeMethods(), reviewMethods(),
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

func describeProtocol(_ context.Context, c *call, _ *noParams) (json.RawMessage, error) {
	return OpenRPC(c.server.o.Version)
}

var discoveries sync.Map // version → json.RawMessage

// OpenRPC describes the protocol as an OpenRPC document. version is that of the program. The
// caller must not change the result.
func OpenRPC(version string) (json.RawMessage, error) {
	if raw, ok := discoveries.Load(version); ok {
		return raw.(json.RawMessage), nil
	}
	raw, err := protocolEntries().OpenRPC(version)
	if err != nil {
		return nil, err
	}
	discoveries.Store(version, raw)
	return raw, nil
}

// Reference returns the reference document of the protocol in Markdown.
func Reference() string { return protocolEntries().Reference() }

func protocolEntries() *dispatch.Protocol {
	return &dispatch.Protocol{
		Methods: dispatch.Entries(table()), Spoken: dispatch.Entries(languageTable()), Commands: dispatch.Entries(commandTable()),
		Notifications: notifications,
	}
}
