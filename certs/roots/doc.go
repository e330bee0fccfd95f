// Package roots keeps the root certificates of VirtualMeshes, as Secrets of the management
// cluster, in `meshctl serve`. It passes the certificates to the engine, and the keys to the
// issuer. Keys are in no log, error, status or Input.
//
// # Who writes what
//
// Roots are for each VirtualMesh with spec.mtlsConfig.shared.
//
//   - A generated root is a Secret in the management plane's namespace, of type
//     certificates.mesh.gloo.solo.io/generated_signing_cert with the keys root-cert.pem and key.pem, as in Gloo Mesh
//     1.x. The first is called NAME.NAMESPACE after the VirtualMesh. One that is there counts if it is
//     recorded (record.go), or an administrator accepts it, whoever made it. Those that follow it in a rotation have 64 hexadecimal digits more, which no
//     namespace has, so that no two VirtualMeshes share a name. The store makes and deletes them and
//     never changes one. It deletes only those with the labels of its management plane.
//   - A user's own root is a Secret that the VirtualMesh names, and that is in the namespace of the
//     VirtualMesh or names it by the annotation trust.multicluster.solo.io/virtual-mesh: who edits a
//     VirtualMesh cannot have it signed by any key that the management plane can read. It is read by
//     name only, and never written. Of each root that it has had the store keeps the certificate, without the
//     key, in a Secret of its own, before anybody is asked to trust it. So it can be verified
//     against after the user has replaced or deleted it.
//   - The root of a HashiCorp Vault is at the end of the chain of the CA that signs there. It is read
//     every minute, without a login, and its certificate is kept like that of a user's root. While
//     Vault cannot be read, what is known stays.
//
// # Which root signs
//
// The newest usable generated root, the one in the user's Secret, or that of the Vault. The annotation
// trust.multicluster.solo.io/root of the VirtualMesh names another, as long as its key is there.
// A new root is generated if the annotation trust.multicluster.solo.io/rotate asks for it, if
// the options of the VirtualMesh ask for another organisation, size of key or life, or if the
// one that signs will not live long enough (rotate.go). Nothing is generated while the trust is
// paused or another root is named. What cannot be used is a Problem with the next step.
//
// # When roots go
//
// A root leaves when the Plan has listed it as unused for some minutes and it does not sign.
// The roots of a VirtualMesh that is deleted stay for a while: it may be created again. They are
// deleted when the API server says that there is no such VirtualMesh.
//
// # Crashes
//
// Nothing is stored about what is under way. The name of a new root follows from the one before,
// so that whoever makes it twice gets it once.
//
//	store.go    what is done about all VirtualMeshes, again at each change
//	decide.go   the roots of one VirtualMesh, as a function of what is known
//	rotate.go   when another root is to be made
//	make.go     making it
//	drop.go     deleting what is not used any more
//	record.go   what may be trusted: roots, and the trust domains of members
//	secret.go   the Secrets: names, contents
//	reader.go   watching them
//	vault.go    the root of a Vault
package roots
