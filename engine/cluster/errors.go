package cluster

import (
	"errors"
	"fmt"
	"time"
)

// KubeconfigError says why a stored kubeconfig is not used. Its text holds
// nothing of the kubeconfig's values.
type KubeconfigError struct{ Reason string }

func (e *KubeconfigError) Error() string {
	return "the stored kubeconfig cannot be used: " + e.Reason + "; `meshctl cluster register` replaces it"
}

// ErrNoSecret says that a KubernetesCluster names a Secret that does not exist.
var ErrNoSecret = errors.New("its kubeconfig Secret is missing; run `meshctl cluster register` again")

// ExpiredError says that a token has expired and therefore cannot be renewed.
type ExpiredError struct{ At time.Time }

func (e *ExpiredError) Error() string {
	return fmt.Sprintf("the token expired at %s; run `meshctl cluster register` again", e.At.UTC().Format(time.RFC3339))
}
