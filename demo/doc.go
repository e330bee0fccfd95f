// Package demo shows meshctl at work on this machine: two clusters with Istio
// and a small application, registered and joined, with policies in force.
//
// It drives the meshctl binary as a person would and imports nothing of the
// engine. Its own knowledge of Kubernetes is in package kube, the clusters
// themselves come from a Runtime.
package demo
