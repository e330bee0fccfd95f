package explain

import (
	"math"
	"strconv"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// grouped is a number with commas between its thousands.
func grouped(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// counting counts things: "1,400 requests".
func counting(n uint64, word string) string {
	_, things, _ := strings.Cut(snapshot.Count(int(min(n, 2)), word), " ")
	return grouped(n) + " " + things
}

// percent is the share of a part, 0 to 100.
func percent(part, all uint64) float64 {
	if all == 0 {
		return 0
	}
	return 100 * float64(part) / float64(all)
}

// shareText is the share of a part as text. Less than all is never said as 100%, and more than nothing never as 0%.
func shareText(part, all uint64) string {
	share := percent(part, all)
	switch {
	case part > 0 && share < 0.1:
		return "<0.1%"
	case part < all && share > 99.9:
		return ">99.9%"
	}
	return snapshot.Percent(share)
}

// chance is the probability that of n draws, each of which succeeds with probability p, as many succeed as k, or a count that is at least as
// far from the expected one on that side, doubled for both sides: the exact binomial test with two tails, at most 1.
func chance(k, n uint64, p float64) float64 {
	switch {
	case p <= 0 && k == 0, p >= 1 && k == n:
		return 1
	case p <= 0, p >= 1, k > n:
		return 0
	}
	logFactorial := func(n uint64) float64 {
		v, _ := math.Lgamma(float64(n) + 1)
		return v
	}
	term := math.Exp(logFactorial(n) - logFactorial(k) - logFactorial(n-k) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
	sum, odds := term, p/(1-p)
	// Away from what is expected, each term is smaller than the one before.
	if float64(k) > float64(n)*p {
		for i := k; i < n && term > sum*1e-12; i++ {
			term *= float64(n-i) / float64(i+1) * odds
			sum += term
		}
	} else {
		for i := k; i > 0 && term > sum*1e-12; i-- {
			term *= float64(i) / float64(n-i+1) / odds
			sum += term
		}
	}
	return min(1, 2*sum)
}

// trendCells are the heights of a trend, from nothing to the most.
var trendCells = []rune(" ▁▂▃▄▅▆▇█")

// trendText is a trend as a sparkline: a cell for each minute, of which the highest has the most requests. Empty without requests.
func trendText(trend []uint64) string {
	most := uint64(0)
	for _, n := range trend {
		most = max(most, n)
	}
	if most == 0 {
		return ""
	}
	cells := make([]rune, len(trend))
	for i, n := range trend {
		at := 0
		if n > 0 { // what is more than nothing is seen
			at = 1 + int(float64(n)/float64(most)*float64(len(trendCells)-2)+0.5)
		}
		cells[i] = trendCells[min(at, len(trendCells)-1)]
	}
	return string(cells)
}
