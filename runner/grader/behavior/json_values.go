package behavior

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"waza/eval/jsonwalk"
)

// exactJSON decodes a JSON text and keeps numbers as written.
func exactJSON(data string) (any, bool) {
	dec := json.NewDecoder(strings.NewReader(data))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil, false
	}
	_, err := dec.Token()
	return v, err == io.EOF
}

// exactValue converts a value of a suite to the types that exactJSON returns.
func exactValue(v any) any {
	data, err := jsonwalk.Encode(jsonwalk.Plain(v))
	if err != nil {
		return v
	}
	if exact, ok := exactJSON(string(bytes.TrimSpace(data))); ok {
		return exact
	}
	return v
}
