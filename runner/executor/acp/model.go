package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"waza/eval/decode"
	"waza/eval/text"
	"waza/runner/executor"
)

// configOption is something a session lets its client choose.
type configOption struct {
	ID           string          `json:"id"`
	Category     string          `json:"category"`
	Type         string          `json:"type"`
	CurrentValue json.RawMessage `json:"currentValue"`
	// Options are values, or groups of values.
	Options json.RawMessage `json:"options"`
}

// values are what can be chosen.
func (o *configOption) values() []string {
	type value struct {
		Value string `json:"value"`
	}
	var listed []struct {
		value
		Options []value `json:"options"`
	}
	if json.Unmarshal(o.Options, &listed) != nil {
		return nil // what cannot be read is not told
	}
	var all []string
	for _, l := range listed {
		for _, v := range append([]value{l.value}, l.Options...) {
			if v.Value != "" {
				all = append(all, v.Value)
			}
		}
	}
	return all
}

// chooseModel asks for the model in the way the session offers. It asks also for
// one that is not on the list: agents know more names than they list.
func (s *session) chooseModel(ctx context.Context, limit time.Duration, o *opened, t *executor.Trial) error {
	for _, option := range o.ConfigOptions {
		if option.Category != "model" || option.Type != "select" {
			continue
		}
		if string(option.CurrentValue) == fmt.Sprintf("%q", t.Model) {
			return nil
		}
		return s.setModel(ctx, limit, t.Model, option.values(), sdk.AgentMethodSessionSetConfigOption,
			map[string]any{"sessionId": s.id, "configId": option.ID, "value": t.Model})
	}
	if o.Models == nil {
		t.Logf("warning", "config.model has no effect: %s offers no choice of model", s.agent.preset.name)
		return nil
	}
	if o.Models.CurrentModelID == t.Model {
		return nil
	}
	var offered []string
	for _, m := range o.Models.AvailableModels {
		offered = append(offered, m.ModelID)
	}
	return s.setModel(ctx, limit, t.Model, offered, sdk.AgentMethodSessionSetModel, map[string]any{"sessionId": s.id, "modelId": t.Model})
}

// setModel asks for a model. An agent that refuses stops the run: it would refuse
// in every trial.
func (s *session) setModel(ctx context.Context, limit time.Duration, model string, offered []string, method string, params any) error {
	var refusal *sdk.RequestError
	err := s.agent.bounded(ctx, limit, method, func(ctx context.Context) error {
		err := s.agent.conn.SendRequestNoResult(ctx, method, params)
		errors.As(err, &refusal)
		return err
	})
	if err == nil || refusal == nil || executor.AsStop(err) != nil || s.agent.dead() || ctx.Err() != nil {
		return err
	}
	msg := fmt.Sprintf("%s: the agent does not take the model %q (%s)", s.agent.preset.name, model, s.agent.hide.Text(text.Clip(refusal.Message, 200)))
	if near := nearestModel(model, offered); near != "" {
		msg += fmt.Sprintf("; did you mean %q?", near)
	}
	if len(offered) > 0 {
		msg += "; it offers " + listModels(offered)
	}
	return &executor.StopError{Err: errors.New(msg + "; choose one with --model, or with config.model in the suite")}
}

// nearestModel is the offered model that was most likely meant, "" if none. The
// names that agents give to models begin with those of the providers.
func nearestModel(model string, offered []string) string {
	if near := decode.Nearest(model, offered); near != "" {
		return near
	}
	short := make([]string, len(offered))
	for i, o := range offered {
		short[i] = path.Base(o)
	}
	near := decode.Nearest(path.Base(model), short)
	for i, name := range short {
		if near != "" && name == near {
			return offered[i]
		}
	}
	return ""
}

// listModels lists a few.
func listModels(offered []string) string {
	const most = 12
	var names []string
	for _, o := range offered[:min(len(offered), most)] {
		names = append(names, text.Clip(o, 100))
	}
	list := strings.Join(names, ", ")
	if more := len(offered) - most; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}
