package policy

import (
	"fmt"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// problem is an issue still without the object that has it.
func problem(code snapshot.Code, severity snapshot.Severity, hint, format string, args ...any) snapshot.Issue {
	return snapshot.Issue{Code: code, Severity: severity, Hint: hint, Message: fmt.Sprintf(format, args...)}
}

// failure is a problem that keeps what was asked for from being in force.
func failure(code snapshot.Code, hint, format string, args ...any) snapshot.Issue {
	return problem(code, snapshot.Error, hint, format, args...)
}

// warning is a problem with which what was asked for is in force all the same.
func warning(code snapshot.Code, hint, format string, args ...any) snapshot.Issue {
	return problem(code, snapshot.Warning, hint, format, args...)
}

// on puts an issue on an object, as far as it matters to target.
func on(ref, target snapshot.Ref, issue snapshot.Issue) snapshot.Issue {
	issue.Ref, issue.Target = ref, target
	return issue
}

// failed reports whether any issue is an error.
func failed(issues []snapshot.Issue) bool {
	for i := range issues {
		if issues[i].Severity == snapshot.Error {
			return true
		}
	}
	return false
}
