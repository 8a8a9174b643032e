package fleetaddr

import "slices"

// Same reports whether two addresses lead to the same fleet: the same team on the same servers,
// in any order. Login, files and limits can differ.
func (a Address) Same(b Address) bool {
	servers := func(a Address) []string { return slices.Compact(slices.Sorted(slices.Values(a.Servers))) }
	return a.Embedded == b.Embedded && a.Team == b.Team && slices.Equal(servers(a), servers(b))
}

// Hidden reports whether the address is an output of [Address.String], and therefore lacks its
// password or token.
func (a Address) Hidden() bool { return a.Password == hidden || a.Token == hidden }

// HasLogin reports whether the address contains a login: a user, a token or a file that proves
// an identity.
func (a Address) HasLogin() bool { return a.User+a.Token+a.Creds+a.NKey+a.Cert != "" }

// WithLogin returns the address with the login of another one: its user, password, token and
// login files.
func (a Address) WithLogin(of Address) Address {
	a.User, a.Password, a.Token = of.User, of.Password, of.Token
	a.Creds, a.NKey, a.CA, a.Cert, a.Key = of.Creds, of.NKey, of.CA, of.Cert, of.Key
	return a
}
