//go:build !linux

package app

import "errors"

func mark(uintptr, int) error { return errors.New("only Linux marks packets") }
