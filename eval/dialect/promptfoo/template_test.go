package promptfoo

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rendering ends for any template, and a text without braces is unchanged.
func FuzzRender(f *testing.F) {
	for _, s := range []string{
		`{{ a | default("x", true) | upper }}`, `{{ l[0].k }}{# c #}{% raw %}{{ }}{% endraw %}`, `{{- 'a\'' -}}`, `{"k": "{{a}}", "l": [1, "\u00e9"]}`,
		`{% if a == 1 and not (l in [1]) %}{% elif b %}{% else %}{% endif %}`, `{% for k, v in l %}{{ loop.index ~ k }}{% else %}{% endfor %}{% set x = -1 // 2 if a else [2] %}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := &renderer{budget: &budget{maxExpanded}, vars: map[string]any{"a": "A", "l": []any{map[string]any{"k": 1}}}, unknown: func(string) {}}
		_, _ = r.render(s)
		if json.Valid([]byte(s)) {
			out, err := renderJSON(s, func(s string) (string, error) { return s, nil })
			require.NoError(t, err)
			require.JSONEq(t, s, out)
		}
	})
}

// Texts are those that the Nunjucks of promptfoo writes.
func TestRender(t *testing.T) {
	t.Parallel()
	vars := map[string]any{
		"a": "A", "n": 3, "text": "3", "word": "añ😀", "zero": 0, "empty": "", "yes": true, "none": nil, "list": []any{"x", "y", "z"}, "nothing": []any{},
		"pairs": []any{[]any{"k", 1}, []any{"l", 2}}, "one": map[string]any{"k": "v"}, "two": map[string]any{"k": 1, "l": 2},
		"people": []any{map[string]any{"name": "Ann", "age": 40}, map[string]any{"name": "Bob", "age": 20}},
	}
	for _, c := range []struct{ template, want string }{
		{"plain {text} { {", "plain {text} { {"},
		{"{% if yes %}1{% endif %}2", "12"},
		{"{% if empty %}1{% elif zero %}2{% elseif none %}3{% else %}4{% endif %}", "4"},
		{"{% if missing %}1{% else %}2{% endif %}", "2"},
		{"{% if nothing %}1{% endif %}{% if nothing | length %}2{% endif %}", "1"},
		{"{% if n > 2 and not (a == 'B') %}1{% endif %}", "1"},
		{"{% if n == text %}1{% endif %}{% if n === text %}2{% endif %}{% if n !== text %}3{% endif %}", "13"},
		{"{% if text > 2 %}1{% endif %}{% if a > 2 %}2{% endif %}{% if a < 'B' %}3{% endif %}", "13"},
		{"{% if none == missing %}1{% endif %}{% if none == zero %}2{% endif %}", "1"},
		{"{% if 'y' in list %}1{% endif %}{% if 'q' not in list %}2{% endif %}{% if 'k' in one %}3{% endif %}{% if 'b' in 'abc' %}4{% endif %}", "1234"},
		{"{% if a is defined and missing is undefined and missing is not defined %}1{% endif %}{% if n is odd %}2{% endif %}", "12"},
		{"{{ 'p' if yes else 'q' }}{{ 'p' if zero else 'q' }}{{ 'p' if zero }}", "pq"},
		{"{{ empty or 'b' }}{{ a and n }}{{ not a }}", "b3false"},
		{"{{ 1 + 2 * 3 }} {{ (1 + 2) * 3 }} {{ 7 // 2 }} {{ 7 % 4 }} {{ 2 ** 3 }} {{ 1 / 4 }} {{ n - 1 }} {{ -n }}", "7 9 3 3 8 0.25 2 -3"},
		{"{{ text + 1 }} {{ 'a' ~ 1 ~ none }} {{ a + '!' | lower }}", "31 a1null A!"},
		{"{% for x in list %}{{ loop.index }}{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}", "1x, 2y, 3z"},
		{"{% for x in nothing %}{{ x }}{% else %}none{% endfor %}", "none"},
		{"{% for x in 'né' %}{{ x }}.{% endfor %}", "n.é."},
		{"{% for x, y in 'ab' %}{% endfor %}", "error: a loop over a text with several names"},
		{"{% for x in missing %}{{ x }}{% endfor %}.", "."},
		{"{% for k, v in pairs %}{{ k }}={{ v }};{% endfor %}{% for k, v in one %}{{ k }}={{ v }}{% endfor %}", "k=1;l=2;k=v"},
		{"{% for p in people %}{% for x in ['a', p.age] %}{{ p.name }}{{ x }} {% endfor %}{% endfor %}", "Anna Ann40 Boba Bob20 "},
		{"{% for x in list -%}\n  {{ x }}\n{%- endfor %}", "xyz"},
		{"{% for x in list %}\n- {{ x }}{% endfor %}", "\n- x\n- y\n- z"},
		{"{% set b = a ~ '!' %}{{ b }}{% set b = 2 %}{{ b }}", "A!2"},
		{"{% set s = 0 %}{% for p in people %}{% set s = s + p.age %}{% endfor %}{{ s }}", "60"},
		{"{% for x in list %}{% set last = x %}{% endfor %}[{{ last }}]", "[]"},
		{"{% set b %}<{{ a }}>{% endset %}{{ b }}{{ b }}", "<A><A>"},
		{"{% set l = [1, 'b', a] %}{{ l | join('-') }}{{ l[2] }}{{ l | last }}", "1-b-AAA"},
		{"{% raw %}{{ a }}{% if %}{% endraw %}{% verbatim %}{%{% endverbatim %}", "{{ a }}{% if %}{%"},
		{"{# {% if %} #}{{ '{% x %}' }}", "{% x %}"},
		{`{{ ('{"k": [1, 2]}' | load).k | last }} {{ "4.7" | int }} {{ -2 | abs }}`, "2 4 2"},
		{"{{n-1}} {{ 1-n }} {{ a-n }} {{ 1/0 }} {{ 10000000000000000000000 }} {{ 0.0000001 }}", "2 -2 NaN Infinity 1e+22 1e-7"},
		{"{{ list }} {{ one }} {{ [1, 2.50, 'x', true, none] }} {{ pairs }} {{ nothing }}.", "x,y,z [object Object] 1,2.5,x,true, k,1,l,2 ."},
		{"{{ people | join(',', 'name') }} {{ pairs | join('|') }} {{ 'aaa' | replace('a', 'b', 2) }} {{ 3 | replace('3', 4) }}", "Ann,Bob k,1|l,2 bba 4"},
		{"{{ word[1] }} {{ 'ab' | first }}{{ 'ab' | last }} {{ '😀' | length }} {{ missing | length }} {{ 'ß' | upper }}", "ñ ab 2 0 SS"},
		{"{{ missing | dump }}.{{ one | dump(4) }} {{ [missing, 1/0] | dump }} {{ two | dump }}", ".{\n    \"k\": \"v\"\n} [null,null] {\"k\":1,\"l\":2}"},
		{"{{ '3.7abc' | int }} {{ 'abc' | int(5) }} {{ '3.7abc' | float }} {{ '1e3' | int }} {{ yes | int }}.", "3 5 3.7 1 ."},
		{"{{ a + missing }} {{ a + none }} {{ list + one }} {{ list == 'x,y,z' }} {{ list == list }} {{ list === list }}", "Aundefined Anull x,y,z[object Object] true true true"},
		{"{{ missing | default(list) | last }}{{ ('x' if zero else 'y') if yes }}", "zy"},
		{"{% if\tyes %}1{% elif\nyes %}2{% endif %}{% if(yes) %}3{% endif %}{%for x in [1]%}{{x}}{%endfor%}", "131"},
		{"{% for x in list %}{% if x == 'y' %}{% set a = 'B' %}{% endif %}{{ a }}{% endfor %}{{ a }}", "ABBA"},
		{"{% for x in list %}{{ q }}{% set q = x %}{% endfor %}{{ q }}", "xy"},
		{"{% set q = 0 %}{% for x in list %}{% set q = x %}{% for y in [1] %}{% set q = 'in' %}{% endfor %}{{ q }}{% endfor %}{{ q }}", "inininin"},
		{"{{ [1,] }}", `error: {{ [1,] }}: expected a variable, got "]"`},
		{"{{ 1 if zero else 2 if zero else 3 }}", `error: {{ 1 if zero else 2 if zero else 3 }}: unexpected "if zero else 3"`},
		{"{{ n | upper }}", "error: {{ n | upper }}: upper needs a text"},
		{"{{ missing | trim }}", "error: {{ missing | trim }}: trim needs a text"},
		{"{{ missing | first }}", "error: {{ missing | first }}: first needs a list or a text"},
		{"{{ a | join(',') }}", "error: {{ a | join(',') }}: join needs a list"},
		{"{{ a | replace('h') }}", "error: {{ a | replace('h') }}: replace needs a text and two arguments"},
		{"{%- raw -%} x {%- endraw -%}", "error: a template with raw and no endraw"},
		{"{% for x in two %}{% endfor %}", "error: a loop over a map: waza does not know the order of its keys; use a list"},
		{"{% if a %}", "error: a template without {% endif %}"},
		{"{% if a %}{% endfor %}", "error: a template without {% endif %}"},
		{"{% endif %}", "error: the template tag {% endif %} without the tag that opens it"},
		{"{% for x %}{% endfor %}", "error: the template tag {% for x %}: expected NAME in LIST"},
		{"{% set 1 %}", "error: the template tag {% set 1 %}: expected NAME = VALUE"},
		{"{% macro f(x) %}{% endmacro %}", "error: the template tag {% macro f(x) %}: waza has the tags if, for, set and raw"},
		{"{% include 'x' %}", "error: the template tag {% include 'x' %}: waza has the tags if, for, set and raw"},
		{"{% if a | odd %}{% endif %}", `error: {% if a | odd %}: the filter "odd" is not one that waza has: default, dump, load, join, length, first, last, reverse, replace, int, float, abs, safe, string, capitalize, lower, title, trim, upper`},
		{"{% if a is strange %}{% endif %}", `error: {% if a is strange %}: the test "strange" is not one that waza has: defined, undefined, none, null, string, number, mapping, odd, even, truthy, falsy`},
		{"{% if a = 1 %}{% endif %}", `error: {% if a = 1 %}: unexpected "= 1"`},
	} {
		r := &renderer{budget: &budget{maxExpanded}, vars: vars, unknown: func(string) {}}
		got, err := r.render(c.template)
		if err != nil {
			got = "error: " + err.Error()
		}
		require.Equal(t, c.want, got, c.template)
	}
}

// No text contains a secret of the environment.
func TestRenderSecrets(t *testing.T) {
	t.Parallel()
	env := map[string]string{"AUTHORIZATION": "Bearer x", "DATABASE_URL": "postgres://me:hunter2@db/x", "SITE_URL": "https://site/x"}
	r := &renderer{budget: &budget{maxExpanded}, env: env, unknown: func(string) {}}
	for _, name := range []string{"AUTHORIZATION", "DATABASE_URL"} {
		_, err := r.render("{{ env." + name + " }}")
		require.EqualError(t, err, "{{ env."+name+" }}: waza inserts no secret such as "+name+" into texts")
	}
	got, err := r.render("{{ env.SITE_URL }}")
	require.NoError(t, err)
	require.Equal(t, "https://site/x", got)
}

// Each unknown variable is reported once, also in tags, unless a default or a test takes care of it.
func TestRenderUnknown(t *testing.T) {
	t.Parallel()
	var unknown []string
	r := &renderer{budget: &budget{maxExpanded}, vars: map[string]any{"m": map[string]any{}}, unknown: func(name string) { unknown = append(unknown, name) }}
	_, err := r.render("{% if a == 1 %}{% endif %}{{ a }}{% for x in b %}{% endfor %}{% set c = d ~ 1 %}{{ c }}{{ m.k }}" +
		"{{ e | default('x') }}{% if f is defined %}{% endif %}")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "d", "m"}, unknown)
}

// The work of nested loops is limited by the budget, and nested tags and brackets by their depth.
func TestRenderLimits(t *testing.T) {
	t.Parallel()
	list := make([]any, 1000)
	for i := range list {
		list[i] = ""
	}
	r := &renderer{budget: &budget{1 << 20}, vars: map[string]any{"l": list}, unknown: func(string) {}}
	_, err := r.render(strings.Repeat("{% for x in l %}", 50) + strings.Repeat("{% endfor %}", 50))
	require.ErrorIs(t, err, errExpanded)
	for _, template := range []string{strings.Repeat("{% if l %}", 100_000), "{{ " + strings.Repeat("(", 100_000), "{{ " + strings.Repeat("-", 100_000), "{{ " + strings.Repeat("[", 100_000) + " }}"} {
		r := &renderer{budget: &budget{maxExpanded}, vars: map[string]any{"l": list}, unknown: func(string) {}}
		_, err := r.render(template)
		require.Error(t, err)
	}
	r = &renderer{budget: &budget{maxExpanded}, vars: map[string]any{}, unknown: func(string) {}}
	_, err = r.render("{% set s = 'x' %}" + strings.Repeat("{% set s = s ~ s %}", 100))
	require.Error(t, err)
}
