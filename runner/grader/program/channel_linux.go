package program

import (
	"net"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// A channel carries the verdict of a program from its first process to waza. The kernel adds the
// id of the sender to each message, so programs that the first process starts can inherit the
// channel, but their messages do not count.
type channel struct {
	conn    *net.UnixConn
	program *os.File // the end of the program; closed when the program has started
	read    sync.WaitGroup

	// Set when read is done.
	verdict string
	others  int // number of messages of other processes
}

// openChannel opens a channel. The caller calls start or close.
func openChannel() (*channel, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "verdict"), os.NewFile(uintptr(fds[1]), "verdict")
	defer ours.Close()
	err = os.NewSyscallError("setsockopt", unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1))
	var conn net.Conn
	if err == nil {
		conn, err = net.FileConn(ours)
	}
	if err != nil {
		theirs.Close()
		return nil, err
	}
	return &channel{conn: conn.(*net.UnixConn), program: theirs}, nil
}

// start reads the messages of a process until end is called.
func (c *channel) start(pid int) {
	c.program.Close()
	c.read.Go(func() {
		text, rights := make([]byte, programOutput), make([]byte, unix.CmsgSpace(unix.SizeofUcred))
		for {
			n, m, _, _, err := c.conn.ReadMsgUnix(text, rights)
			if err != nil || n == 0 && m == 0 {
				return // all other ends are closed, or end was called
			}
			if sender(rights[:m]) != pid {
				c.others++
				continue
			}
			c.verdict = string(text[:n])
		}
	})
}

// sender returns the process id in the control messages of a message; 0 if it is unknown.
func sender(rights []byte) int {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return 0
	}
	for i := range messages {
		if cred, err := unix.ParseUnixCredentials(&messages[i]); err == nil {
			return int(cred.Pid)
		}
	}
	return 0
}

// end returns the last verdict of the program, which has ended, and a note about messages of
// other processes. Both can be empty.
func (c *channel) end() (verdict, note string) {
	_ = c.conn.CloseRead() // messages that were sent remain
	c.read.Wait()
	c.close()
	if c.others > 0 {
		note = "another process than the grader's first one wrote to WAZA_RESULT_FD; that does not count"
	}
	return strings.TrimSpace(c.verdict), note
}

func (c *channel) close() {
	c.conn.Close()
	c.program.Close()
}
