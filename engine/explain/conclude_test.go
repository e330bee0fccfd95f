package explain

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestConclude(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		outcomes []Verdict
		want     Verdict
		reason   string
	}{
		"nothing":                 {nil, Unreachable, "no service is behind it that the callers can reach"},
		"allowed":                 {[]Verdict{Allowed, Allowed}, Allowed, "ALLOWED"},
		"refused":                 {[]Verdict{Refused, Unreachable}, Refused, "REFUSED"},
		"allowed and refused":     {[]Verdict{Allowed, Refused}, Partly, "cart: REFUSED"},
		"unknown":                 {[]Verdict{Unknown}, Unknown, "UNKNOWN"},
		"allowed, or unknown":     {[]Verdict{Allowed, Unknown}, Unknown, "UNKNOWN"},
		"refused, or unknown":     {[]Verdict{Refused, Unknown}, Unknown, "UNKNOWN"},
		"some of each":            {[]Verdict{Unknown, Allowed, Unreachable}, Partly, "cart: UNREACHABLE"},
		"those that are not idle": {[]Verdict{Allowed, ""}, Allowed, "ALLOWED"},
	} {
		why := &Why{}
		for _, v := range tt.outcomes {
			why.Outcomes = append(why.Outcomes, Outcome{Host: "cart", Verdict: v, Reason: string(v), Idle: v == ""})
		}
		why.conclude()
		assert.Equal(t, tt.want, why.Verdict, name)
		assert.Equal(t, tt.reason, why.Reason, name)
	}
}
