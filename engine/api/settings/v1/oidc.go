package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
)

// OidcConfig logs users in by OpenID Connect.
//
// +kubebuilder:validation:XValidation:rule="has(self.clientId) && has(self.issuerUrl) && has(self.appUrl)",message="clientId, issuerUrl and appUrl are all needed"
type OidcConfig struct {
	// ClientId is the dashboard's name at the issuer.
	ClientId string `json:"clientId,omitempty"`
	// ClientSecret is the Secret that has the dashboard's password at the issuer.
	ClientSecret *commonv1.ObjectRef `json:"clientSecret,omitempty"`
	// IssuerUrl is the URL of the issuer.
	IssuerUrl string `json:"issuerUrl,omitempty"`
	// AuthEndpointQueryParams are added to requests to the issuer's authorization endpoint.
	AuthEndpointQueryParams map[string]string `json:"authEndpointQueryParams,omitempty"`
	// TokenEndpointQueryParams are added to requests to the issuer's token endpoint.
	TokenEndpointQueryParams map[string]string `json:"tokenEndpointQueryParams,omitempty"`
	// AppUrl is the URL by which users reach the dashboard.
	AppUrl string `json:"appUrl,omitempty"`
	// CallbackPath is the path, below appUrl, that the issuer sends users back to.
	CallbackPath string `json:"callbackPath,omitempty"`
	// LogoutPath is the path, below appUrl, that logs out; absent means that there is no logging out.
	LogoutPath string `json:"logoutPath,omitempty"`
	// Scopes to ask for besides openid.
	Scopes []string `json:"scopes,omitempty"`
	// Session sets how a login is remembered.
	Session *SessionConfig `json:"session,omitempty"`
	// Header sets in which headers tokens are passed on.
	Header *HeaderConfig `json:"header,omitempty"`
	// DiscoveryOverride replaces values that the issuer publishes.
	DiscoveryOverride *DiscoveryOverride `json:"discoveryOverride,omitempty"`
	// DiscoveryPollInterval is the time between two looks at what the issuer publishes.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches('^(0|([0-9]{1,5}([.][0-9]{1,9})?h|[0-9]{1,7}([.][0-9]{1,9})?m|[0-9]{1,9}([.][0-9]{1,9})?(s|ms|us|µs|ns))+)$')`,message="must be a duration: numbers with a unit (h, m, s, ms, us, ns), for example 500ms, 5s or 1h30m"
	DiscoveryPollInterval *metav1.Duration `json:"discoveryPollInterval,omitempty"`
	// JwksCacheRefreshPolicy says when the issuer's keys are fetched again.
	JwksCacheRefreshPolicy *JwksCacheRefreshPolicy `json:"jwksCacheRefreshPolicy,omitempty"`
}

// SessionConfig sets how a login is remembered.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.cookie) && has(self.redis))",message="set cookie or redis, not both"
type SessionConfig struct {
	// CookieOptions are the properties of the browser's cookie.
	CookieOptions *CookieOptions `json:"cookieOptions,omitempty"`
	// Cookie keeps the session in the cookie itself.
	Cookie *commonv1.Empty `json:"cookie,omitempty"`
	// Redis keeps the session in a Redis.
	Redis *RedisSession `json:"redis,omitempty"`
}

// CookieOptions are the properties of a cookie.
type CookieOptions struct {
	// MaxAge in seconds; 30 days if omitted; 0 never expires.
	// +kubebuilder:validation:Minimum=0
	MaxAge *uint32 `json:"maxAge,omitempty"`
	// NotSecure sends the cookie over plain HTTP too.
	NotSecure bool `json:"notSecure,omitempty"`
	// Path that the cookie is for; / if omitted.
	Path *string `json:"path,omitempty"`
	// Domain that the cookie is for.
	Domain string `json:"domain,omitempty"`
}

// RedisSession keeps sessions in a Redis.
//
// +kubebuilder:validation:XValidation:rule="has(self.host)",message="host is needed: address:port of the Redis, or unix:// and a path"
type RedisSession struct {
	// Host is address:port, or unix:// and a path.
	Host string `json:"host,omitempty"`
	// Db is the number of the database.
	// +kubebuilder:validation:Minimum=0
	Db int32 `json:"db,omitempty"`
	// PoolSize is the number of connections; 10 for each CPU if omitted.
	// +kubebuilder:validation:Minimum=0
	PoolSize int32 `json:"poolSize,omitempty"`
	// KeyPrefix begins the key of every session.
	KeyPrefix string `json:"keyPrefix,omitempty"`
	// CookieName is the name of the browser's cookie; __session if omitted.
	CookieName string `json:"cookieName,omitempty"`
	// AllowRefreshing lengthens sessions that are in use; true if omitted.
	AllowRefreshing *bool `json:"allowRefreshing,omitempty"`
}

// HeaderConfig sets in which headers tokens are passed on.
type HeaderConfig struct {
	// IdTokenHeader carries the ID token.
	IdTokenHeader string `json:"idTokenHeader,omitempty"`
	// AccessTokenHeader carries the access token.
	AccessTokenHeader string `json:"accessTokenHeader,omitempty"`
}

// DiscoveryOverride replaces values that an issuer publishes.
type DiscoveryOverride struct {
	// AuthEndpoint is the URL of the authorization endpoint.
	AuthEndpoint string `json:"authEndpoint,omitempty"`
	// TokenEndpoint is the URL of the token endpoint.
	TokenEndpoint string `json:"tokenEndpoint,omitempty"`
	// JwksUri is the URL of the keys.
	JwksUri string `json:"jwksUri,omitempty"`
	// Scopes that the issuer knows.
	Scopes []string `json:"scopes,omitempty"`
	// ResponseTypes that the issuer knows.
	ResponseTypes []string `json:"responseTypes,omitempty"`
	// Subjects are the subject types that the issuer knows.
	Subjects []string `json:"subjects,omitempty"`
	// IdTokenAlgs are the algorithms with which the issuer signs ID tokens.
	IdTokenAlgs []string `json:"idTokenAlgs,omitempty"`
	// AuthMethods are the ways to log in at the token endpoint.
	AuthMethods []string `json:"authMethods,omitempty"`
	// Claims that the issuer can make.
	Claims []string `json:"claims,omitempty"`
}

// JwksCacheRefreshPolicy says when the issuer's keys are fetched again.
//
// +kubebuilder:validation:XValidation:rule="[has(self.never), has(self.always), has(self.maxIdpReqPerPollingInterval)].filter(x, x).size() <= 1",message="set at most one of never, always and maxIdpReqPerPollingInterval"
type JwksCacheRefreshPolicy struct {
	// Never fetches them when a token has an unknown key; this is what an empty policy means.
	Never *commonv1.Empty `json:"never,omitempty"`
	// Always fetches them when a token has an unknown key.
	Always *commonv1.Empty `json:"always,omitempty"`
	// MaxIdpReqPerPollingInterval does so at most this often between two polls.
	// +kubebuilder:validation:Minimum=0
	MaxIdpReqPerPollingInterval *uint32 `json:"maxIdpReqPerPollingInterval,omitempty"`
}
