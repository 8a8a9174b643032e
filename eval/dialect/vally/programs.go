package vally

import (
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/dialect"
)

// runCommand runs a command in the workspace. Without args it is a command of the shell.
func (c *check) runCommand() {
	command, args := c.command("command"), c.texts("args")
	if command == nil {
		return
	}
	if c.option("args") == nil {
		c.config.Set("command", dialect.Scalar(command, "sh"))
		args = dialect.List(command, dialect.Scalar(command, "-c"), dialect.Scalar(command, command.Value))
	} else {
		c.config.Set("command", dialect.Scalar(command, command.Value))
	}
	c.config.Set("args", args)
	expect := dialect.NewMap(c.options)
	expect.Set("exit_code", c.option("expected_exit_code"))
	for _, key := range []string{"stdout_contains", "stderr_contains", "stdout_matches", "stdout_not_matches"} {
		expect.Set(key, c.texts(key))
	}
	expect.Set("syntax", dialect.Scalar(c.node, "javascript"))
	c.config.Set("expect", expect.Node)
	c.inWorkspace()
}

// command returns an option with a command.
func (c *check) command(key string) *yaml.Node {
	n := c.option(key)
	if dialect.TextOf(n) == "" {
		c.cannot(firstOf(n, c.node), "needs a text as %s", key)
		return nil
	}
	return n
}

// The variables of Vally's program.
const (
	workspaceVariable = "EVALUATE_WORKSPACE"
	inputVariable     = "EVALUATE_GRADER_INPUT"
)

// program runs a program that decides. It finds the workspace and a file about the trial through variables.
func (c *check) program() {
	command, args := c.command("program"), c.texts("args")
	if command == nil {
		return
	}
	for _, p := range dialect.Pairs(c.option("env")) {
		if key := p.Key.Value; strings.EqualFold(key, workspaceVariable) || strings.EqualFold(key, inputVariable) {
			c.cannot(p.Key, "sets %s, whose value is not its own", key)
		}
	}
	if c.flag("shell", false) {
		words := []*yaml.Node{dialect.Scalar(command, "-c"), dialect.Scalar(command, command.Value+` "$@"`), dialect.Scalar(command, "sh")}
		args = dialect.List(command, append(words, dialect.Items(args)...)...)
		command = dialect.Scalar(command, "sh")
	}
	c.config.Set("command", dialect.Scalar(command, command.Value))
	c.config.Set("args", args)
	c.inWorkspace()
	c.config.Set("workspace", dialect.Scalar(c.node, workspaceVariable))
	c.config.Set("strict", dialect.Scalar(c.node, true))
	c.config.Set("trajectory", dialect.Scalar(c.node, inputVariable))
}

// inWorkspace sets how a program starts: in the workspace, or in a folder of it, and with the network.
func (c *check) inWorkspace() {
	c.kind = "program"
	c.config.Set("trust_workspace", dialect.Scalar(c.node, true))
	c.config.Set("network", dialect.Scalar(c.node, true))
	if n := c.option("sub_path"); n != nil {
		c.config.Set("sub_path", dialect.Scalar(n, dialect.TextOf(n)))
	}
	limit := 60.0 // seconds, the default of Vally's program
	if n := c.option("timeout"); n != nil {
		d, err := durationOf(n)
		if err != nil {
			c.cannot(n, "has a limit that waza does not know: timeout %v", err)
		}
		limit = d.Seconds()
	}
	c.config.Set("timeout", dialect.Scalar(c.node, limit))
	env := dialect.NewMap(c.node)
	for _, p := range dialect.Pairs(c.option("env")) {
		if p.Value == nil || p.Value.Kind != yaml.ScalarNode {
			c.cannot(p.Key, "needs texts in env, got %s", describe(p.Value))
			continue
		}
		env.Set(p.Key.Value, dialect.Scalar(p.Value, p.Value.Value))
	}
	if env.Len() > 0 {
		c.config.Set("env", env.Node)
	}
}
