package fields_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/fields"
)

type inner struct {
	Deep int `yaml:"deep" json:"deep"`
}

type Outer struct {
	Name   string   `yaml:"name" json:"title" alias:"label,id" jsonschema:"required" doc:"Its name."`
	Share  *float64 `yaml:"share" json:"share" jsonschema:"minimum=0,maximum=1,default=0.5"`
	Speed  float64  `jsonschema:"exclusiveMinimum=0,exclusiveMaximum=9"`
	List   []string `yaml:"list,omitempty" json:"list,omitempty" jsonschema:"minItems=2,enum=a,enum=b"`
	Hidden string   `yaml:"-" json:"-"`
	inner  `yaml:",inline"`
	Inner  inner `yaml:",inline" json:"inner"`
	own    int
}

func TestFieldsOfBothFormats(t *testing.T) {
	t.Parallel()
	_ = Outer{}.own
	names := func(tag string) (list []string) {
		for _, f := range fields.Of(reflect.TypeFor[Outer](), tag) {
			list = append(list, f.Name)
		}
		return list
	}
	require.Equal(t, []string{"name", "share", "speed", "list", "deep"}, names("yaml"))
	require.Equal(t, []string{"title", "share", "list", "deep", "inner"}, names("json"))
}

func TestRules(t *testing.T) {
	t.Parallel()
	list := fields.Of(reflect.TypeFor[Outer](), "yaml")
	name := fields.Find(list, "id")
	require.Equal(t, "name", name.Name)
	require.True(t, name.Required)
	require.Equal(t, "Its name.", name.Doc)
	share := fields.Find(list, "share")
	require.Equal(t, 0.0, *share.Min)
	require.Equal(t, 1.0, *share.Max)
	require.Nil(t, share.Enum)
	require.Equal(t, 0.0, *fields.Find(list, "speed").Above)
	require.Equal(t, 9.0, *fields.Find(list, "speed").Below)
	require.Equal(t, 2, fields.Find(list, "list").MinItems)
	require.Equal(t, []string{"a", "b"}, fields.Find(list, "list").Enum)
	require.Nil(t, fields.Find(list, "none"))

	var o Outer
	v := reflect.ValueOf(&o).Elem()
	v.FieldByIndex(fields.Find(list, "deep").Index).SetInt(3)
	require.Equal(t, 3, o.Inner.Deep)
}

func TestNumber(t *testing.T) {
	t.Parallel()
	half := 0.5
	for _, v := range []any{0.5, &half, float32(0.5)} {
		n, ok := fields.Number(reflect.ValueOf(v))
		require.True(t, ok)
		require.Equal(t, 0.5, n)
	}
	n, ok := fields.Number(reflect.ValueOf(uint8(3)))
	require.True(t, ok)
	require.Equal(t, 3.0, n)
	for _, v := range []any{"3", (*float64)(nil), true} {
		_, ok := fields.Number(reflect.ValueOf(v))
		require.False(t, ok)
	}
}
