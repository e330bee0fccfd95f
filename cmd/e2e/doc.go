// Package e2e holds the test that drives the real binary against real clusters,
// as a user would: everything that the README promises of the main job.
package e2e
