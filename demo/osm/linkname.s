// Functions without a body, which the linker finds elsewhere (webhook.go), need
// an assembly file in their package; it has nothing to say.
