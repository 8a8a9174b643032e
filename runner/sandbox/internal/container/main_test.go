package container_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"waza/runner/sandbox/internal/container"
)

// connectArgument makes this program one that prints what it receives from a socket, the next
// argument.
const connectArgument = "connect"

func TestMain(m *testing.M) {
	container.Main()
	if len(os.Args) == 3 && os.Args[1] == connectArgument {
		if err := connect(os.Args[2]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func connect(socket string) error {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = io.Copy(os.Stdout, conn)
	return err
}
