package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"waza/eval/dialect"
	"waza/eval/text"
	"waza/runner/internal/secrets"
	"waza/runner/record"
)

// A SecretParamsError reports that the record of a run lacks values of parameters, because they are secrets.
type SecretParamsError struct {
	RunID string
	Names []string // in the order of the alphabet
}

func (e *SecretParamsError) Error() string {
	names := make([]string, len(e.Names))
	for i, name := range e.Names {
		names[i] = text.Clip(name, 60)
	}
	return fmt.Sprintf("the record of run %s lacks the %s of the %s %s, because secrets are not recorded; give %s again", e.RunID,
		text.Plural(len(names), "value", "values"), text.Plural(len(names), "parameter", "parameters"), strings.Join(names, ", "),
		text.Plural(len(names), "it", "them"))
}

// Flags returns the flags that give the values again.
func (e *SecretParamsError) Flags() string {
	var flags []string
	for _, name := range e.Names {
		flags = append(flags, "--param "+text.Clip(name, 60)+"=VALUE")
	}
	return strings.Join(flags, " ")
}

// AskedAgain returns the request of a recorded run, to resume or grade it, in which the given values of parameters
// replace the recorded ones. The error is a [*SecretParamsError] if a value was not recorded and is not given.
func AskedAgain(rec *record.Run, given map[string]string) (record.Request, error) {
	req := rec.Asked
	req.Params = maps.Clone(req.Params)
	lacks := &SecretParamsError{RunID: rec.RunID}
	for _, name := range slices.Sorted(maps.Keys(req.Params)) {
		if !strings.Contains(req.Params[name], secrets.Redacted) {
			continue
		}
		req.SecretParams = append(req.SecretParams, name)
		if _, ok := given[name]; !ok {
			lacks.Names = append(lacks.Names, name)
		}
	}
	if len(lacks.Names) > 0 {
		return req, lacks
	}
	if req.Params == nil {
		req.Params = given
	} else {
		maps.Copy(req.Params, given)
	}
	return req, nil
}

// recorded returns a request without the values of parameters that are secrets, however short they are.
func recorded(req record.Request) record.Request {
	req.Params = maps.Clone(req.Params)
	for name, value := range req.Params {
		if dialect.IsSecretVariable(name, value) || slices.Contains(req.SecretParams, name) {
			req.Params[name] = secrets.Redacted
		}
	}
	return req
}
