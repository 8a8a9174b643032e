package acp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	sdk "github.com/coder/acp-go-sdk"

	"waza/runner/executor"
)

// serverSpec is an MCP server as written in suites.
type serverSpec struct {
	Type    string            `json:"type"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

// mcpServer converts an entry of mcp_servers to its form in the protocol.
func mcpServer(name string, entry any) (sdk.McpServer, error) {
	var spec serverSpec
	b, err := json.Marshal(entry)
	if err == nil {
		err = json.Unmarshal(b, &spec)
	}
	if err != nil {
		return sdk.McpServer{}, fmt.Errorf("mcp_servers.%s must be a map with command, args and env, or with type and url", name)
	}
	headers := []sdk.HttpHeader{}
	for _, k := range slices.Sorted(maps.Keys(spec.Headers)) {
		headers = append(headers, sdk.HttpHeader{Name: k, Value: spec.Headers[k]})
	}
	switch {
	case spec.Command != "":
		env := []sdk.EnvVariable{}
		for _, k := range slices.Sorted(maps.Keys(spec.Env)) {
			env = append(env, sdk.EnvVariable{Name: k, Value: spec.Env[k]})
		}
		return sdk.McpServer{Stdio: &sdk.McpServerStdio{Name: name, Command: spec.Command, Args: append([]string{}, spec.Args...), Env: env}}, nil
	case spec.URL != "" && spec.Type == "sse":
		return sdk.McpServer{Sse: &sdk.McpServerSseInline{Type: "sse", Name: name, Url: spec.URL, Headers: headers}}, nil
	case spec.URL != "":
		return sdk.McpServer{Http: &sdk.McpServerHttpInline{Type: "http", Name: name, Url: spec.URL, Headers: headers}}, nil
	}
	return sdk.McpServer{}, fmt.Errorf("mcp_servers.%s has neither command nor url; set one of them", name)
}

// servers returns the MCP servers of the suite and those of waza. A server of waza replaces a
// server of the suite with the same name. A server that the agent cannot reach is an error.
func (a *agent) servers(suite map[string]any, own []executor.Server) ([]sdk.McpServer, error) {
	list := []sdk.McpServer{}
	for _, s := range own {
		if a.preset.startsNoServers && s.URL != "" {
			list = append(list, sdk.McpServer{Http: &sdk.McpServerHttpInline{
				Type: "http", Name: s.Name, Url: s.URL, Headers: []sdk.HttpHeader{{Name: "Authorization", Value: "Bearer " + s.Token}},
			}})
			continue
		}
		list = append(list, sdk.McpServer{
			Stdio: &sdk.McpServerStdio{Name: s.Name, Command: s.Command, Args: append([]string{}, s.Args...), Env: []sdk.EnvVariable{}},
		})
	}
	can := a.hello.AgentCapabilities.McpCapabilities
	for _, name := range slices.Sorted(maps.Keys(suite)) {
		if slices.ContainsFunc(own, func(s executor.Server) bool { return s.Name == name }) {
			continue
		}
		s, err := mcpServer(name, suite[name])
		if err != nil {
			return nil, executor.Permanent(err)
		}
		if s.Http != nil && !can.Http || s.Sse != nil && !can.Sse {
			return nil, executor.Permanent(fmt.Errorf("%s: the agent cannot use mcp_servers.%s: it does not support that MCP transport",
				a.preset.name, name))
		}
		list = append(list, s)
	}
	return list, nil
}
