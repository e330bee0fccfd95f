// Package outage makes outages in a demo, and compares what meshctl says of them with what requests get.
package outage
