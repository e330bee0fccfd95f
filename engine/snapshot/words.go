package snapshot

import (
	"slices"
	"strconv"
	"strings"
)

// minFingerprint is how many digits of a fingerprint people see at least.
const minFingerprint = 8

// ShortFingerprints returns a function that shortens each of the fingerprints to as
// many digits as tell all of them apart.
func ShortFingerprints(all []string) func(string) string {
	return ShortFingerprintsFrom(minFingerprint, all)
}

// ShortFingerprintsFrom is ShortFingerprints with a least number of digits.
func ShortFingerprintsFrom(least int, all []string) func(string) string {
	sorted := slices.Sorted(slices.Values(all))
	n := least
	for i := range sorted[:max(len(sorted), 1)-1] {
		a, b := sorted[i], sorted[i+1]
		same := 0
		for same < min(len(a), len(b)) && a[same] == b[same] {
			same++
		}
		if a != b {
			n = max(n, same+1)
		}
	}
	return func(f string) string { return f[:min(len(f), n)] }
}

// Count says "1 policy" or "3 policies".
func Count(n int, word string) string {
	if n != 1 {
		switch {
		case strings.HasSuffix(word, "y"):
			word = strings.TrimSuffix(word, "y") + "ies"
		case strings.HasSuffix(word, "sh"):
			word += "es"
		default:
			word += "s"
		}
	}
	return strconv.Itoa(n) + " " + word
}

// Percent is a share in percent as text, without a fraction if there is none.
func Percent(share float64) string {
	return strconv.FormatFloat(float64(int64(share*10+0.5))/10, 'f', -1, 64) + "%"
}
