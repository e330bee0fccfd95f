package explain

import (
	"testing"

	"github.com/stretchr/testify/assert"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func TestWrongOrigin(t *testing.T) {
	t.Parallel()
	check := snapshot.CSRF{Percent: 100, Origins: []commonv1.StringMatch{{Exact: "friend.example"}, {Suffix: ".Shop.example:8443", IgnoreCase: true}}}
	headers := func(pairs ...string) map[string]string { return map[string]string{pairs[0]: pairs[1]} }
	for name, tt := range map[string]struct {
		method  string
		headers map[string]string
		want    string
	}{
		"a method that changes nothing": {"GET", headers("origin", "http://evil.example"), ""},
		"none":                          {"POST", nil, "its headers name no origin"},
		"another":                       {"PUT", headers("origin", "http://evil.example"), "its header origin names evil.example"},
		"one that is no URL":            {"DELETE", headers("origin", "null"), "its header origin names null"},
		"an allowed one":                {"PATCH", headers("origin", "https://friend.example"), ""},
		"an allowed one by pattern":     {"POST", headers("origin", "https://a.shop.example:8443"), ""},
		"its port is another":           {"POST", headers("origin", "https://friend.example:8443"), "its header origin names friend.example:8443"},
		"the referer":                   {"POST", headers("referer", "http://evil.example/a/b?c"), "its header referer names evil.example"},
		"an allowed referer":            {"POST", headers("referer", "http://friend.example/a"), ""},
		"its own host":                  {"POST", headers("origin", "http://cart.shop.svc.cluster.local:9080"), ""},
		"its own host, shortened":       {"POST", headers("origin", "http://cart.shop:9080"), ""},
		"its own host on another port":  {"POST", headers("origin", "http://cart.shop"), "its header origin names cart.shop"},
		"the beginning of its own host": {"POST", headers("origin", "http://car:9080"), "its header origin names car:9080"},
		"the host that it names":        {"POST", map[string]string{"host": "shop", "origin": "http://shop"}, ""},
		"not the host that it names":    {"POST", map[string]string{"host": "shop", "origin": "http://cart.shop:9080"}, "its header origin names cart.shop:9080"},
	} {
		request := Request{Method: tt.method, Headers: tt.headers, Port: 9080}
		assert.Equal(t, tt.want, request.wrongOrigin(check, "cart.shop.svc.cluster.local"), name)
	}
}
