// Package v1 (certificatesv1) has the kinds of certificates.mesh.gloo.solo.io/v1: how a mesh's intermediate CA is asked
// for, signed and put to use. IssuedCertificate, CertificateRequest and PodBounceDirective live on the managed cluster;
// CommonCertOptions and VaultCA are also part of a VirtualMesh.
//
// +kubebuilder:object:generate=true
// +groupName=certificates.mesh.gloo.solo.io
package v1
