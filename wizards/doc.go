// Package wizards asks a person for what a policy or a VirtualMesh needs, shows
// what each answer means for what was discovered, and makes the manifest. It
// sees values only: what was discovered comes in as a snapshot.State, and what
// shall be done with the manifest goes out as an Outcome.
//
// An answer is what the flag of the same name would have: a Form turns flags
// into a manifest and a manifest into flags, so that what was asked for can be
// said again as a command, byte for byte the same.
package wizards
