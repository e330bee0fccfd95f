package app

import "golang.org/x/sys/unix"

// mark marks the packets of a socket. See socket(7), SO_MARK.
func mark(fd uintptr, value int) error {
	return unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, value)
}
