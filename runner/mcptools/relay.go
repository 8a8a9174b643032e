package mcptools

import (
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// argument is the hidden command of waza that runs the relay.
const argument = "mcp-tools"

// Main makes this program usable as the MCP server that agents start. A program that calls
// [Serve] calls Main first in main; a test binary does so in TestMain. If the process was
// started with the arguments mcp-tools SOCKET, Main copies data until the end and exits.
// Otherwise it returns at once.
func Main() {
	if len(os.Args) != 3 || os.Args[1] != argument {
		return
	}
	if err := relay(os.Args[2], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "waza mcp-tools:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// lastWords is the time limit for answers after the agent has closed its end.
const lastWords = 5 * time.Second

// relay copies between the streams and a socket. It returns when the server closes the
// connection, which happens at the latest when the server's process ends. It also returns when
// in has ended and the server has sent its last data. A read of in can still be running then.
func relay(socket string, in io.Reader, out io.Writer) error {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return fmt.Errorf("the server has ended: %w", err)
	}
	defer conn.Close()
	go func() {
		_, _ = io.Copy(conn, in)
		_ = conn.(*net.UnixConn).CloseWrite()
		_ = conn.SetReadDeadline(time.Now().Add(lastWords))
	}()
	if _, err = io.Copy(out, conn); err != nil && !os.IsTimeout(err) {
		return err
	}
	return nil
}
