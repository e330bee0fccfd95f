//go:build !unix

package proc

import "os/exec"

func ownSession(*exec.Cmd) error { return ErrUnsupported }

func killGroup(int) error { return ErrUnsupported }

func pauseGroup(int) error { return ErrUnsupported }

func resumeGroup(int) error { return ErrUnsupported }

func startOf(int) (string, error) { return "", ErrUnsupported }
