package output

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"waza/runner/executor"
	"waza/runner/grader"
)

// partsGrader looks for an object or a list anywhere in the output.
type partsGrader struct {
	schema *jsonschema.Schema // nil means any
}

// maxPartBytes limits the text that a search for JSON reads, because each bracket of a text can start some.
const maxPartBytes = 32 << 20

var errManyBrackets = errors.New("the output has too many brackets to search it for JSON")

func (g *partsGrader) Grade(ctx context.Context, s *grader.Subject) (grader.Score, error) {
	score := grader.Score{Feedback: "the output contains no JSON object or list\noutput: " + grader.Excerpt(s.Output)}
	read := 0
	for rest := s.Output; ; {
		at := strings.IndexAny(rest, "{[")
		if at < 0 {
			break
		}
		rest = rest[at:]
		value, size, cost := partOf(rest)
		if read += cost; read > maxPartBytes {
			return grader.Score{}, executor.Permanent(errManyBrackets)
		}
		if ctx.Err() != nil {
			return grader.Score{}, context.Cause(ctx)
		}
		if size == 0 {
			rest = rest[1:]
			continue
		}
		rest = rest[size:]
		if g.schema == nil {
			return grader.Score{Score: 1, Passed: true}, nil
		}
		var err error
		if score, err = schemaScore(g.schema, value); err != nil || score.Passed {
			return score, err
		}
	}
	return score, s.OutputCut() // the dropped part may contain some
}

// partOf returns the JSON value at the start of a text and its size; 0 if the text starts with no JSON. cost is
// the number of bytes that decide it.
func partOf(text string) (value any, size, cost int) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	err := d.Decode(&value)
	if err == nil {
		size = int(d.InputOffset())
		return value, size, size
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return nil, 0, int(syntax.Offset)
	}
	return nil, 0, len(text)
}
