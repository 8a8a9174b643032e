package container

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"waza/runner/sandbox/internal/handover"
)

// start opens the listeners that waza outside asks for, and becomes the program.
func start(entrance string, args []string) error {
	if err := handOver(filepath.Join(entrance, startSocket)); err != nil {
		return err
	}
	path, err := exec.LookPath(args[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return err
	}
	return fmt.Errorf("%s: %w", args[0], syscall.Exec(path, args, os.Environ()))
}

// handOver hands over the listeners. It returns when they are served.
func handOver(socket string) error {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return fmt.Errorf("waza outside of the container cannot be reached: %w", err)
	}
	defer conn.Close()
	var order startOrder
	files, _, err := handover.Receive(conn, &order)
	handover.CloseAll(files)
	if err != nil {
		return err
	}
	sockets, err := handover.Listen(order.Listen)
	defer handover.CloseAll(sockets)
	if err != nil {
		_ = handover.Send(conn, &startAnswer{Fault: err.Error()}) // the caller reports it as well
		return err
	}
	if err := handover.Send(conn, &startAnswer{}, handover.Numbers(sockets)...); err != nil {
		return err
	}
	files, _, err = handover.Receive(conn, &order)
	handover.CloseAll(files)
	if err == nil && !order.Go {
		err = errors.New("waza outside of the container refused the start")
	}
	return err
}
