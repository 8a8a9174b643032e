package fleet

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/runner/fleet/seal"
)

// keyCommand returns waza fleet key.
func (p Program) keyCommand() *cli.Command {
	return &cli.Command{
		Name: "key", Usage: "make a key to sign orders", ArgsUsage: "FILE",
		Description: `Writes the seed of a new key to FILE, which only you can read, and prints its public
key. Runs sign their orders with the seed: sign=FILE in the address of their fleet.
Workers that list the public key in --trust do these orders, and no unsigned ones. It
never replaces an existing file. docs/fleet-security.md describes what signatures protect.

Examples:
  waza fleet key owner.nk
  waza fleet key --public owner.nk >> owners.keys
  waza run --fleet 'nats://nats.example:4222?sign=owner.nk'
  waza worker --fleet nats://nats.example:4222 --trust owners.keys

Exit codes: 0 when done, 2 for wrong usage or a file that exists, 3 when the file cannot
be written or read.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "public", Usage: "print the public key of the seed in FILE, and make no key"},
			flags.JSON("print the public key as JSON"),
		},
		Action: flags.AtMost(1, p.key),
	}
}

func (p Program) key(c *cli.Context) error {
	file := c.Args().First()
	if file == "" {
		return exit.Usagef("waza fleet key owner.nk", "FILE is required: the file for the seed")
	}
	public, err := publicKey(file, c.Bool("public"))
	if errors.Is(err, fs.ErrExist) {
		return exit.Usagef("waza fleet key --public "+file+" prints its public key", "%v", err)
	}
	if err != nil {
		return exit.New(exit.Error, err, "")
	}
	if c.Bool("json") {
		return p.Stdout.JSON(struct {
			File   string `json:"file"`
			Public string `json:"publicKey"`
		}{file, public})
	}
	_, err = fmt.Fprintln(p.Stdout, public)
	return err
}

// publicKey returns the public key of a seed in a file. It makes the file unless it exists.
func publicKey(file string, exists bool) (string, error) {
	if !exists {
		return seal.NewKey(file)
	}
	s, err := seal.ReadSigner(file)
	if err != nil {
		return "", err
	}
	return s.Public(), nil
}
