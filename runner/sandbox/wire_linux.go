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
	Mount *Mount        `json:",omitempty"` // changes the view of the running program
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

func send(conn *net.UnixConn, message any, files ...int) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(text) > maxMessage || len(files) > maxFiles {
		return fmt.Errorf("a message to a sandbox has %d bytes and %d files; at most %d and %d are possible", len(text), len(files), maxMessage, maxFiles)
	}
	header := make([]byte, headerBytes, headerBytes+len(text))
	binary.BigEndian.PutUint32(header, uint32(len(text)))
	binary.BigEndian.PutUint32(header[4:], uint32(len(files)))
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}
	if n, _, err := conn.WriteMsgUnix(header, rights, nil); err != nil || n < len(header) {
		return errors.Join(err, io.ErrShortWrite)
	}
	_, err = conn.Write(text)
	return err
}

// receive reads one message. The caller closes the files, also after an error.
func receive(conn *net.UnixConn, message any) (files []*os.File, err error) {
	var header [headerBytes]byte
	rights := make([]byte, unix.CmsgSpace(4*maxFiles))
	n, m, _, _, err := conn.ReadMsgUnix(header[:], rights)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, io.EOF
	}
	if files, err = filesOf(rights[:m]); err != nil {
		return files, err
	}
	if _, err := io.ReadFull(conn, header[n:]); err != nil {
		return files, err
	}
	size, count := binary.BigEndian.Uint32(header[:]), binary.BigEndian.Uint32(header[4:])
	if size > maxMessage || int(count) != len(files) {
		return files, fmt.Errorf("a message has %d bytes and %d of %d files", size, len(files), count)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(conn, text); err != nil {
		return files, err
	}
	return files, json.Unmarshal(text, message)
}

func filesOf(rights []byte) (files []*os.File, err error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return files, err
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
