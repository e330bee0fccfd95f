// Package pki makes, signs, reads and verifies the certificates of meshes. It is pure: it reads no clock, file or
// network; the time is an argument.
//
// A mesh's trust is three certificates long:
//
//	root           self-signed; its key stays in the management cluster     NewRoot, ReadAuthority
//	intermediate   of one mesh; its key stays in the mesh's cluster         NewRequest, ReadRequest, Authority.Sign
//	workload       signed by istiod with the intermediate                   Verify
//
// Gateways between meshes that keep their own roots have a certificate that a root of their VirtualMesh signs itself:
//
//	gateway        of the gateways of one mesh; its key stays there         Authority.SignLeaf, GatewayTLS
//
// A cluster makes a Key and a request; whoever holds the root's Authority signs it, for the identities in a Grant and no
// others. The cluster puts the result into istiod's Secret cacerts (CACerts), beside the Bundle of roots that its
// workloads trust. While a root is exchanged, the Bundle is the Union of both roots.
//
// # Rules
//
//   - Nothing outlives a certificate above it, or begins before one: lives are cut to fit, and Issued says so.
//   - A certificate is for the key that signed the request, and for nothing else that the request asks for: of its
//     extensions only the names are read, and each of them must be in the Grant.
//   - What Sign returns has passed Verify.
//   - No Key prints its private part: not with any verb of fmt, in JSON, YAML or logs, nor to a dumper that follows
//     pointers. Only Key.PEM and the data of Secrets have it.
//   - Every error is or wraps an *Error: the object, what is wrong with it (a Reason), and the next step. Callers put
//     the Kubernetes object in front. No error quotes what it could not read.
//
// # Name constraints
//
// An intermediate can be restricted to SPIFFE identities of its trust domains (Grant.TrustDomains), so that a stolen
// intermediate cannot speak for other meshes. The extension is critical: a verifier that does not know it must refuse.
// What verifiers do with constraints on URIs:
//
//   - Go (crypto/x509; istiod, meshctl) honours them. It takes "example.org" for that host and all hosts below it.
//   - BoringSSL (Envoy; crypto/x509/v3_ncons.cc, nc_uri) and OpenSSL honour them. They take "example.org" for that host
//     only. Envoy 1.40 and OpenSSL 3.0 were seen to.
//   - rustls (ztunnel, thus ambient mode) does not know them: rustls-webpki 0.103.12 refuses every certificate with a
//     SPIFFE identity below such an intermediate, older ones ignore the constraint (RUSTSEC-2026-0098). Leave
//     TrustDomains empty there.
//
// Verify is as strict as the stricter of the first two. Constraints are not about DNS names: istiod's own serving
// certificate is not affected. Two meshes of one trust domain are not told apart by them.
//
// # Entropy
//
// Functions take a reader, usually crypto/rand.Reader. Serial numbers come from it alone. Since Go 1.26 the standard
// library reads keys and ECDSA signatures from the system's source whatever reader it is given, unless
// GODEBUG=cryptocustomrand=1 is set (crypto/internal/rand.CustomReader). A fixed reader therefore does not make results
// repeatable.
//
// # Files
//
//	key.go        Key: make, read, write; what it shows of itself
//	hosts.go      SPIFFE identities and DNS names: what is well-formed
//	request.go    certificate signing requests
//	sign.go       Authority, NewRoot, Sign
//	life.go       how long a certificate lives, and when it is renewed
//	chain.go      certificates in PEM; Chain, from a certificate to its root
//	bundle.go     Bundle: a set of roots
//	secret.go     the data of Secrets: a root's, and istiod's cacerts
//	gateway.go    the data of the Secret of gateways
//	verify.go     Verify: whether a chain is trusted at a time for a purpose
//	names.go      the part of Verify that is about names
//	errors.go     Error and the Reasons
//	pem.go        the one reader of PEM, with its bounds
package pki
