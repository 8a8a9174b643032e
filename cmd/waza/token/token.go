// Package token implements `waza token`, which makes, lists and revokes the tokens that clients
// of waza serve present. Call [Command].
package token

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/output"
	"waza/cmd/waza/state"
	"waza/rpc/gateway/jobs/token"
	"waza/rpc/gateway/store"
	"waza/runner/catalog"
	"waza/runner/journal"
)

// Options holds the outputs of the command.
type Options struct {
	output.Streams
}

// Command returns waza token with its subcommands.
func Command(o Options) *cli.Command {
	return &cli.Command{
		Name: "token", Category: help.Daemon,
		Usage: "make, list and revoke tokens for clients of waza serve",
		Description: `Clients of the jobs door present a token. The server of this state directory accepts the
tokens, whether it runs now or later. Without a subcommand, it lists them.

Examples:
  waza token create
  waza token create --user ann --ttl 30d --json
  waza token revoke h5xk2m7qpa3w

Exit codes: 0 when done, 2 for wrong usage or an unknown token, 3 when the tokens
cannot be read or written.`,
		Flags: []cli.Flag{flags.JSON("print the pairs as JSON")},
		Action: func(c *cli.Context) error {
			switch name := c.Args().First(); name {
			case "count", "check", "compare", "profile", "suggest":
				return exit.Usagef("did you mean waza tokens "+name+"?", "unknown command %q: waza token makes tokens for clients of waza serve", name)
			}
			return flags.Group(o.withTokens((*call).list))(c)
		},
		Subcommands: []*cli.Command{
			{
				Name: "create", Usage: "make and print a pair of tokens",
				Description: `The access token is valid for 15 minutes. The refresh token is valid for 30 days and gets
another pair from the server. waza prints both once and does not store them. It prints
the id of the pair, too, for waza token revoke.`,
				Flags: []cli.Flag{
					&cli.StringFlag{
						Name: "user", Usage: "make tokens of the user `NAME`, who sees the jobs started with these tokens",
						DefaultText: "the owner of the server",
					},
					&cli.StringFlag{
						Name:  "role",
						Usage: "make tokens with the `ROLE` user, or admin for the jobs of all users and for JSON-RPC",
						Value: string(token.User), DefaultText: string(token.User),
					},
					&cli.StringFlag{
						Name:        "ttl",
						Usage:       "make only an access token, valid for a `TIME` such as 12h or 30d, for a program that cannot refresh it",
						DefaultText: "15m, with a refresh token",
					},
					flags.JSON("print the tokens as JSON"),
				},
				Action: flags.AtMost(0, o.withTokens((*call).create)),
			},
			{
				Name: "list", Usage: "list the pairs that have not expired",
				Flags:  []cli.Flag{flags.JSON("print the pairs as JSON")},
				Action: flags.AtMost(0, o.withTokens((*call).list)),
			},
			{
				Name: "revoke", Usage: "reject the tokens of a pair from now on", ArgsUsage: "ID",
				Description: `ID is the id of a pair, which waza token create and list print, or the claim jti of a
single token. A running server closes open connections that use the tokens, within
seconds, also those of tokens that the refresh token was exchanged for.`,
				Flags:  []cli.Flag{flags.JSON("print the id as JSON")},
				Action: flags.AtMost(1, o.withTokens((*call).revoke)),
			},
		},
	}
}

// call is one use of a command.
type call struct {
	Options
	*cli.Context
	ctx    context.Context
	tokens *token.Issuer
}

// withTokens turns a function over the tokens of the state directory into a command's action.
func (o Options) withTokens(do func(*call) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		dir, err := state.Dir()
		if err != nil {
			return err
		}
		s, err := store.Open(dir)
		if err != nil {
			return journal.StateError(err)
		}
		defer s.Close()
		issuer, err := token.New(c.Context, s)
		if err != nil {
			return err
		}
		return do(&call{o, c, c.Context, issuer})
	}
}

func (c *call) create() error {
	grant := token.Grant{User: c.String("user"), Role: token.Role(c.String("role"))}
	if c.IsSet("user") && grant.User == "" {
		return exit.Usagef("omit --user for the owner of the server", "--user must not be empty")
	}
	if c.IsSet("ttl") {
		var err error
		if grant.TTL, err = catalog.ParseAge(c.String("ttl")); err != nil {
			return exit.Usagef("", "--ttl: %v", err)
		}
	}
	if err := grant.Check(); err != nil {
		return exit.Usagef("", "%v", err)
	}
	pair, err := c.tokens.Create(c.ctx, grant)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return c.Stdout.JSON(struct {
			ID string `json:"id"`
			token.Pair
		}{pair.ID, pair})
	}
	fmt.Fprintf(c.Stdout, "id             %s\naccess_token   %s\nrefresh_token  %s\n", pair.ID, pair.Access, pair.Refresh)
	return nil
}

func (c *call) list() error {
	tokens, err := c.tokens.List(c.ctx)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return c.Stdout.JSON(map[string]any{"tokens": tokens})
	}
	if len(tokens) == 0 {
		fmt.Fprintln(c.Stderr, "waza: no tokens")
		return nil
	}
	rows := [][]string{{"ID", "User", "Role", "Created", "Expires", "State"}}
	for _, t := range tokens {
		state := "valid"
		if t.RevokedAt != nil {
			state = "revoked"
		}
		rows = append(rows, []string{t.ID, t.User, string(t.Role), minute(t.CreatedAt), minute(t.ExpiresAt), state})
	}
	return c.Stdout.Table(rows)
}

func minute(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

func (c *call) revoke() error {
	if c.NArg() == 0 {
		return exit.Usagef("waza token list prints the ids", "waza token revoke requires the id of a pair")
	}
	id := c.Args().First()
	found, err := c.tokens.Revoke(c.ctx, id)
	switch {
	case err != nil:
		return err
	case !found:
		return exit.Usagef("waza token list prints the ids", "unknown token %q", id)
	case c.Bool("json"):
		return c.Stdout.JSON(map[string]any{"id": id})
	}
	fmt.Fprintf(c.Stdout, "revoked %s\n", output.Clean(id))
	return nil
}
