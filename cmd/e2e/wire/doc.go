// Package wire sends requests through real proxies of the demo, and checks that
// they get what the policies say. What an API server accepts, or istiod sends to a
// proxy, may still fail on the wire.
//
// TestWire starts the demo once; its cases run one after the other, each with its
// own policies. A machine that does not permit proxies skips it, and says why; with
// CI=true that is a failure.
//
// What Open Service Mesh's proxies do with their configuration is not proven on the
// wire: they come only as container images, whose first configuration
// osm-controller injects. It is compared with the Plan instead (cmd/e2e/proof).
package wire
