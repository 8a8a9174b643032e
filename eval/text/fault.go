package text

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"
)

// RegexpFault describes the fault of a pattern, with a hint about features that only other
// dialects of regular expressions have.
func RegexpFault(err error) string {
	var se *syntax.Error
	if !errors.As(err, &se) {
		return err.Error()
	}
	msg := fmt.Sprintf("%s: `%s`", se.Code, Clip(se.Expr, 60))
	switch {
	case strings.HasPrefix(se.Expr, "(?=") || strings.HasPrefix(se.Expr, "(?!") || strings.HasPrefix(se.Expr, "(?<"):
		msg += " (RE2 has no look-around)"
	case len(se.Expr) == 2 && se.Expr[0] == '\\' && se.Expr[1] >= '1' && se.Expr[1] <= '9':
		msg += " (RE2 has no back-references)"
	}
	return msg
}
