package cmdutil

import "errors"

// Demo is the demo that runs on this machine, which a command uses when it is told to.
type Demo struct {
	// Use is --demo: whatever reads a kubeconfig reads that of the demo.
	Use bool
	// Find returns the kubeconfig file of the demo, or an error if none runs. Nil looks for none.
	Find func() (string, error)
	// Server returns the URL of the metrics of the demo's meshctl serve; empty if there is none. Nil looks for none.
	Server func() string
}

// server is the URL of the metrics of the demo's meshctl serve; empty if the demo is not to be used.
func (d *Demo) server() string {
	if !d.Use || d.Server == nil {
		return ""
	}
	return d.Server()
}

// kubeconfig is the file to read where a flag names one, or "" for the usual places.
func (d *Demo) kubeconfig(flag string) (string, error) {
	switch {
	case !d.Use:
		return flag, nil
	case flag != "":
		return "", FlagErrorf("--demo and --kubeconfig cannot be used together")
	case d.Find == nil:
		return "", UnreachableErrorf("this program looks for no demo")
	}
	file, err := d.Find()
	if err != nil {
		return "", UnreachableErrorf("%w", err)
	}
	return file, nil
}

// offer names the demo in an error that says that there is no kubeconfig.
func (d *Demo) offer(err error) error {
	var none *noContextError
	if errors.As(err, &none) && d.Find != nil {
		none.demo, _ = d.Find() // no demo: nothing to offer
	}
	return err
}
