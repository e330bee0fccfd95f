package kube

import (
	"fmt"
	"runtime/debug"
)

// PanicError is a panic that Catch turned into an error.
type PanicError struct {
	// Value is what the code panicked with.
	Value any
	// Stack is the goroutine's stack at the panic, as debug.Stack prints it.
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Catch runs f and returns a panic in it as a *PanicError. Use it around the
// processing of one object, which must not end the process, as the crash handler of
// client-go would.
func Catch(f func()) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	f()
	return nil
}
