package snapshot

import "strings"

// Nearest is the known word that is most likely meant by one that is not known: among those that differ from it in few letters, or begin
// with it. It is empty if none is near. Upper and lower case are the same.
func Nearest(word string, known []string) string {
	word = strings.ToLower(word)
	best, least := "", 0
	for _, name := range known {
		lower := strings.ToLower(name)
		begins := len(word) >= minBeginning && strings.HasPrefix(lower, word)
		if !begins && max(len(word)-len(lower), len(lower)-len(word)) > mistakes(word) {
			continue // what differs in length by more differs by more
		}
		d := distance(word, lower)
		if d > mistakes(word) && !begins {
			continue
		}
		if best == "" || d < least {
			best, least = name, d
		}
	}
	return best
}

// minBeginning is how many letters say of which word they are the beginning.
const minBeginning = 3

// mistakes is how many letters a word may differ from the one that was meant: a third of its letters, and two at most.
func mistakes(word string) int { return min(len(word)/3, 2) }

// distance is how many letters must be added, left out, replaced or swapped with their neighbour to make one word the other (optimal
// string alignment).
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range len(b) + 1 {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replaced := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			rows[i][j] = min(replaced, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
