package assist

import (
	"slices"
)

// A view is one of the possible shapes of a value, combined from all schemas that lead to it.
type view struct {
	*schema
	description string
	fallback    any // the default
	deprecated  bool
	refers      refers
	required    []string
}

// maxExpansion limits how far references and alternatives are followed.
const maxExpansion = 12

// A shaped tree is read by the schema of its type of file, which says what can be where.
type shaped struct {
	*tree
	schema *schema
}

// expand returns the shapes of a schema. The node of the value, which may be nil, decides
// conditions.
func (t shaped) expand(s *schema, n *node) []view {
	var out []view
	t.gather(s, n, view{}, 0, &out)
	return out
}

func (t shaped) gather(s *schema, n *node, above view, depth int, out *[]view) {
	if s == nil || depth > maxExpansion {
		return
	}
	v := above
	v.schema = s
	v.deprecated = v.deprecated || s.Deprecated
	if v.description == "" {
		v.description = s.Description
	}
	if v.fallback == nil {
		v.fallback = s.Default
	}
	if v.refers == "" {
		v.refers = s.Refers
	}
	v.required = s.Required
	if s.Ref != "" {
		t.gather(t.definition(s.Ref), n, v, depth+1, out)
		return
	}
	alternatives := slices.Concat(s.AnyOf, s.OneOf)
	for _, a := range alternatives {
		t.gather(a, n, v, depth+1, out)
	}
	if len(alternatives) == 0 {
		*out = append(*out, v)
	}
	for _, a := range s.AllOf {
		if a.If == nil {
			t.gather(a, n, v, depth+1, out)
		} else if n != nil && n.kind == mapping && t.meets(a.If, n) {
			t.gather(a.Then, n, view{}, depth+1, out)
		}
	}
}

func (t shaped) definition(ref string) *schema {
	const here = "#/$defs/"
	if len(ref) <= len(here) {
		return nil
	}
	return t.schema.Defs[ref[len(here):]]
}

// meets reports whether a map meets a condition: whether some keys have one of some values.
func (t shaped) meets(condition *schema, n *node) bool {
	for _, p := range condition.Properties {
		v := t.value(n, p.name)
		if v == nil || len(p.schema.Enum) > 0 && !slices.Contains(p.schema.Enum, any(v.text())) {
			return false
		}
	}
	return true
}

// shapes returns the possible shapes of a node of the tree.
func (t shaped) shapes(n *node) []view {
	if n == nil || n.parent == nil {
		return t.expand(t.schema, n)
	}
	above := t.shapes(n.parent)
	if n.item != nil {
		return t.items(above, n)
	}
	if n.pair.key == nil {
		return nil
	}
	return t.property(above, n.pair.key.text(), n)
}

// items returns the shapes of a list item. The items inherit what the list refers to.
func (t shaped) items(list []view, n *node) []view {
	var out []view
	for _, v := range list {
		if v.Items == nil {
			continue
		}
		for _, it := range t.expand(v.Items, n) {
			if it.refers == "" {
				it.refers = v.refers
			}
			if it.description == "" {
				it.description = v.description
			}
			out = append(out, it)
		}
	}
	return out
}

// property returns the shapes of the value of a key.
func (t shaped) property(object []view, key string, n *node) []view {
	var out []view
	for _, v := range object {
		if s := v.Properties.get(key); s != nil {
			out = append(out, t.expand(s, n)...)
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, v := range object {
		if v.AdditionalProperties != nil {
			out = append(out, t.expand(v.AdditionalProperties, n)...)
		}
	}
	return out
}

// visit calls f with each value of a tree and its possible shapes.
func (t shaped) visit(n *node, views []view, f func(*node, []view)) {
	if n == nil {
		return
	}
	f(n, views)
	for _, p := range n.pairs {
		if p.key != nil && p.value != nil {
			t.visit(p.value, t.property(views, p.key.text(), p.value), f)
		}
	}
	for _, it := range n.items {
		if it.value != nil {
			t.visit(it.value, t.items(views, it.value), f)
		}
	}
}

func (v view) isList() bool   { return v.Type.has("array") || v.Items != nil }
func (v view) isObject() bool { return v.Type.has("object") || len(v.Properties) > 0 }
func (v view) isScalar() bool {
	return len(v.Enum) > 0 || v.Type.has("string") || v.Type.has("number") || v.Type.has("integer") || v.Type.has("boolean")
}
