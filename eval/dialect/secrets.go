package dialect

import "waza/eval/text"

var secretName = text.Pattern(`(?i)(?:api_?key|passw(?:or)?d|pwd|passphrase|secret|credential|authorization|(?:^|_)(?:key|token|pat|auth)(?:$|_))`)

// IsSecret reports whether the name of a variable says that its value is a secret. Those of the working
// directory only look so.
func IsSecret(name string) bool {
	return name != "PWD" && name != "OLDPWD" && secretName().MatchString(name)
}

// addressName matches the names of variables with addresses, and withPassword those with a password in them.
var (
	addressName  = text.Pattern(`(?i)(?:^|_)(?:url|uri|dsn)(?:$|_)`)
	withPassword = text.Pattern(`://[^/?#\s@]*:[^/?#\s]+@`)
)

// IsSecretVariable reports whether a variable is a secret: by its name, or because it is an address with a password.
func IsSecretVariable(name, value string) bool {
	return IsSecret(name) || addressName().MatchString(name) && withPassword().MatchString(value)
}
