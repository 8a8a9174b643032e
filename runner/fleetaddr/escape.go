package fleetaddr

import (
	"fmt"
	"strconv"
	"strings"
)

// unescape replaces each %XX with its byte. It keeps a plus sign, because file names contain
// some.
func unescape(s string) (string, error) {
	if !strings.Contains(s, "%") {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", fmt.Errorf("has a %% without two hexadecimal digits; write %%25 for a %%")
		}
		code, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		if err != nil {
			return "", fmt.Errorf("has a %% without two hexadecimal digits; write %%25 for a %%")
		}
		if code == 0 {
			return "", fmt.Errorf("has %%00, a zero byte")
		}
		b.WriteByte(byte(code))
		i += 2
	}
	return b.String(), nil
}

// escape writes bytes with a meaning in an address as %XX, except those in plain.
func escape(s, plain string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._", c) >= 0, strings.IndexByte(plain, c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
