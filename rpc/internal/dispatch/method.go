package dispatch

import (
	"context"
	"encoding/json"
	"reflect"
)

// A Class decides how a method is served.
type Class int

const (
	// Quick methods return at once. The reader serves them in the order of the requests.
	Quick Class = iota
	// Long methods read files: each request has a goroutine.
	Long
	// Heavy methods are long methods that can use much memory and processor time. The number
	// served at once is limited for all clients together.
	Heavy
)

// A Method is an entry of a method table. C is the part of the connection that its handler gets.
// It must not change after [New].
type Method[C any] struct {
	Entry
	Class Class
	// Serve decodes the parameters, which are nil if absent, and calls the handler. It is safe
	// for concurrent use.
	Serve func(ctx context.Context, c C, params json.RawMessage) (any, error)
}

// An Entry documents a method or a notification.
type Entry struct {
	Name   string
	Doc    string       // sentences
	Params reflect.Type // a struct
	Result reflect.Type // of a method; an interface means null
}

// Define returns an entry. The fields of P are the parameters, see params.go; the result is R as
// encoding/json writes it.
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

// Adapt converts methods for the table of Outer: inner returns the argument for their handlers.
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

// Entries returns the documentation of methods.
func Entries[C any](methods []*Method[C]) []Entry {
	var list []Entry
	for _, m := range methods {
		list = append(list, m.Entry)
	}
	return list
}
