// Package migrating translates the commands and flags of microsoft/waza that have another name in
// this program. Call [Flag] and [Command] for an unknown word. Scripts and habits then get the
// same effect, or an error with the command to type.
package migrating

import (
	"fmt"
	"strings"
)

// Pointer is the replacement for a flag.
type Pointer struct {
	// Hint is the replacement to type. If it is not empty, the flag is rejected.
	Hint string
	// TakesValue reports whether a value follows the flag.
	TakesValue bool
	// Rewrite returns the equivalent flags with their values, or none if waza has the effect
	// without a flag. Its error lists the known values. It is nil if the flag is rejected.
	Rewrite func(value string) ([]string, error)
	// Default reports whether explicit flags override the flags of Rewrite.
	Default bool
}

// Flag returns the meaning of a flag of a command, such as "waza run" and "tags". The empty
// command name means every command.
func Flag(command, name string) (Pointer, bool) {
	for _, in := range []string{command, ""} {
		if p, ok := flags(in)[name]; ok {
			return p, true
		}
	}
	if strings.HasPrefix(name, "otel-") && command == "waza run" {
		return refuse("--traces URL sends OpenTelemetry traces to a collector; --traces env reads the variables OTEL_EXPORTER_OTLP_…"), true
	}
	return Pointer{}, false
}

// Command returns what to type instead of a command, such as "waza gate".
func Command(name string) (hint string, ok bool) {
	hint, ok = commands()[name]
	return hint, ok
}

// Alias returns the name of the equivalent command, or "".
func Alias(name string) string {
	if name == "waza preflight" {
		return "validate"
	}
	return ""
}

func refuse(hint string) Pointer { return Pointer{Hint: hint} }

// same returns a pointer for a flag whose effect waza has without it.
func same() Pointer {
	return Pointer{Rewrite: func(string) ([]string, error) { return nil, nil }}
}

// means returns a pointer for a flag that expands to other flags.
func means(flags ...string) Pointer {
	return Pointer{Rewrite: func(string) ([]string, error) { return flags, nil }}
}

// takes returns a pointer for a flag whose value selects its meaning.
func takes(rewrite func(value string) ([]string, error)) Pointer {
	return Pointer{TakesValue: true, Rewrite: rewrite}
}

// oneOf returns a pointer with a meaning for each value.
func oneOf(meanings map[string][]string, known string) Pointer {
	return takes(func(value string) ([]string, error) {
		if m, ok := meanings[value]; ok {
			return m, nil
		}
		return nil, fmt.Errorf("unknown value %q; known values: %s", value, known)
	})
}

func tags(value string) (flags []string, err error) {
	for _, tag := range split(value) {
		if tag = strings.TrimSpace(tag); tag != "" {
			flags = append(flags, "--tag", tag)
		}
	}
	if flags == nil {
		err = fmt.Errorf("no tag in %q", value)
	}
	return flags, err
}

// split splits a list at its commas, but not within the braces of a glob.
func split(list string) (parts []string) {
	depth, start := 0, 0
	for i := range len(list) {
		switch list[i] {
		case '{':
			depth++
		case '}':
			depth--
		case ',':
			if depth <= 0 {
				parts = append(parts, list[start:i])
				start = i + 1
			}
		}
	}
	return append(parts, list[start:])
}

func reporter(value string) ([]string, error) {
	kind, path, found := strings.Cut(value, ":")
	switch {
	case value == "json":
		return []string{"--json"}, nil
	case kind == "junit" && path != "":
		return []string{"--report", "junit=" + path}, nil
	case kind == "junit" && !found:
		return []string{"--report", "junit"}, nil
	}
	return nil, fmt.Errorf("unknown value %q; known values: json, junit:FILE; --report FORMAT=FILE has more formats", value)
}
