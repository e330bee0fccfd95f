package pump

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestStandstills(t *testing.T) {
	t.Parallel()
	s, start := &Standstills{}, time.Unix(1000, 0)
	s.Note(errors.New("it broke"), start)
	times, _, _ := s.Count(start)
	assert.Zero(t, times)
	for n := range 3 {
		s.Note(fmt.Errorf("wrapped: %w", &Standstill{Head: fmt.Sprint("object ", n)}), start.Add(time.Duration(n)*time.Minute))
	}
	times, since, head := s.Count(start.Add(9 * time.Minute))
	assert.Equal(t, 3, times)
	assert.Equal(t, start, since)
	assert.Equal(t, "object 2", head)
	times, since, _ = s.Count(start.Add(10 * time.Minute))
	assert.Equal(t, 2, times)
	assert.Equal(t, start.Add(time.Minute), since)
	for range 1000 {
		s.Note(&Standstill{}, start.Add(time.Hour))
	}
	times, _, _ = s.Count(start.Add(time.Hour))
	assert.Equal(t, maxStandstills, times)
	assert.Equal(t, ReasonStuck, ReasonOf(&Standstill{What: "x"}))
}
