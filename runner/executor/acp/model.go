package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"waza/eval/decode"
	"waza/eval/text"
	"waza/runner/executor"
)

// configOption is a setting of a session that its client can choose.
type configOption struct {
	ID           string          `json:"id"`
	Category     string          `json:"category"`
	Type         string          `json:"type"`
	CurrentValue json.RawMessage `json:"currentValue"`
	// Options are values, or groups of values.
	Options json.RawMessage `json:"options"`
}

// values returns the values that can be chosen.
func (o *configOption) values() []string {
	type value struct {
		Value string `json:"value"`
	}
	var listed []struct {
		value
		Options []value `json:"options"`
	}
	if json.Unmarshal(o.Options, &listed) != nil {
		return nil // unreadable options are ignored
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

// chooseModel sets the model in the way the session offers. It also tries a model that is not on
// the list, because agents accept more names than they list.
func (s *session) chooseModel(ctx context.Context, limit time.Duration, o *opened, t *executor.Trial) error {
	for _, option := range o.ConfigOptions {
		if option.Category != "model" || option.Type != "select" {
			continue
		}
		if string(option.CurrentValue) == fmt.Sprintf("%q", t.Model) {
			return nil
		}
		return s.setModel(ctx, limit, t.Model, option.values(), sdk.AgentMethodSessionSetConfigOption,
			map[string]any{"sessionId": s.id, "configId": option.ID, "value": t.Model}, o)
	}
	if o.Models == nil {
		t.Logf("warning", "config.model has no effect: %s offers no choice of models", s.agent.preset.name)
		return nil
	}
	if o.Models.CurrentModelID == t.Model {
		return nil
	}
	var offered []string
	for _, m := range o.Models.AvailableModels {
		offered = append(offered, m.ModelID)
	}
	return s.setModel(ctx, limit, t.Model, offered, sdk.AgentMethodSessionSetModel, map[string]any{"sessionId": s.id, "modelId": t.Model}, o)
}

// setModel sets the model. An agent that rejects it stops the run, because it would reject it in
// every trial.
func (s *session) setModel(
	ctx context.Context, limit time.Duration, model string, offered []string, method string, params any,
	o *opened,
) error {
	refusal, err := s.choose(ctx, limit, method, params, o)
	if refusal == nil {
		return err
	}
	msg := fmt.Sprintf("%s: the agent rejects the model %q (%s)", s.agent.preset.name, model,
		s.agent.hide.Text(text.Clip(refusal.Message, 200)))
	if near := nearestModel(model, offered); near != "" {
		msg += fmt.Sprintf("; did you mean %q?", near)
	}
	if len(offered) > 0 {
		msg += "; it offers " + listModels(offered)
	}
	return &executor.StopError{Err: errors.New(msg + "; choose one with --model, or with config.model in the suite")}
}

// choose sends a choice, and updates o with what the session offers after it. refusal is the
// answer of an agent that rejects the choice. For any other fault, only err is set.
func (s *session) choose(
	ctx context.Context, limit time.Duration, method string, params any, o *opened,
) (refusal *sdk.RequestError, err error) {
	err = s.agent.bounded(ctx, limit, method, func(ctx context.Context) error {
		answer, err := sdk.SendRequest[json.RawMessage](s.agent.conn, ctx, method, params)
		var now opened
		if err == nil && json.Unmarshal(answer, &now) == nil && len(now.ConfigOptions) > 0 {
			o.ConfigOptions = now.ConfigOptions
		}
		errors.As(err, &refusal)
		return err
	})
	if err == nil || executor.AsStop(err) != nil || s.agent.dead() || ctx.Err() != nil {
		refusal = nil
	}
	return refusal, err
}

// thoughtOptions are the names that agents use for reasoning effort when the option's category
// does not identify it.
var thoughtOptions = []string{"thought_level", "reasoning_effort", "effort"}

// chooseEffort sets the reasoning effort of the suite, if the session offers that choice.
func (s *session) chooseEffort(ctx context.Context, limit time.Duration, o *opened, effort string) error {
	i := slices.IndexFunc(o.ConfigOptions, func(c configOption) bool {
		return c.Type == "select" && (c.Category == string(sdk.SessionConfigOptionCategoryThoughtLevel) || slices.Contains(thoughtOptions, c.ID))
	})
	if i < 0 {
		s.trial.Logf("warning", "config.reasoning_effort has no effect: %s offers no choice of reasoning effort for this model",
			s.agent.preset.name)
		return nil
	}
	option := o.ConfigOptions[i]
	if string(option.CurrentValue) == fmt.Sprintf("%q", effort) {
		return nil
	}
	refusal, err := s.choose(ctx, limit, sdk.AgentMethodSessionSetConfigOption,
		map[string]any{"sessionId": s.id, "configId": option.ID, "value": effort}, o)
	if refusal == nil {
		return err
	}
	msg := fmt.Sprintf("%s: the agent rejects the reasoning effort %q (%s)", s.agent.preset.name, effort,
		s.agent.hide.Text(text.Clip(refusal.Message, 200)))
	if offered := option.values(); len(offered) > 0 {
		msg += "; it offers " + listModels(offered)
	}
	return &executor.StopError{Err: errors.New(msg + "; change config.reasoning_effort in the suite")}
}

// nearestModel returns the offered model that was most likely meant, or "" if none is similar.
// Agents put the name of the provider before the names of models.
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

// listModels lists the first few models.
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
