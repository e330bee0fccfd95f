package vault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode"

	"github.com/hashicorp/vault/api"

	"github.com/meshctl/meshctl/engine/kube"
)

// maxSaid is how much of what Vault says is passed on, in bytes.
const maxSaid = 200

// nextSteps are by the status that Vault answers with.
var nextSteps = map[int]string{
	http.StatusBadRequest:          "correct what it says",
	http.StatusForbidden:           "check the role or token, and that its policy allows to update this path",
	http.StatusNotFound:            "check caPath, mountPath and the namespace",
	http.StatusTooManyRequests:     "raise the quota in Vault if it stays so",
	http.StatusServiceUnavailable:  "unseal Vault, or wait until it is up",
	http.StatusInternalServerError: "look into the log of Vault",
}

// failed says what went wrong: the same each time that the same goes wrong.
func (c *Client) failed(what string, err error) error {
	var answer *api.ResponseError
	var redirect *redirectError
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &answer):
		next := nextSteps[answer.StatusCode]
		if next == "" {
			next = "check that server is the address of Vault"
		}
		said := ""
		if !answer.RawError {
			said = c.quote(strings.Join(answer.Errors, "; "))
		}
		return fmt.Errorf("%s does not %s (%d%s); %s", c, what, answer.StatusCode, said, next)
	case errors.As(err, &redirect):
		return fmt.Errorf("%s %w, to which no token is sent; set server to the address that answers", c, redirect)
	case errors.Is(err, errTooLarge):
		return fmt.Errorf("%s %w; check that server is the address of Vault", c, errTooLarge)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s does not %s in time; check that it can be reached from here", c, what)
	case errors.As(err, &syntax), errors.As(err, &kind), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s answers with something else than Vault does; check that server is the address of Vault", c)
	}
	return fmt.Errorf("%s; check server and caBundle", c.clean(kube.Reason(c.String(), err)))
}

// nothing is an answer without contents, which Vault gives for what is not there.
func (c *Client) nothing(at string) error {
	return fmt.Errorf("%s has nothing at %s; %s", c, at, nextSteps[http.StatusNotFound])
}

// quote is the start of what Vault says.
func (c *Client) quote(text string) string {
	if text = c.clean(text); text == "" {
		return ""
	}
	return ": " + text
}

// clean is one bounded line without tokens.
func (c *Client) clean(text string) string {
	for _, secret := range c.secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "(a token)")
		}
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxSaid {
		text = strings.ToValidUTF8(text[:maxSaid], "") + "..."
	}
	return text
}
