package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"waza/runner/record"
)

// Limits on requests to an agent's own server.
const (
	countTime   = 5 * time.Second
	maxCounted  = 64 << 20 // bytes of a response
	maxSessions = 100
)

// withPort assigns a port to the agent's own server, if the preset counts tokens there and the
// command is the agent itself: a wrapper might not accept such arguments. It returns port 0 if
// it assigned none.
func (p *preset) withPort(args []string) ([]string, int) {
	if len(p.portArgs) == 0 || !slices.Contains(args[1:], "acp") || slices.Contains(args, p.portArgs[0]) {
		return args, 0
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return args, 0
	}
	defer free.Close()
	port := free.Addr().(*net.TCPAddr).Port
	for _, arg := range p.portArgs {
		args = append(args, strings.ReplaceAll(arg, "{port}", strconv.Itoa(port)))
	}
	return args, port
}

// count asks the agent's own server for the tokens of the session, if the protocol reports only
// some of them.
func (s *session) count(ctx context.Context) {
	if s.agent.port == 0 || s.agent.dead() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	u, err := opencodeUsage(ctx, "http://127.0.0.1:"+strconv.Itoa(s.agent.port), s.id)
	if err != nil {
		s.trial.Logf("warning", "%s: token counts cover only the last model call of each turn: %s",
			s.agent.preset.name, s.agent.hide.Text(err.Error()))
		return
	}
	s.setSessionUsage(u)
}

// opencodeUsage adds up the model calls of a session and of the sessions that its tools started.
// Over the protocol, opencode reports only the last model call of a turn.
func opencodeUsage(ctx context.Context, base, session string) (record.Usage, error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // no proxy, because the server is on this machine
	var sum record.Usage
	all := []string{session}
	for i := 0; i < len(all) && i < maxSessions; i++ {
		var messages []struct {
			Info struct {
				Tokens struct {
					Input, Output, Reasoning float64
					Cache                    struct{ Read, Write float64 }
				} `json:"tokens"`
			} `json:"info"`
		}
		at := base + "/session/" + url.PathEscape(all[i])
		if err := getJSON(ctx, client, at+"/message", &messages); err != nil {
			return sum, err
		}
		for _, m := range messages {
			t := m.Info.Tokens
			sum = sum.Add(record.Usage{
				InputTokens: tokenCount(t.Input), OutputTokens: tokenCount(t.Output),
				TotalTokens: tokenCount(t.Input + t.Output + t.Reasoning + t.Cache.Read + t.Cache.Write),
			})
		}
		var children []struct {
			ID string `json:"id"`
		}
		if err := getJSON(ctx, client, at+"/children", &children); err != nil {
			return sum, err
		}
		for _, c := range children {
			if !slices.Contains(all, c.ID) && len(all) < maxSessions {
				all = append(all, c.ID)
			}
		}
	}
	return sum, nil
}

// tokenCount clamps a token count of an agent to a plausible range.
func tokenCount(n float64) int64 { return int64(min(max(n, 0), 1<<40)) }

func getJSON(ctx context.Context, client *http.Client, url string, to any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, res.Status)
	}
	return json.NewDecoder(io.LimitReader(res.Body, maxCounted)).Decode(to)
}
