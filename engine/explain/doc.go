// Package explain answers questions about one translation: what is this mesh,
// who shifts the traffic of this service, who may call it, and why. Answers are
// values; command line, JSON, dashboard and golden files paint the same ones.
package explain
