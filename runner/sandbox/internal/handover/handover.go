// Package handover passes messages and open files between processes through a unix socket. A process
// in a sandbox uses it to hand its listeners over to this one: [Listen], [Send], [Receive].
package handover

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Messages have a header of 8 bytes, which are the lengths of the text and of the list of files, and a
// JSON text. The files travel with the header.
const (
	headerBytes = 8
	// maxMessage limits a text in bytes. Linux limits the arguments and the environment of a
	// program to 6 MiB by default.
	maxMessage = 32 << 20
	// maxFiles is the number of files that Linux takes in one message.
	maxFiles = 253
)

// Send sends a message with files.
func Send(conn *net.UnixConn, message any, files ...int) error {
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}
	return sendWith(conn, message, len(files), rights)
}

func sendWith(conn *net.UnixConn, message any, files int, control []byte) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(text) > maxMessage || files > maxFiles {
		return fmt.Errorf("a message has %d bytes and %d files; at most %d and %d are possible", len(text), files, maxMessage, maxFiles)
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

// Receive reads one message. sender is the process in whose name it was sent; 0 if it is unknown.
// The caller closes the files, also after an error.
func Receive(conn *net.UnixConn, message any) (files []*os.File, sender int, err error) {
	var header [headerBytes]byte
	control := make([]byte, unix.CmsgSpace(4*maxFiles)+senderSpace)
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

// filesOf returns the files in a control message; none if it contains something else.
func filesOf(message *unix.SocketControlMessage) []*os.File {
	fds, err := unix.ParseUnixRights(message)
	if err != nil {
		return nil
	}
	var files []*os.File
	for _, fd := range fds {
		unix.CloseOnExec(fd)
		files = append(files, os.NewFile(uintptr(fd), "received"))
	}
	return files
}

// CloseAll closes files.
func CloseAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// Numbers returns the descriptors of files.
func Numbers(files []*os.File) []int {
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	return fds
}

// ConnOf returns the connection of a socket, and closes the file.
func ConnOf(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		conn.Close()
		return nil, errors.New("not a unix socket")
	}
	return unixConn, nil
}

// Listen opens sockets in the network of this process, to hand them over: each address has the form
// tcp:HOST:PORT or udp:HOST:PORT. The caller closes them, also after an error.
func Listen(addresses []string) (sockets []*os.File, err error) {
	for _, a := range addresses {
		network, address, _ := strings.Cut(a, ":")
		var socket interface{ File() (*os.File, error) }
		if network == "udp" {
			addr, rerr := net.ResolveUDPAddr(network, address)
			if rerr != nil {
				return sockets, rerr
			}
			c, lerr := net.ListenUDP(network, addr)
			if lerr != nil {
				return sockets, lerr
			}
			defer c.Close()
			socket = c
		} else {
			l, lerr := net.Listen("tcp4", address)
			if lerr != nil {
				return sockets, lerr
			}
			defer l.Close()
			socket = l.(*net.TCPListener)
		}
		f, err := socket.File()
		if err != nil {
			return sockets, err
		}
		sockets = append(sockets, f)
	}
	return sockets, nil
}
