// Package relay replicates sets of objects between an agent and the hub: what is in a cluster to the hub, and what is to stand there
// to its agent. It is the protocol of relayv1 without streams, goroutines and clocks: a Sender and a Receiver take frames and give
// frames.
//
// What holds, however often streams end and whichever side starts again:
//
//   - The receiver ends up with what the sender has, and removes nothing that the sender did not remove, or did not have when all of
//     a kind was compared.
//
//   - After a stream ended, only what differs is sent again.
//
//   - The sender keeps names of what changed and no queue of changes, so that memory is bounded by the objects. The last state wins.
//
//   - One object that the receiver cannot take holds up no other.
//
//     set.go       names and hashes of the objects of one kind, with their digest
//     sender.go    the side that has the objects
//     receiver.go  the side that is to have them
//     together.go  all kinds compared at once, and versions of the protocol
//     kinds.go     kinds as they are named on the wire
package relay
