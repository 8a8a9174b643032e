package fleet

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"sync/atomic"
	"unicode/utf8"

	"waza/eval/jsonwalk"
)

// A fleet encodes and decodes an order and a result for each trial, on two machines. The functions
// of this file give and take the same JSON as encoding/json. They handle the members that all orders
// of a run share once, and neither copy nor check the trial of a result before it is decoded.

// Encode returns the JSON of an order. terms is the JSON of its Terms.
func (o *Order) Encode(terms []byte) ([]byte, error) {
	b := append(make([]byte, 0, len(terms)+usualRequest), terms[:len(terms)-1]...)
	rest := o.Request
	rest.ID, rest.Task, rest.Num, rest.Hash = "", 0, 0, ""
	if reflect.ValueOf(&rest).Elem().IsZero() { // the usual form
		b = jsonwalk.AppendString(append(b, idMember...), o.ID)
		b = strconv.AppendInt(append(b, `,"task":`...), int64(o.Task), 10)
		b = strconv.AppendInt(append(b, `,"num":`...), int64(o.Num), 10)
		b = jsonwalk.AppendString(append(b, `,"hash":`...), o.Hash)
		return append(b, '}'), nil
	}
	own, err := json.Marshal(&o.Request)
	if err != nil {
		return nil, err
	}
	return append(append(b, ','), own[1:]...), nil
}

// usualRequest is the usual size of the JSON of a request, in bytes.
const usualRequest = 128

// OrderDecoder decodes orders. It remembers the terms of the last one, because most orders in
// succession belong to the same run. The zero value is valid. It is safe for concurrent use.
type OrderDecoder struct{ last atomic.Pointer[knownTerms] }

// knownTerms are decoded terms and their JSON without the closing brace.
type knownTerms struct {
	text  []byte
	terms Terms
}

// idMember starts the first member of an order after its terms. It contains quotes, so it is not
// part of any text.
var idMember = []byte(`,"id":`)

// Decode decodes an order.
func (d *OrderDecoder) Decode(body []byte) (*Order, error) {
	o := new(Order)
	at := bytes.Index(body, idMember)
	if at < 0 {
		return o, json.Unmarshal(body, o)
	}
	known := d.last.Load()
	if known == nil || !bytes.Equal(known.text, body[:at]) {
		known = &knownTerms{text: bytes.Clone(body[:at])}
		if json.Unmarshal(append(bytes.Clone(known.text), '}'), &known.terms) != nil || known.terms.Run == "" {
			return o, json.Unmarshal(body, o) // these are no terms: the id is the first member, or of a nested object
		}
		d.last.Store(known)
	}
	o.Terms = known.terms
	own := bytes.Clone(body[at:])
	own[0] = '{'
	if o.splitRequest(own) {
		return o, nil
	}
	o.Request = Request{}
	return o, json.Unmarshal(own, o) // a member of the terms that occurs again counts, as in a whole order
}

// splitRequest decodes a request of the usual form, and reports whether it has that form.
func (o *Order) splitRequest(own []byte) bool {
	if !json.Valid(own) {
		return false
	}
	usual := true
	err := jsonwalk.Members(own, "", func(key, value []byte) bool {
		switch string(key) {
		case "id":
			o.ID, usual = plainText(value)
		case "task":
			o.Task, usual = plainNumber(value)
		case "num":
			o.Num, usual = plainNumber(value)
		case "hash":
			o.Hash, usual = plainText(value)
		default:
			usual = false
		}
		return usual
	})
	return err == nil && usual
}

// Encode returns the JSON of a result, with its trial as the last member.
func (r *Result) Encode() ([]byte, error) {
	var b []byte
	rest := *r
	rest.ID, rest.Trial = "", nil
	if reflect.ValueOf(&rest).Elem().IsZero() { // the usual form
		b = jsonwalk.AppendString(append(make([]byte, 0, len(r.ID)+len(r.Trial)+usualHead), `{"id":`...), r.ID)
	} else {
		var err error
		rest.ID = r.ID
		if b, err = json.Marshal(&rest); err != nil {
			return nil, err
		}
		b = b[:len(b)-1]
	}
	if len(r.Trial) > 0 {
		b = append(append(b, `,"trial":`...), r.Trial...)
	}
	return append(b, '}'), nil
}

// usualHead is the size of the JSON of a result around its id and its trial, in bytes.
const usualHead = 32

// EncodeResults returns the JSON of [Results] from the encoded results.
func EncodeResults(worker string, results [][]byte) ([]byte, error) {
	b, err := json.Marshal(&Results{Worker: worker, List: []Result{}})
	if err != nil {
		return nil, err
	}
	b = b[:len(b)-len("]}")]
	return append(append(b, bytes.Join(results, []byte{','})...), "]}"...), nil
}

// DecodeResults decodes [Results]. The trials are parts of data, and are not checked yet.
func DecodeResults(data []byte) (*Results, error) {
	if all := splitResults(data); all != nil {
		return all, nil
	}
	all := new(Results)
	return all, json.Unmarshal(data, all) // finds the fault, if there is one
}

// splitResults decodes results of the usual form, and returns nil for others.
func splitResults(data []byte) *Results {
	var list []byte
	all := new(Results)
	usual := true
	err := jsonwalk.Members(data, "", func(key, value []byte) bool {
		switch string(key) {
		case "worker":
			all.Worker, usual = plainText(value)
		case "results":
			usual = list == nil
			list = value
		default:
			usual = false
		}
		return usual
	})
	if err != nil || !usual {
		return nil
	}
	err = jsonwalk.Elements(list, func(one []byte) bool {
		r, err := decodeResult(one)
		all.List = append(all.List, r)
		usual = err == nil
		return usual
	})
	if err != nil || !usual {
		return nil
	}
	return all
}

// decodeResult decodes a result. Most results have only an id and a trial.
func decodeResult(one []byte) (r Result, err error) {
	usual := true
	err = jsonwalk.Members(one, "", func(key, value []byte) bool {
		switch string(key) {
		case "id":
			r.ID, usual = plainText(value)
		case "trial":
			r.Trial = value
		default:
			usual = false
		}
		return usual
	})
	if err == nil && usual {
		return r, nil
	}
	r = Result{}
	return r, json.Unmarshal(one, &r)
}

// plainText returns the text of a JSON string without escapes. plain is false for other values.
func plainText(value []byte) (text string, plain bool) {
	if len(value) < 2 || value[0] != '"' || bytes.IndexByte(value, '\\') >= 0 || !utf8.Valid(value) {
		return "", false
	}
	return string(value[1 : len(value)-1]), true
}

// plainNumber returns a whole number that is written without exponent. plain is false for other
// values.
func plainNumber(value []byte) (n int, plain bool) {
	n, err := strconv.Atoi(string(value))
	return n, err == nil
}
