package demo

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// enoughWatches is an error unless the user can have so many more instances of inotify. Programs that get none wait for
// changes of files that they never hear of; few of them say so (man 7 inotify, /proc/sys/fs/inotify/max_user_instances).
func enoughWatches(needed int) error {
	var got []int
	defer func() {
		for _, fd := range got {
			_ = unix.Close(fd) // nothing was watched
		}
	}()
	for range needed {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if errors.Is(err, unix.EMFILE) {
			limit, _ := os.ReadFile("/proc/sys/fs/inotify/max_user_instances") // an error leaves it out
			return fmt.Errorf("instances of inotify: %d are needed, and you can have %d more (fs.inotify.max_user_instances is %s); "+
				"end what watches files, such as another demo, or allow more: sudo sysctl fs.inotify.max_user_instances=512",
				needed, len(got), strings.TrimSpace(string(limit)))
		}
		if err != nil {
			return nil // there is none here, so that nobody needs it
		}
		got = append(got, fd)
	}
	return nil
}
