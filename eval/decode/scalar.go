package decode

import (
	"math"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"
)

func (d *Decoder) decodeScalar(n, use *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.ScalarNode {
		d.WrongType(n, kindWord(v.Kind()))
		return
	}
	ok := false
	switch v.Kind() {
	case reflect.String:
		v.SetString(n.Value)
		ok = true
	case reflect.Bool:
		var b bool
		if b, ok = BoolOf(n); ok {
			v.SetBool(b)
		}
	case reflect.Float32, reflect.Float64:
		var f float64
		if f, ok = FloatOf(n); ok {
			v.SetFloat(f)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		f, isNumber := FloatOf(n)
		var i int64
		if ok = n.Decode(&i) == nil && isNumber && float64(i) == f && !v.OverflowInt(i); ok {
			v.SetInt(i)
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		f, isNumber := FloatOf(n)
		var u uint64
		if ok = n.Decode(&u) == nil && isNumber && float64(u) == f && !v.OverflowUint(u); ok { // yaml.v3 cuts fractions
			v.SetUint(u)
		}
	}
	if !ok {
		d.Report(use, Error, CodeWrongType, plainerScalar(n, v), "%s must be %s, got %s", d.Here(), kindWord(v.Kind()), Describe(n))
	}
}

// plainerScalar suggests the value without quotes, if that has the right type.
func plainerScalar(n *yaml.Node, v reflect.Value) string {
	if !IsText(n) || v.Kind() == reflect.String {
		return ""
	}
	plain := &yaml.Node{Kind: yaml.ScalarNode, Value: strings.TrimSpace(n.Value)}
	if _, isBool := BoolOf(plain); isBool && v.Kind() == reflect.Bool {
		return plain.Value
	}
	f, isNumber := FloatOf(plain)
	if isNumber && v.Kind() != reflect.Bool && (v.CanFloat() || f == math.Trunc(f)) {
		return plain.Value
	}
	return ""
}

// BoolOf returns the boolean of a plain scalar, including yes and no.
func BoolOf(n *yaml.Node) (value, ok bool) {
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return false, false
	}
	switch strings.ToLower(n.Value) {
	case "true", "yes", "on":
		return true, true
	case "false", "no", "off":
		return false, true
	}
	return false, false
}

// FloatOf returns the finite number of a scalar.
func FloatOf(n *yaml.Node) (float64, bool) {
	if tag := n.ShortTag(); tag != "!!int" && tag != "!!float" {
		return 0, false
	}
	var f float64
	if n.Decode(&f) != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

func kindWord(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

// ScalarOf returns numbers, booleans and null as such. It returns everything else as text,
// including dates and values that JSON does not have.
func ScalarOf(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool", "!!int", "!!float":
		var x any
		if n.Decode(&x) != nil {
			return n.Value
		}
		if f, isFloat := x.(float64); isFloat && (math.IsNaN(f) || math.IsInf(f, 0)) {
			return n.Value
		}
		return x
	}
	return n.Value
}
