package sandbox

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Messages between this process and a keeper have a header of 8 bytes, which are the lengths of
// the text and of the list of files, and a JSON text. The files travel with the header.
const (
	headerBytes = 8
	// maxMessage limits a text in bytes. Linux limits the arguments and the environment of a
	// program to 6 MiB by default.
	maxMessage = 32 << 20
	// maxFiles is the number of files that Linux takes in one message.
	maxFiles = 253
)

// A request asks a keeper to do something. Exactly one field is set.
type request struct {
	Start *startRequest `json:",omitempty"`
	Kill  bool          `json:",omitempty"` // the program and everything that it started
}

// A startRequest starts a program. Its first file is that of the program's standard input.
type startRequest struct {
	Path   string
	Args   []string
	Env    []string
	Dir    string
	Mounts []Mount
	Limits Limits
	Mark   uint64 // the soft limit of file locks; 0 changes nothing
	// Roots are the directories and files that the program can write.
	Roots []string
	// Listen are addresses in the network of the sandbox, each as tcp:HOST:PORT or
	// udp:HOST:PORT. The reply has a socket for each.
	Listen []string
}

// A reply answers a request, or reports the end of the program.
type reply struct {
	// Fault explains why the request failed, and Errno is its number, if it has one.
	Fault string `json:",omitempty"`
	Errno int    `json:",omitempty"`
	// Ended means that the program and everything that it started have ended.
	Ended  bool            `json:",omitempty"`
	Status unix.WaitStatus `json:",omitempty"`
	// Exceeded names the limit for which the keeper ended the program; empty for none.
	Exceeded string `json:",omitempty"`
}

// send sends a message with files.
func send(conn *net.UnixConn, message any, files ...int) error {
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}
	return sendWith(conn, message, len(files), rights)
}

// sendFrom sends a message with files in the name of another process, whose id the receiver gets as
// a number of its own namespace. That needs a capability.
func sendFrom(pid int, conn *net.UnixConn, message any, files ...int) error {
	control := unix.UnixCredentials(&unix.Ucred{Pid: int32(pid), Uid: uint32(os.Geteuid()), Gid: uint32(os.Getegid())})
	if len(files) > 0 {
		control = append(control, unix.UnixRights(files...)...)
	}
	return sendWith(conn, message, len(files), control)
}

func sendWith(conn *net.UnixConn, message any, files int, control []byte) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(text) > maxMessage || files > maxFiles {
		return fmt.Errorf("a message to a sandbox has %d bytes and %d files; at most %d and %d are possible", len(text), files, maxMessage, maxFiles)
	}
	header := make([]byte, headerBytes, headerBytes+len(text))
	binary.BigEndian.PutUint32(header, uint32(len(text)))
	binary.BigEndian.PutUint32(header[4:], uint32(files))
	if n, _, err := conn.WriteMsgUnix(header, control, nil); err != nil || n < len(header) {
		return errors.Join(err, io.ErrShortWrite)
	}
	_, err = conn.Write(text)
	return err
}

// receive reads one message. sender is the process in whose name it was sent; 0 if it is unknown.
// The caller closes the files, also after an error.
func receive(conn *net.UnixConn, message any) (files []*os.File, sender int, err error) {
	var header [headerBytes]byte
	control := make([]byte, unix.CmsgSpace(4*maxFiles)+unix.CmsgSpace(unix.SizeofUcred))
	n, m, _, _, err := conn.ReadMsgUnix(header[:], control)
	if err != nil {
		return nil, 0, err
	}
	if n == 0 {
		return nil, 0, io.EOF
	}
	if files, sender, err = parts(control[:m]); err != nil {
		return files, sender, err
	}
	return files, sender, read(conn, header, n, len(files), message)
}

// read reads the rest of a message of which n bytes of the header were read.
func read(conn *net.UnixConn, header [headerBytes]byte, n, files int, message any) error {
	if _, err := io.ReadFull(conn, header[n:]); err != nil {
		return err
	}
	size, count := binary.BigEndian.Uint32(header[:]), binary.BigEndian.Uint32(header[4:])
	if size > maxMessage || int(count) != files {
		return fmt.Errorf("a message has %d bytes and %d of %d files", size, files, count)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(conn, text); err != nil {
		return err
	}
	return json.Unmarshal(text, message)
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
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return files, sender, err
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, sender, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
