package pki

import (
	"crypto/x509"
	"fmt"
	"time"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

// Life is how long a certificate lives.
type Life struct {
	// Lasts is how long from now on. Certificates count in seconds.
	Lasts time.Duration
	// Backdate is how long before now the life begins, for machines whose clocks are slow; an hour is usual.
	Backdate time.Duration
}

// span is a Life at a time.
type span struct {
	notBefore, notAfter time.Time
	// cutBy is the certificate that the span was cut to.
	cutBy *x509.Certificate
}

// within places a Life at a time, inside those of all certificates above.
func (l Life) within(object string, now time.Time, above Chain) (span, error) {
	if now.IsZero() || l.Lasts < time.Second || l.Backdate < 0 {
		return span{}, &Error{
			Object: object, Reason: Unsupported, Problem: fmt.Sprintf("cannot live %s from %s on, backdated by %s", l.Lasts, stamp(now), l.Backdate),
			Next: "give it a lifetime, for example ttlDays: 365",
		}
	}
	if err := checkTimes(above, now); err != nil {
		return span{}, err
	}
	s := span{notBefore: now.Add(-l.Backdate).Truncate(time.Second), notAfter: now.Add(l.Lasts).Truncate(time.Second)}
	for _, cert := range above {
		if cert.NotBefore.After(s.notBefore) {
			s.notBefore = cert.NotBefore
		}
		if cert.NotAfter.Before(s.notAfter) {
			s.notAfter, s.cutBy = cert.NotAfter, cert
		}
	}
	return s, nil
}

// RenewAt is when a certificate is to be renewed: when ratio of its life is left. 0 means 0.10, the original's default of
// secretRotationGracePeriodRatio; a ratio outside 0 to 1 is an error, because it would renew always or never.
func RenewAt(cert *x509.Certificate, ratio float64) (time.Time, error) {
	if ratio == 0 {
		ratio = certificatesv1.DefaultSecretRotationGracePeriodRatio
	}
	if !(ratio > 0 && ratio < 1) { // also if it is no number
		return time.Time{}, &Error{
			Object: name(cert), Reason: Unsupported, Problem: fmt.Sprintf("cannot be renewed when %v of its life is left", ratio),
			Next: "set secretRotationGracePeriodRatio to more than 0 and less than 1, for example 0.1",
		}
	}
	return cert.NotAfter.Add(-time.Duration(ratio * float64(cert.NotAfter.Sub(cert.NotBefore)))), nil
}

// nearClock: a certificate that is off by less is probably right, and a clock wrong.
const nearClock = 2 * time.Hour

// checkTimes says which certificate of a chain is not valid at a time.
func checkTimes(chain Chain, at time.Time) error {
	for _, cert := range chain {
		if by := at.Sub(cert.NotAfter); by > 0 {
			next := "renew it"
			if by <= nearClock {
				next += ", or correct the clock if it is fast: compare it with another machine's (date -u)"
			}
			return &Error{
				Object: name(cert), Reason: Expired, By: by, Next: next,
				Problem: fmt.Sprintf("expired at %s, %s before %s", stamp(cert.NotAfter), rounded(by), stamp(at)),
			}
		}
		if by := cert.NotBefore.Sub(at); by > 0 {
			next := "wait, or replace it by one that is valid now"
			if by <= nearClock {
				next = "correct the clock that is wrong, this one (slow) or that of the signer (fast): compare them (date -u)"
			}
			return &Error{
				Object: name(cert), Reason: NotYetValid, By: by, Next: next,
				Problem: fmt.Sprintf("is valid from %s on, %s after %s", stamp(cert.NotBefore), rounded(by), stamp(at)),
			}
		}
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// rounded is a duration for people.
func rounded(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	case d >= time.Second:
		return d.Truncate(time.Second).String()
	}
	return d.String()
}
