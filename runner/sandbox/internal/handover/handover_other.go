//go:build !linux

package handover

import (
	"os"

	"golang.org/x/sys/unix"
)

const senderSpace = 0

// parts returns the files in the control messages of a message.
func parts(control []byte) (files []*os.File, sender int, err error) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, 0, err
	}
	for i := range messages {
		files = append(files, filesOf(&messages[i])...)
	}
	return files, 0, nil
}
