package handover

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// senderSpace is the space of the sender in the control messages of a message, in bytes.
var senderSpace = unix.CmsgSpace(unix.SizeofUcred)

// SendFrom sends a message with files in the name of another process, whose id the receiver gets as
// a number of its own namespace. That needs a capability.
func SendFrom(pid int, conn *net.UnixConn, message any, files ...int) error {
	control := unix.UnixCredentials(&unix.Ucred{Pid: int32(pid), Uid: uint32(os.Geteuid()), Gid: uint32(os.Getegid())})
	if len(files) > 0 {
		control = append(control, unix.UnixRights(files...)...)
	}
	return sendWith(conn, message, len(files), control)
}

// parts returns the files and the sender in the control messages of a message.
func parts(control []byte) (files []*os.File, sender int, err error) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, 0, err
	}
	for i := range messages {
		if cred, err := unix.ParseUnixCredentials(&messages[i]); err == nil {
			sender = int(cred.Pid)
			continue
		}
		files = append(files, filesOf(&messages[i])...)
	}
	return files, sender, nil
}
