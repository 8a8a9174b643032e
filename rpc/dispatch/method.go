package dispatch

import (
	"context"
	"encoding/json"
	"reflect"
)

// Class says how a method is served.
type Class int

const (
	// Quick methods take no time. They are served by the reader, in the order
	// of the requests.
	Quick Class = iota
	// Long methods read files: each request has a goroutine.
	Long
	// Heavy methods are long ones that may take much memory and processor
	// time: only some are served at once, on behalf of all clients.
	Heavy
)

// A Method is an entry of a method table. C is what its handler gets of the
// connection. It is not changed once a [Dispatcher] has it.
type Method[C any] struct {
	Entry
	Class Class
	// Serve decodes the parameters, which are nil when absent, and calls the
	// handler. Any goroutine may call it.
	Serve func(ctx context.Context, c C, params json.RawMessage) (any, error)
}

// An Entry is what documents say of a method, or of a notification.
type Entry struct {
	Name   string
	Doc    string       // sentences
	Params reflect.Type // a struct
	Result reflect.Type // of a method; an interface means null
}

// Define makes an entry. The parameters are what the fields of P say, see
// params.go; the result is R as encoding/json writes it.
func Define[C, P, R any](name string, class Class, doc string, handler func(context.Context, C, *P) (R, error)) *Method[C] {
	return &Method[C]{
		Entry: Entry{name, doc, reflect.TypeFor[P](), reflect.TypeFor[R]()}, Class: class,
		Serve: func(ctx context.Context, c C, params json.RawMessage) (any, error) {
			p := new(P)
			if err := decodeParams(params, p); err != nil {
				return nil, err
			}
			return handler(ctx, c, p)
		},
	}
}

// Adapt makes methods whose handlers get an inner part of what other handlers get
// into methods of the same table.
func Adapt[Outer, Inner any](methods []*Method[Inner], inner func(Outer) Inner) []*Method[Outer] {
	var list []*Method[Outer]
	for _, m := range methods {
		list = append(list, &Method[Outer]{Entry: m.Entry, Class: m.Class,
			Serve: func(ctx context.Context, c Outer, params json.RawMessage) (any, error) {
				return m.Serve(ctx, inner(c), params)
			}})
	}
	return list
}

// Entries gives what documents say of methods.
func Entries[C any](methods []*Method[C]) []Entry {
	var list []Entry
	for _, m := range methods {
		list = append(list, m.Entry)
	}
	return list
}
