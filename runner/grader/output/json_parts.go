package output

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"waza/runner/grader"
)

// partsGrader looks for an object or a list anywhere in the output.
type partsGrader struct {
	schema *jsonschema.Schema // nil means any
}

func (g *partsGrader) Grade(ctx context.Context, s *grader.Subject) (grader.Score, error) {
	score := grader.Score{Feedback: "the output contains no JSON object or list\noutput: " + grader.Excerpt(s.Output)}
	open := map[int]bool{}
	for at := 0; ; {
		next := strings.IndexAny(s.Output[at:], "{[")
		if next < 0 {
			break
		}
		if at += next; open[at] {
			at++
			continue
		}
		if ctx.Err() != nil {
			return grader.Score{}, context.Cause(ctx)
		}
		end, complete := scanPart(s.Output, at, open)
		if !complete {
			at++
			continue
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(s.Output[at:end]))
		at = end
		if err != nil {
			continue // encoding/json limits the depth
		}
		if g.schema == nil {
			return grader.Score{Score: 1, Passed: true}, nil
		}
		if score, err = schemaScore(g.schema, value); err != nil || score.Passed {
			return score, err
		}
	}
	return score, s.OutputCut() // the dropped part may contain some
}

// scanPart reads the object or list at a position of a text. It returns where it ends, if it is complete. Brackets inside of it that are then still open get into open: a value that starts at
// one of them stops to be JSON at the same place. Skipping them, a search reads each byte at most twice: as a part
// of a string and outside of strings.
func scanPart(text string, at int, open map[int]bool) (end int, complete bool) {
	d := json.NewDecoder(strings.NewReader(text[at:]))
	d.UseNumber()
	var stack []int
	for {
		token, err := d.Token()
		if err != nil {
			for _, at := range stack {
				open[at] = true
			}
			return 0, false
		}
		end = at + int(d.InputOffset())
		switch token {
		case json.Delim('{'), json.Delim('['):
			stack = append(stack, end-1)
		case json.Delim('}'), json.Delim(']'):
			if stack = stack[:len(stack)-1]; len(stack) == 0 {
				return end, true
			}
		}
	}
}
