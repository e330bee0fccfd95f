//go:build race

package shard

// raced: the race detector is on.
const raced = true
