// Package message reads and checks the JSON messages of doors. [MembersOf] reads members without
// decoding the rest of a message, which may be large. [Schemas] check messages against
// definitions in JSON Schema.
package message

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"waza/eval/jsonwalk"
)

// Members are members of a JSON object, in the object's order. For most messages, building a map
// of them would take longer than all other work.
type Members []Member

// Member is a name and a value in valid JSON.
type Member struct {
	Name  string
	Value json.RawMessage
}

// MembersOf returns the members with these names of a valid JSON value. Of duplicates, it
// returns the last, like encoding/json. It returns false when the value is not an object. The
// object can have a million other members.
func MembersOf(data []byte, names ...string) (Members, bool) {
	all := make(Members, 0, 4)
	err := EachMember(data, func(name, value []byte) {
		i := slices.IndexFunc(names, func(wanted string) bool { return wanted == string(name) })
		if i < 0 {
			return
		}
		for j := range all {
			if all[j].Name == names[i] {
				all[j].Value = value
				return
			}
		}
		all = append(all, Member{names[i], value})
	})
	return all, err == nil
}

// EachMember visits the members of a valid JSON value. It returns an error when the value is not
// an object.
func EachMember(data []byte, visit func(name, value []byte)) error {
	return jsonwalk.Members(data, "", func(key, value []byte) bool {
		if bytes.IndexByte(key, '\\') >= 0 || !utf8.Valid(key) {
			name, _ := Text(append(append([]byte{'"'}, key...), '"'))
			key = []byte(name)
		}
		visit(key, bytes.TrimRight(value, " \t\r\n"))
		return true
	})
}

// Get returns the value of a member; nil when the member is missing.
func (m Members) Get(name string) json.RawMessage {
	for i := range m {
		if m[i].Name == name {
			return m[i].Value
		}
	}
	return nil
}

// Has reports whether the member exists.
func (m Members) Has(name string) bool { return m.Get(name) != nil }

// Text decodes a valid JSON string.
func Text(data json.RawMessage) (string, bool) {
	if n := len(data); n >= 2 && data[0] == '"' && bytes.IndexByte(data, '\\') < 0 && utf8.Valid(data) {
		return string(data[1 : n-1]), true
	}
	var s *string
	if json.Unmarshal(data, &s) != nil || s == nil {
		return "", false
	}
	return *s, true
}

// AppendText appends a string in the JSON form of encoding/json.
func AppendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			quoted, _ := json.Marshal(s) // strings never fail
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
