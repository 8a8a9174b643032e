package dialect

import "waza/eval/text"

var secretName = text.Pattern(`(?i)(?:api_?key|passw(?:or)?d|pwd|passphrase|secret|credential|(?:^|_)(?:key|token|pat|auth)(?:$|_))`)

// IsSecret reports whether the name of a variable says that its value is a secret. Those of the working
// directory only look so.
func IsSecret(name string) bool {
	return name != "PWD" && name != "OLDPWD" && secretName().MatchString(name)
}
