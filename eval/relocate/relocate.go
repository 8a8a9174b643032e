// Package relocate copies values and maps the paths in them, because files have other paths on
// another machine. Fill a [Copier] and call [Copy].
package relocate

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
)

// The tag path of a field is the type of its texts. It also applies to the texts in lists, maps
// and values of any type below the field:
//
//	file    an absolute path that the trial needs
//	repo    the absolute path of a git repository
//	maybe   a text of the suite that can be a path as a whole
//	words   a command of the suite whose words can be paths
//	keys    a map whose keys are files
//	-       nothing below the field is copied or changed
//
// A field without the tag is searched for structs that have it.
const tag = "path"

// maxDepth limits how deep values are nested.
const maxDepth = 100

// A Copier copies values and maps their paths with its functions. It copies each value only
// once: two values that shared a pointer share its copy. It is safe for concurrent use. Its
// fields must not change after the first use.
type Copier struct {
	// File and Repo map paths that must exist. An error ends the copying.
	File, Repo func(path string) (string, error)
	// Maybe maps a text that can be a path, Words a text that can contain some. They return
	// other texts unchanged.
	Maybe, Words func(text string) (string, error)

	mu     sync.Mutex // guards the fields below
	copies map[pointer]outcome
	plain  map[reflect.Type]bool // whether a type cannot contain paths
}

// pointer identifies a copied value. A struct and its first field can have the same address.
type pointer struct {
	at   uintptr
	kind reflect.Type
	as   string
}

// outcome is a copy, or the value itself if nothing in it changed. It keeps the value alive, so
// that its address is not reused.
type outcome struct {
	from, to reflect.Value
	changed  bool
}

// Copy returns v with its paths mapped. It does not change v; parts without paths are shared
// with v.
func Copy[T any](c *Copier, v T) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.copies == nil {
		c.copies, c.plain = map[pointer]outcome{}, map[reflect.Type]bool{}
	}
	to, changed, err := c.copyValue(reflect.ValueOf(&v).Elem(), "", 0)
	if err != nil || !changed {
		return v, err
	}
	return to.Interface().(T), nil
}

func (c *Copier) copyValue(v reflect.Value, as string, depth int) (to reflect.Value, changed bool, err error) {
	if depth > maxDepth {
		return v, false, fmt.Errorf("a value is nested more than %d levels deep", maxDepth)
	}
	if as == "-" || as == "" && c.isPlain(v.Type()) {
		return v, false, nil
	}
	switch v.Kind() {
	case reflect.String:
		return c.copyText(v, as)
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return v, false, nil
		}
		return c.copyIndirect(v, as, depth)
	case reflect.Struct:
		return c.copyFields(v, as, depth)
	case reflect.Slice, reflect.Array:
		return c.copyList(v, as, depth)
	case reflect.Map:
		return c.copyEntries(v, as, depth)
	}
	return v, false, nil
}

func (c *Copier) copyText(v reflect.Value, as string) (reflect.Value, bool, error) {
	mapping := map[string]func(string) (string, error){"file": c.File, "keys": c.File, "repo": c.Repo, "maybe": c.Maybe, "words": c.Words}[as]
	old := v.String()
	if old == "" || as == "" {
		return v, false, nil
	}
	if mapping == nil {
		return v, false, fmt.Errorf("a field has the unknown tag %s:%q", tag, as)
	}
	text, err := mapping(old)
	if err != nil || text == old {
		return v, false, err
	}
	to := reflect.New(v.Type()).Elem()
	to.SetString(text)
	return to, true, nil
}

// copyIndirect copies the target of a pointer or the content of an interface.
func (c *Copier) copyIndirect(v reflect.Value, as string, depth int) (reflect.Value, bool, error) {
	var key pointer
	if v.Kind() == reflect.Pointer {
		key = pointer{v.Pointer(), v.Type(), as}
		if known, ok := c.copies[key]; ok {
			return known.to, known.changed, nil
		}
	}
	elem, changed, err := c.copyValue(v.Elem(), as, depth+1)
	if err != nil {
		return v, false, err
	}
	to := v
	if changed {
		to = reflect.New(v.Type()).Elem()
		if v.Kind() == reflect.Pointer {
			to.Set(reflect.New(v.Type().Elem()))
			to.Elem().Set(elem)
		} else {
			to.Set(elem)
		}
	}
	if v.Kind() == reflect.Pointer {
		c.copies[key] = outcome{v, to, changed}
	}
	return to, changed, nil
}

func (c *Copier) copyFields(v reflect.Value, as string, depth int) (reflect.Value, bool, error) {
	to, changed := v, false
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		below := as
		if own, ok := f.Tag.Lookup(tag); ok {
			below = own
		}
		field, differs, err := c.copyValue(v.Field(i), below, depth+1)
		if err != nil {
			return v, false, withField(f.Name, err)
		}
		if !differs {
			continue
		}
		if !changed {
			changed, to = true, reflect.New(v.Type()).Elem()
			to.Set(v)
		}
		to.Field(i).Set(field)
	}
	return to, changed, nil
}

func (c *Copier) copyList(v reflect.Value, as string, depth int) (reflect.Value, bool, error) {
	to, changed := v, false
	for i := range v.Len() {
		item, differs, err := c.copyValue(v.Index(i), as, depth+1)
		if err != nil {
			return v, false, err
		}
		if !differs {
			continue
		}
		if !changed {
			changed, to = true, reflect.New(v.Type()).Elem()
			if v.Kind() == reflect.Slice {
				to.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			}
			reflect.Copy(to, v)
		}
		to.Index(i).Set(item)
	}
	return to, changed, nil
}

func (c *Copier) copyEntries(v reflect.Value, as string, depth int) (reflect.Value, bool, error) {
	if v.IsNil() {
		return v, false, nil
	}
	to, changed := reflect.MakeMapWithSize(v.Type(), v.Len()), false
	for entries := v.MapRange(); entries.Next(); {
		key, item := entries.Key(), entries.Value()
		var differs bool
		var err error
		if as == "keys" {
			key, differs, err = c.copyValue(key, as, depth+1)
		} else {
			item, differs, err = c.copyValue(item, as, depth+1)
		}
		if err != nil {
			return v, false, err
		}
		changed = changed || differs
		to.SetMapIndex(key, item)
	}
	if !changed {
		return v, false, nil
	}
	return to, true, nil
}

// isPlain reports whether values of a type cannot contain a field with the tag.
func (c *Copier) isPlain(t reflect.Type) bool {
	plain, known := c.plain[t]
	if known {
		return plain
	}
	c.plain[t] = true // a reference to the type itself adds no field
	switch t.Kind() {
	case reflect.Interface:
		plain = false
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		plain = c.isPlain(t.Elem())
	case reflect.Struct:
		plain = true
		for i := range t.NumField() {
			f := t.Field(i)
			as, tagged := f.Tag.Lookup(tag)
			if f.IsExported() && as != "-" && (tagged || !c.isPlain(f.Type)) {
				plain = false
			}
		}
	default:
		plain = true
	}
	c.plain[t] = plain
	return plain
}

// fault is an error with the name of its field.
type fault struct {
	field string
	err   error
}

func (f *fault) Error() string { return f.field + ": " + f.err.Error() }

func (f *fault) Unwrap() error { return f.err }

// withField adds the innermost field to an error; outer fields add nothing.
func withField(field string, err error) error {
	if known := (*fault)(nil); errors.As(err, &known) {
		return err
	}
	return &fault{field, err}
}
