package pki

import (
	"bytes"
	"encoding/pem"
	"fmt"
)

// Bounds of a PEM text.
const (
	// maxText is in bytes; a Secret may have a megabyte. 32 certificates of RSA 4096 fit.
	maxText = 64 << 10
	// maxBlocks is per text.
	maxBlocks = 32
)

// The types of PEM blocks that are read or written.
const (
	typeCertificate = "CERTIFICATE"
	typeRequest     = "CERTIFICATE REQUEST"
	typePKCS1       = "RSA PRIVATE KEY"
	typePKCS8       = "PRIVATE KEY"
	typeSEC1        = "EC PRIVATE KEY"
	typeEncrypted   = "ENCRYPTED PRIVATE KEY"
	typeParameters  = "EC PARAMETERS"
)

var pemBegin = []byte("-----BEGIN ")

// decode reads all blocks of a text, at least one. Text between them is ignored, as in TLS libraries; a damaged block is
// an error, where package pem would skip it. Errors never quote the text: it may be a private key.
func decode(object string, text []byte) ([]*pem.Block, error) {
	bad := func(reason Reason, problem, next string) error {
		return &Error{Object: object, Reason: reason, Problem: problem, Next: next}
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, bad(Missing, "is empty", "put PEM text there")
	}
	if len(text) > maxText {
		return nil, bad(Unreadable, fmt.Sprintf("has more than %d bytes", maxText), "remove what is not needed")
	}
	begun := bytes.Count(text, pemBegin)
	if begun > maxBlocks {
		return nil, bad(Unreadable, fmt.Sprintf("has more than %d PEM blocks", maxBlocks), "remove what is not needed")
	}
	var blocks []*pem.Block
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		blocks = append(blocks, block)
	}
	if begun == 0 {
		return nil, bad(Unreadable, "is not PEM: no line begins with "+string(pemBegin[:len(pemBegin)-1]),
			"convert it with openssl x509 or openssl pkey, if it is DER")
	}
	if len(blocks) != begun {
		return nil, bad(Unreadable, fmt.Sprintf("is damaged: %d of its %d PEM blocks can be read", len(blocks), begun), "copy it again")
	}
	return blocks, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
