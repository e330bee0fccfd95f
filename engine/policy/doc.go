// Package policy decides, in no mesh's own words, what shall be true of every
// mesh and every service: which VirtualMesh holds which mesh, which service is
// federated where, which TrafficPolicies and AccessPolicies are in force on it,
// and what follows. It reads an Inventory of what was discovered and the
// custom resources that users wrote, and produces a snapshot.Plan.
//
// The parts of a plan are functions of explicit inputs, so that a Planner may
// keep a part while its inputs are the same objects as before.
package policy
