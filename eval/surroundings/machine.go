package surroundings

import (
	"fmt"
	"strings"

	"waza/eval/text"
)

var machineVariable = text.Pattern(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)

// FromMachine returns a text with the values of variables of the machine: those of ${NAME}, and of
// ${NAME:-TEXT}, which is TEXT if the variable is not set or empty. The error names a variable without
// a value. All other texts remain.
func FromMachine(value string, lookup func(name string) (string, bool)) (string, error) {
	var b strings.Builder
	rest := value
	for {
		at := machineVariable().FindStringSubmatchIndex(rest)
		if at == nil {
			b.WriteString(rest)
			return b.String(), nil
		}
		name := rest[at[2]:at[3]]
		found, ok := lookup(name)
		switch {
		case at[4] >= 0 && found == "":
			found = rest[at[6]:at[7]]
		case !ok && at[4] < 0:
			return "", fmt.Errorf("the environment variable %s is not set", name)
		}
		b.WriteString(rest[:at[0]])
		b.WriteString(found)
		rest = rest[at[1]:]
	}
}
