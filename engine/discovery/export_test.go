package discovery

// MostAccounts is for tests outside of the package.
const MostAccounts = mostAccounts

// IsHashedName is for tests outside of the package.
func IsHashedName(name, of string) bool { return isHashedName(name, of) }
