package eval_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/fields"
	"waza/eval/project"
)

// place is a map of a suite where keys of several types are allowed.
type place struct {
	before string // the text before the keys
	indent string
	known  []fields.Field
	idle   reflect.Type // the type whose keys without effect are known, too
}

// TestEveryTypoOfAKey checks that each known key of a suite or project with one typing error is
// an error with the right suggestion.
func TestEveryTypoOfAKey(t *testing.T) {
	t.Parallel()
	v := vocabulary()
	config := append(decode.FieldsIn(eval.Config{}), fields.Field{Name: "baseline"})
	for _, k := range v.Executors {
		config = append(config, decode.FieldsIn(k.Options())...)
	}
	places := map[string]place{
		"suite":  {"name: demo\n", "", append(decode.FieldsIn(eval.Suite{}), fields.Field{Name: "tasks"}), reflect.TypeFor[eval.Suite]()},
		"config": {"config:\n", "  ", config, reflect.TypeFor[eval.Config]()},
		"task": {
			"tasks:\n  - id: a\n", "    ", append(decode.FieldsIn(eval.Task{}), decode.FieldsIn(eval.Inputs{})...),
			reflect.TypeFor[eval.Task](),
		},
		"grader": {
			"graders:\n  - type: program\n    name: demo\n", "    ",
			append(decode.FieldsIn(eval.Grader{}), append(decode.FieldsIn(&programOptions{}), fields.Field{Name: "config"})...),
			nil,
		},
		"options": {"graders:\n  - type: text\n    config:\n", "      ", decode.FieldsIn(&textOptions{}), nil},
	}
	for name, p := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkTypos(t, p.known, p.idle, func(keys []string) decode.Diagnostics {
				var b strings.Builder
				b.WriteString(p.before)
				for _, key := range keys {
					fmt.Fprintf(&b, "%s%s: x\n", p.indent, key)
				}
				file := filepath.Join(t.TempDir(), "eval.yaml")
				require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
				_, diags, err := eval.Load(file, eval.Options{Vocabulary: v})
				require.NoError(t, err)
				return diags
			})
		})
	}
	special := []reflect.Type{
		reflect.TypeFor[eval.Suite](), reflect.TypeFor[eval.Config](), reflect.TypeFor[eval.Task](),
		reflect.TypeFor[eval.Grader](),
	}
	for _, of := range structsIn(reflect.TypeFor[eval.Suite](), reflect.TypeFor[eval.Task](),
		reflect.TypeFor[eval.TriggerTests](), reflect.TypeFor[project.Project]()) {
		if slices.Contains(special, of) {
			continue
		}
		t.Run(of.String(), func(t *testing.T) {
			t.Parallel()
			checkTypos(t, decode.FieldsOf(of), nil, func(keys []string) decode.Diagnostics {
				found := &decode.Findings{}
				src := decode.Parse("eval.yaml", "eval.yaml", []byte(strings.Join(keys, ": x\n")+": x\n"), found)
				d := decode.NewDecoder(src, found)
				d.Structure(src.Root, reflect.New(of).Interface(), nil)
				return found.Diagnostics()
			})
		})
	}
}

// checkTypos lets find decode maps with typing errors of the known keys, and checks its findings.
func checkTypos(t *testing.T, known []fields.Field, idle reflect.Type, find func(keys []string) decode.Diagnostics) {
	meant := map[string]string{} // key or alias → key
	for _, f := range known {
		meant[f.Name] = f.Name
		for _, a := range f.Aliases {
			meant[a] = f.Name
		}
	}
	if idle != nil {
		for key := range eval.WithoutEffect(idle) {
			meant[key] = key
		}
	}
	wanted := map[string][]string{} // typing error → keys that it can mean
	for key, name := range meant {
		for _, typo := range typos(key) {
			if _, correct := meant[typo]; !correct {
				wanted[typo] = append(wanted[typo], name)
			}
		}
	}
	for typo := range wanted { // "fil" can mean "file" and "fill"
		for key, name := range meant {
			if decode.IsTypo(typo, key) {
				wanted[typo] = append(wanted[typo], name)
			}
		}
	}
	var all []string
	for typo := range wanted {
		all = append(all, typo)
	}
	slices.Sort(all)
	for keys := range slices.Chunk(all, 500) {
		got := map[string]decode.Diagnostic{}
		for _, d := range find(keys) {
			for _, unknown := range []string{`unknown key "`, `unknown option "`} {
				if _, rest, ok := strings.Cut(d.Message, unknown); ok {
					key, _, _ := strings.Cut(rest, `"`)
					got[key] = d
				}
			}
		}
		for _, typo := range keys {
			d, reported := got[typo]
			require.True(t, reported, "%s", typo)
			require.Equal(t, decode.Error, d.Severity, "%s", d)
			require.Contains(t, wanted[typo], d.Suggestion, "%s", d)
		}
	}
}

// typos returns a key with one letter removed, doubled or replaced, or with two neighbors swapped.
func typos(key string) []string {
	var out []string
	for i := range key {
		out = append(out, key[:i]+key[i+1:], key[:i+1]+key[i:], key[:i]+"x"+key[i+1:])
		if i > 0 {
			out = append(out, key[:i-1]+key[i:i+1]+key[i-1:i]+key[i+1:])
		}
	}
	// A key of underscores, or "y" and "n" of older YAML, are no texts that a person writes.
	return slices.DeleteFunc(out, func(s string) bool {
		return strings.Trim(s, "_") == "" || strings.EqualFold(strings.ReplaceAll(s, "_", ""), strings.ReplaceAll(key, "_", ""))
	})
}

// structsIn returns the struct types of this project that types contain, in the order of their
// names.
func structsIn(roots ...reflect.Type) []reflect.Type {
	seen := map[reflect.Type]bool{}
	var out []reflect.Type
	var walk func(of reflect.Type)
	walk = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map || of.Kind() == reflect.Array {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || seen[of] || !strings.HasPrefix(of.PkgPath(), "waza/") {
			return
		}
		seen[of] = true
		out = append(out, of)
		for _, f := range decode.FieldsOf(of) {
			walk(f.Type)
		}
	}
	for _, of := range roots {
		walk(of)
	}
	slices.SortFunc(out, func(a, b reflect.Type) int { return strings.Compare(a.String(), b.String()) })
	return out
}
