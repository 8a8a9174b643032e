package doors

import (
	"context"
	"errors"

	"waza/rpc/internal/dispatch"
	"waza/runner/executor"
	"waza/runner/executor/browser"
)

func assistantMethods() []*dispatch.Method[*Request] {
	return []*dispatch.Method[*Request]{
		dispatch.Define("assistant.list", dispatch.Heavy,
			"List the browser assistants of this user and the extensions that are connected to `waza serve`, with their current activity. "+
				"Users of /rpc who are neither the owner nor an admin get empty lists.", listAssistants),
	}
}

type noParams struct{}

type assistantList struct {
	Server     bool                 `json:"server" doc:"Whether the server is running."`
	Assistants []*browser.Assistant `json:"assistants" doc:"The assistants, by name; empty without a server."`
	Extensions []*browser.Extension `json:"extensions" doc:"The extensions, by id; empty without a server."`
}

func listAssistants(ctx context.Context, r *Request, _ *noParams) (*assistantList, error) {
	list := &assistantList{Assistants: []*browser.Assistant{}, Extensions: []*browser.Extension{}}
	browsers := r.o.Browsers
	if browsers == nil || r.o.Restricted {
		return list, nil
	}
	assistants, err := browsers.Assistants(ctx)
	var extensions []*browser.Extension
	if err == nil {
		extensions, err = browsers.Extensions(ctx)
	}
	switch {
	case errors.Is(err, executor.ErrNoServer):
		return list, nil
	case err != nil:
		return nil, err
	}
	list.Server = true
	list.Assistants, list.Extensions = append(list.Assistants, assistants...), append(list.Extensions, extensions...)
	return list, nil
}
